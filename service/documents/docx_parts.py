"""The files of a Word document: those with its text, by their relationships (ECMA-376, part 2), and what else has text.

The package names the main one, of documents and templates, with macros or without.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

from service.documents.archive import CONTENT_TYPES, Archive, content_types, related
from service.documents.document import notes_on_left
from service.documents.errors import DocumentError

_MAIN_TYPE = re.compile(
    r"application/vnd\.(?:openxmlformats-officedocument\.wordprocessingml|ms-word)\."
    r"(?:document|template)(?:\.macroEnabled)?\.main\+xml",
    re.IGNORECASE,
)
_TEXT = ("header", "footer", "footnotes", "endnotes")  # ends of the types of relationships
# What is left as it is, by such ends: one and several of it, and what each looks like, if it is no file of its own.
_LEFT: Mapping[str, tuple[str, str, bytes]] = MappingProxyType(
    {
        "comments": ("comment", "comments", rb"<(?:\w+:)?comment[\s>]"),
        "chart": ("chart", "charts", b""),
        "chartEx": ("chart", "charts", b""),
        "diagramData": ("diagram (SmartArt)", "diagrams (SmartArt)", b""),
        "glossaryDocument": ("set of building blocks", "sets of building blocks", b""),
        "oleObject": ("embedded object", "embedded objects", b""),
        "package": ("embedded object", "embedded objects", b""),
        "aFChunk": ("imported file", "imported files", b""),
        "core-properties": (
            "document property",
            "document properties",
            rb"<(?:\w+:)?(?:title|subject|description|keywords|category)>[^<]",
        ),
    }
)
_DRAWN = ("chart", "chartEx", "diagramData")  # which may be without text
_WORDS = re.compile(rb"<(?:\w+:)?(?:t|v)(?:\s[^<>]*)?>[^<]*[A-Za-z\x80-\xff]")
# Of DrawingML; older programs have a copy of it in another form.
_ALTERNATIVE_TEXT = re.compile(r"""<(?:\w+:)?(?:docPr|cNvPr)\s(?:[^<>]*?\s)?descr=["'][^"'<>\s]""")


def text_parts(archive: Archive) -> tuple[list[str], str, list[str]]:
    """Return the names of the files with text, the main one first, that of the styles, and notes on what is left."""
    package = list(related(archive, ""))
    main = next((name for kind, name in package if kind == "officeDocument"), None) or _main_by_type(archive)
    own = sorted(related(archive, main), key=lambda each: each[1])
    names = [main, *(name for kind, name in own if kind in _TEXT)]
    styles = next((name for kind, name in own if kind == "styles"), "")
    return list(dict.fromkeys(names)), styles, list(_left(archive, [*own, *package]))


def notes_on_pictures(raws: Iterable[str]) -> list[str]:
    number = sum(1 for raw in raws for _ in _ALTERNATIVE_TEXT.finditer(raw))
    return notes_on_left(number, "alternative text of a picture", "alternative texts of pictures")


def _left(archive: Archive, relationships: Sequence[tuple[str, str]]) -> Iterator[str]:
    numbers: Counter[tuple[str, str]] = Counter()
    for kind, name in dict.fromkeys(relationships):
        if kind not in _LEFT:
            continue
        one, several, each = _LEFT[kind]
        content = archive.read(name) if each or kind in _DRAWN else b""
        is_there = kind not in _DRAWN or _WORDS.search(content) is not None
        numbers[one, several] += len(re.findall(each, content)) if each else is_there
    return chain.from_iterable(notes_on_left(number, *names) for names, number in numbers.items())


def _main_by_type(archive: Archive) -> str:
    for name, kind in content_types(archive).items():
        if _MAIN_TYPE.fullmatch(kind):
            return name
    raise DocumentError("it names no main file of a Word document.", CONTENT_TYPES)
