"""Timed text in XML (`.ttml`, `.dfxp`; https://www.w3.org/TR/ttml2): a `p` is a cue, and `br` ends a line of it."""

import html
import re
from bisect import bisect_right
from collections import Counter
from itertools import accumulate, pairwise

from service.documents.cues import Cue, Notation, lines_between, slots
from service.documents.document import Document, DocumentOptions, Edit, Spliced, notes_on_left
from service.documents.errors import DocumentError
from service.documents.lines import lines
from service.documents.xml_source import Element, XmlSource, as_raw, attribute, decoded_xml, from_raw
from service.text.languages import canonical, primary

_REST = r"""(?:[^"'<>/]++|/(?!>)|"[^"]*+"|'[^']*+')*+"""  # of a tag
_COMMENT = r"<!--(?:[^-]++|-(?!->))*+-->|<\?(?:[^?]++|\?(?!>))*+\?>"
_BREAK = rf"\s*+<(?:[\w.-]++:)?+br\b{_REST}(?:/>|></[\w:.-]++\s*+>)\s*+"
_TAG = re.compile(rf"{_COMMENT}|(?P<br>{_BREAK})|<[\w:.-]++{_REST}/>|<(?P<close>/)?+(?P<name>[\w:.-]++){_REST}>|[♪♫♬]+")
_ENDING = re.compile(rf"{_COMMENT}|(?P<ending>(?<!\s){_BREAK})")
_ENDING_IF_PRESERVED = re.compile(rf"{_COMMENT}|(?P<ending>(?<!\s)(?:{_BREAK}|[ \t\r]*+\n\s*+))")
_NOTATION = Notation(_TAG, html.unescape, lambda text: from_raw(as_raw(text)).decode())
_NO_ENDING = re.compile("(?P<ending>(?!))")
_OTHERS = re.compile(r"<!\[CDATA\[|<(?:[\w.-]++:)?+metadata\b")
_WITH_CDATA = "cue with CDATA or metadata", "cues with CDATA or metadata"
_IN_OTHERS = "cue in another language", "cues in other languages"
_LANGUAGE = re.compile(r"""\sxml:lang=(?P<value>["'](?P<code>[\w-]*+)["'])""")


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read timed text in its declared encoding.

    Of several languages, those cues are texts that are in `options.source`, else in the first cue's. Their declared
    language becomes `options.target`.
    """
    raw, encode = decoded_xml(data)
    source, text = XmlSource(raw), raw.decode()

    def wanted(root: Element) -> tuple[str, ...]:
        if root.name.rpartition(":")[2] != "tt":
            raise DocumentError(f"the root is <{root.name[:40]}>; timed text is in <tt>.", source.place(root.start))
        return (f"{root.name.removesuffix('tt')}p",)

    every = [_inner(each) for each in source.elements(wanted)]
    languages = [primary(each.inherited("xml:lang")) for each in every]
    own = primary(canonical(options.source))
    if own not in languages:
        own = next(iter(languages), "")
    borders = pairwise([0, *(place for each in every for place in (each.inner, each.outer))])
    places = accumulate(len(raw[start:end].decode()) for start, end in borders)  # from those in UTF-8
    starts = [line.start for line in lines(text)]
    cues: list[Cue] = []
    left: Counter[tuple[str, str]] = Counter()
    for element, language, start, end in zip(every, languages, places, places, strict=False):
        if language != own or _OTHERS.search(text, start, end):
            left[_WITH_CDATA if language == own else _IN_OTHERS] += 1
            continue
        number = bisect_right(starts, start)
        ending = _ENDING_IF_PRESERVED if element.inherited("xml:space") == "preserve" else _ENDING
        found = lines_between(text, start, end, number, ending)
        if not all(_has_pairs(line.text) for line in found):
            found = lines_between(text, start, end, number, _NO_ENDING)
        cues.append(Cue(found, f"{element.inherited('region')} {element.inherited('ttm:agent')}"))
    target = attribute(canonical(options.target)) if options.target else ""
    named = (match for match in _LANGUAGE.finditer(text) if target and primary(match["code"]) == own)
    edits = [Edit(match.start("value"), match.end("value"), target) for match in named]
    notes = [note for names, number in left.items() for note in notes_on_left(number, *names)]
    return Spliced(text, slots(text, cues, _NOTATION), lambda written: encode(written.encode()), notes, edits)


def _inner(element: Element) -> Element:
    match [each for each in element.children if not isinstance(each, str) or each.strip()]:
        case [Element() as inner] if inner.name.rpartition(":")[2] == "span":
            return _inner(inner)
    return element


def _has_pairs(text: str) -> bool:
    """Return whether each tag in a line has its partner there, so that a line may be apart from the others."""
    depth = 0
    for tag in _TAG.finditer(text):
        depth += (-1 if tag["close"] else 1) if tag["name"] else 0
        if depth < 0:
            return False
    return depth == 0
