"""A translator that shows what a real one would change: letters become capitals, tags and entities stay."""

import re
from collections.abc import Callable

from service.documents import Document, DocumentText, MimeType

_MARKUP = re.compile(r"(<[^<>]*>|&[#\w]+;)")


def capitals(text: DocumentText) -> str:
    if text.mime_type is MimeType.TEXT:
        return text.text.upper()
    return "".join(part if index % 2 else part.upper() for index, part in enumerate(_MARKUP.split(text.text)))


def backwards(text: DocumentText) -> str:
    """Return the words in reverse order, for texts without tags."""
    assert text.mime_type is MimeType.TEXT
    return " ".join(reversed(text.text.split()))


def translated(document: Document, translate: Callable[[DocumentText], str] = capitals) -> bytes:
    return document.written([translate(text) for text in document.texts])


def unchanged(document: Document) -> bytes:
    return document.written([text.text for text in document.texts])


def texts(document: Document) -> list[str]:
    return [text.text for text in document.texts]
