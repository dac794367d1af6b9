"""Values of keys, in any format of strings for programs: texts of one type without markup of the format."""

import functools
from collections.abc import Callable

from service.documents.document import DocumentText, MimeType, Slot, has_words
from service.documents.escapes import has_half


def value_slot(
    start: int, end: int, value: str, place: str, encode: Callable[[str], str], mime_type: MimeType = MimeType.TEXT
) -> Slot | None:
    """Return the slot of a value, which `encode` writes; `None` if it has no words, or half of a character.

    White space around the text is no part of it, and stays.
    """
    text = value.strip()
    if not has_words(text) or has_half(text):
        return None
    begin = value.index(text)
    write = functools.partial(_written, encode, value[:begin], value[begin + len(text) :])
    return Slot(start, end, DocumentText(text, mime_type, place), write)


def _written(encode: Callable[[str], str], before: str, after: str, translation: str) -> str:
    return encode(before + translation.strip() + after)
