"""Values of keys, in any format of strings for programs: texts of one type without markup, and their escapes."""

import functools
import re
from collections.abc import Callable, Iterator

from service.documents.document import DocumentText, MimeType, Slot, has_words

_HALF = re.compile("[\ud800-\udfff]")
_WRITTEN = re.compile(r"\\[uU]([0-9A-Fa-f]{4})")


def as_escape(character: str, form: str = "\\u%04x") -> str:
    """Return a character as one escape, or as two of a surrogate pair."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(form % int.from_bytes(units[index : index + 2]) for index in range(0, len(units), 2))


class EscapeStyle:
    """The characters that a source escapes, and their form; all beyond ASCII if it escapes only such ones.

    Those in ASCII are escaped if `others` has them, and in any case those from `first` on.
    """

    def __init__(self, source: str, others: str = "", *, first: str = "", form: str = "\\u%04x") -> None:
        found = set(_WRITTEN.findall(source))
        self._form = form.replace("x", "X") if any(digits != digits.lower() for digits in found) else form
        characters = {each for digits in found if (each := chr(int(digits, 16))) > "\x7f" or each in others}
        if source.isascii() and max(characters, default="") > "\x7f":
            first = "\x80"
        escaped = "".join(map(re.escape, characters)) + (f"{first}-\U0010ffff" if first else "")
        self._escaped = re.compile(f"[{escaped}]") if escaped else None

    def __call__(self, text: str) -> str:
        if self._escaped is None:
            return text
        return self._escaped.sub(lambda match: as_escape(match[0], self._form), text)


def joined(text: str) -> str:
    """Return the text with the two halves of a character as one."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def has_half(text: str) -> bool:
    return _HALF.search(text) is not None


def value_slots(
    start: int, end: int, value: str, place: str, encode: Callable[[str], str], mime_type: MimeType = MimeType.TEXT
) -> Iterator[Slot]:
    """Yield the slot of a value, without the white space around it; `encode` writes it.

    Values without words, or with half of a character, have none.
    """
    text = value.strip()
    if has_words(text) and not has_half(text):
        begin = value.index(text)
        write = functools.partial(_written, encode, value[:begin], value[begin + len(text) :])
        yield Slot(start, end, DocumentText(text, mime_type, place), write)


def _written(encode: Callable[[str], str], before: str, after: str, translation: str) -> str:
    return encode(before + translation.strip() + after)
