"""HTML: each stretch between block-level tags is a text, with its inline tags; and values of attributes, if wanted."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from service.documents.document import Document, DocumentOptions, DocumentText, Edit, MimeType, Slot, Spliced, has_words
from service.documents.encodings import decoded
from service.documents.lines import Lines
from service.text.markup.lexer import Token, TokenKind, attribute_values, tokens
from service.text.markup.parts import Part, Role
from service.text.markup.structure import parts

_OF_ANY = frozenset(
    {"aria-description", "aria-label", "aria-placeholder", "aria-roledescription", "aria-valuetext", "placeholder"}
)
_TITLE_IS_NO_TEXT = frozenset({"link", "script", "style"})
_OF_ELEMENTS = frozenset(
    {
        *(("img", "alt"), ("area", "alt"), ("input", "alt"), ("th", "abbr"), ("table", "summary")),
        *(("optgroup", "label"), ("option", "label"), ("track", "label")),
    }
)
_BUTTONS = frozenset({"button", "reset", "submit"})
_META = frozenset(
    {
        *("description", "keywords", "application-name", "apple-mobile-web-app-title", "title", "abstract"),
        *("og:title", "og:description", "og:site_name", "og:image:alt"),
        *("twitter:title", "twitter:description", "twitter:image:alt"),
    }
)
_BEFORE_VALUE = frozenset("\"'=\t\n\f\r ")
_QUOTES = {'"': "&quot;", "'": "&#39;"}


class Value(NamedTuple):
    """The value of an attribute: where in the HTML it is, without quotation marks, and what `raw` text is there."""

    start: int
    end: int
    raw: str
    quote: str  # empty if there are no quotation marks

    def written(self, translation: str) -> str:
        """Return a translation, given as HTML, as the value is to be written."""
        if translation == self.raw:
            return self.raw
        quote = self.quote or '"'
        value = translation.replace(quote, _QUOTES[quote])
        return value if self.quote else f"{quote}{value}{quote}"


def translatable_values(html: str, token: Token) -> Iterator[Value]:
    values = {name: span for name, *span in attribute_values(html[token.start : token.end])}

    def text(name: str) -> str:
        start, end = values.get(name, (0, 0))
        return html[token.start + start : token.start + end].strip().lower()

    if text("translate") == "no" or "notranslate" in text("class").split():
        return
    for name, (start, end) in values.items():
        is_shown = (
            name in _OF_ANY
            or (name == "title" and token.name not in _TITLE_IS_NO_TEXT)
            or (token.name, name) in _OF_ELEMENTS
            or (token.name == "input" and name == "value" and text("type") in _BUTTONS)
            or (token.name == "meta" and name == "content" and {text("name"), text("property")} & _META)
        )
        raw = html[token.start + start : token.start + end]
        if is_shown and _is_text(raw):
            before = html[token.start + start - 1]
            yield Value(token.start + start, token.start + end, raw, before if before in _QUOTES else "")


def _is_text(raw: str) -> bool:
    found = list(tokens(raw))
    return all(token.kind in (TokenKind.TEXT, TokenKind.TEMPLATE) for token in found) and any(
        token.kind is TokenKind.TEXT and has_words(re.sub(r"&\w+;", "", raw[token.start : token.end]))
        for token in found
    )


def language_edits(html: str, found: Iterable[Token], target: str) -> Iterator[Edit]:
    """Yield the changes that make `target` the language that a page names for itself."""
    starts = (token for token in found if token.kind is TokenKind.START and token.name == "html")
    if not target or (page := next(starts, None)) is None:
        return
    names: set[str] = set()
    for name, start, end in attribute_values(html[page.start : page.end]):
        if name in ("lang", "xml:lang") and name not in names:
            value = target if html[page.start + start - 1] in _BEFORE_VALUE else f'="{target}"'
            yield Edit(page.start + start, page.start + end, value)
        names.add(name)
    if not names & {"lang", "xml:lang"}:
        place = page.start + len("<html")
        yield Edit(place, place, f' lang="{target}"')


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read a page or a fragment; scripts, styles and what is marked as untranslated stay as they are."""
    source, encode = decoded(data)
    if not options.attributes:
        return Spliced(source, slots(source, Lines(source)), encode)
    edits = language_edits(source, tokens(source), options.target)
    return Spliced(source, slots(source, Lines(source), has_attributes=True), encode, edits=edits)


def slots(html: str, lines: Lines, start: int = 0, *, has_attributes: bool = False) -> Iterator[Slot]:
    """Yield the texts of `html`, which is at `start` of its document and has these lines; with values of attributes."""
    found = list(tokens(html))
    found_parts = parts(html, found)
    values = _values(html, found, found_parts) if has_attributes else []
    following = 0
    for begin, end in _texts(html, found_parts):
        inner = bisect_left(values, (begin,))
        after = bisect_left(values, (end,))
        for value in values[following:inner]:
            yield _of_value(value, start, lines.place(value.start))
        yield _of_text(html, begin, end, values[inner:after], start, lines.place(begin))
        following = after
    for value in values[following:]:
        yield _of_value(value, start, lines.place(value.start))


def _texts(html: str, found: Sequence[Part]) -> Iterator[tuple[int, int]]:
    run: list[Part] = []
    for part in (*found, None):
        if part is not None and part.role is not Role.BOUNDARY:
            run.append(part)
            continue
        if any(each.role is Role.TEXT and has_words(html[each.start : each.end]) for each in run):
            yield run[0].start, run[-1].end
        run = []


def _values(html: str, found: Sequence[Token], found_parts: Sequence[Part]) -> list[Value]:
    """Return the values of attributes to translate, in order; there are none in what is not translated."""
    values: list[Value] = []
    index = 0
    for part in found_parts:
        first = index
        while index < len(found) and found[index].start < part.end:
            index += 1
        if index - first > 1 and part.role in (Role.BOUNDARY, Role.KEPT):
            continue
        for token in found[first:index]:
            if token.kind is TokenKind.START:
                values += translatable_values(html, token)
    return values


def _of_value(value: Value, start: int, place: str) -> Slot:
    text = DocumentText(value.raw, MimeType.HTML, place)
    return Slot(start + value.start, start + value.end, text, value.written)


def _of_text(html: str, begin: int, end: int, values: Sequence[Value], start: int, place: str) -> Slot:
    """Return the slot of a text; a tag may go to another place, so the text has signs for the values in its tags."""
    sign = _sign(html[begin:end])
    keys = [f"{sign}{number}-" for number in range(len(values))]
    pieces: list[str] = []
    done = begin
    for key, value in zip(keys, values, strict=True):
        pieces += (html[done : value.start], key)
        done = value.end
    text = DocumentText("".join((*pieces, html[done:end])), MimeType.HTML, place)
    signs = re.compile(rf"{sign}\d+-")

    def written(translation: str, *inner: str) -> str:
        found = dict(zip(keys, inner, strict=True))
        return signs.sub(lambda match: found.get(match[0], ""), translation)

    if not values:
        return Slot(start + begin, start + end, text, str)
    inner_slots = tuple(_of_value(value, start, place) for value in values)
    return Slot(start + begin, start + end, text, written, is_target=True, inner=inner_slots)


def _sign(html: str) -> str:
    number = 0
    while (sign := f"dragoman-{number}-") in html:
        number += 1
    return sign
