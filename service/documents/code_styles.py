"""Code in office files: text in a style named for code, or in a font of fixed pitch.

Such a font says nothing in a document that mostly uses one, like a typewritten text, nor do the fonts of headings and
other styles of prose.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from service.documents.archive import Archive, Part, xml_part
from service.documents.document import Slot, notes_on_left
from service.documents.xml_source import XmlSource

_MAX_PARENTS = 50  # of a style; those of a hostile file may be in a circle
# By name, as what files say of the pitch of a font would make code of most Japanese text.
_FIXED = re.compile(
    r"courier|consol|mono(?!ty|ton)|monaco|menlo|typewriter|cascadia|fixedsys|^terminal$|letter gothic|\bcode\b"
    r"|\bfixed\b|andale|inconsolata|iosevka|hack\b|anonymous pro|cousine",
    re.IGNORECASE,
)
# Styles whose text is prose, whatever their font; Word has "Plain Text" for mails.
_PROSE = re.compile(r"(?:heading|title|subtitle|toc|normal|body text|plain text|default|standard)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+?(?=[A-Z][a-z]|[\W\d_]|$)")
# Word and LibreOffice write their own styles with these names whatever language they speak.
_CODE = re.compile(
    "(?:source)?code(?:block)?|verbatim|preformatted|literal|monospaced?|teletype|quell(?:code|text)|programmcode"
    "|código|codice|broncode|код|コード|代码"
)
_OTHER = re.compile(
    "html|source|program|computer|inline|block|example|sample|snippet|listing|text|lines?|style|font|char(?:acter)?"
    "|zeichen|zchn|car(?:attere)?|paragraph|first|middle|last|body|box|web|fuente|fonte|sorgente"
)


class Style(NamedTuple):
    """A style: its name as users see it, the key of its parent, and its font; `None` if it sets none."""

    name: str
    parent: str
    font: str | None


class CodeStyles:
    """The styles of a document by their keys; `default` is the font of its text. Without `by_font` none makes code."""

    def __init__(self, styles: Mapping[str, Style], default: str | None, *, by_font: bool) -> None:
        self._styles = styles
        self._found: dict[str, tuple[bool, str | None]] = {}
        self._by_font = by_font and not _is_fixed(default)

    def is_code(self, font: str | None, keys: Sequence[str]) -> bool:
        """Return whether a text is code: one of this font, if it has its own, and of styles, the innermost first."""
        found = [self._resolved(key) for key in keys]
        own = next((each for each in (font, *(font for _, font in found)) if each is not None), None)
        return any(is_named for is_named, _ in found) or (self._by_font and _is_fixed(own))

    def _resolved(self, key: str) -> tuple[bool, str | None]:
        if key not in self._found:
            self._found[key] = self._inherited(key)
        return self._found[key]

    def _inherited(self, key: str) -> tuple[bool, str | None]:
        font: str | None = None
        for _ in range(_MAX_PARENTS):
            style = self._styles.get(key)
            if style is None:
                break
            if _is_name_of_code(style.name) and (font is None or _is_fixed(font)):
                return True, font
            if font is None:
                font = "" if _PROSE.match(style.name) else style.font
            key = style.parent
        return False, font


class Reader(Protocol):
    """A reader of the files of a document; `num_left` counts the paragraphs that are nothing but code."""

    num_left: int

    def slots(self, source: XmlSource) -> Iterable[Slot]: ...


R = TypeVar("R", bound=Reader)


def read_prose(
    archive: Archive, names: Iterable[str], main: Collection[str], reader: Callable[[bool], R]
) -> tuple[R, list[Part], list[str]]:
    """Return files as parts, their reader, and the note on code.

    If the `main` files have nothing but code, the document is typewritten: it is read without regard to fonts.
    """
    for by_font in (True, False):
        found = reader(by_font)
        parts = [xml_part(archive, name, found.slots) for name in names]
        if not found.num_left or any(part.slots for part in parts if part.name in main):
            break
    return found, parts, note_on_code(found.num_left)


def note_on_code(number: int) -> list[str]:
    return notes_on_left(number, "paragraph of code", "paragraphs of code")


def _is_fixed(font: str | None) -> bool:
    return font is not None and _FIXED.search(font) is not None


def _is_name_of_code(name: str) -> bool:
    """Return whether a style's name is about code and nothing else, as that of a caption of code is."""
    words = [word.lower() for word in _WORD.findall(name)]
    named = [_CODE.fullmatch(word) is not None for word in words]
    others = all(is_code or _OTHER.fullmatch(word) for word, is_code in zip(words, named, strict=True))
    return words[:2] == ["source", "text"] or (any(named) and others)
