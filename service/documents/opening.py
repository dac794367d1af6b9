"""The one way to open a document: its format by the ending of its name."""

import importlib
from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import MappingProxyType

from service.documents.document import Document, DocumentOptions
from service.documents.errors import DocumentError, UnknownFormat

MAX_BYTES = 32 * 1024 * 1024  # of a document; of the archive, if it is one

_Reader = Callable[[bytes, DocumentOptions], Document]
# The module of each ending, and the function in it. A process that reads one document imports no other format, which
# takes three quarters of the time of a small one.
_READERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        ".csv": ("tables", "read_csv"),
        ".docm": ("docx", "read"),
        ".docx": ("docx", "read"),
        ".dotm": ("docx", "read"),
        ".dotx": ("docx", "read"),
        ".htm": ("html", "read"),
        ".html": ("html", "read"),
        ".markdown": ("markdown", "read"),
        ".md": ("markdown", "read"),
        ".po": ("po", "read"),
        ".pot": ("po", "read_template"),
        ".srt": ("subtitles", "read_srt"),
        ".tsv": ("tables", "read_tsv"),
        ".txt": ("lines", "read"),
        ".vtt": ("subtitles", "read_vtt"),
        ".xlf": ("xliff", "read"),
        ".xliff": ("xliff", "read"),
    }
)
ENDINGS = tuple(_READERS)
"""The endings that `open_document` knows, in alphabetical order."""


def open_document(name: str, data: bytes, options: DocumentOptions | None = None) -> Document:
    """Read a document; `name` is that of its file, whose ending names the format, in any case.

    Raises:
        UnknownFormat: the ending is none of `ENDINGS`; such a file is never taken for text.
        DocumentError: the document is broken or too large, or the options don't fit it.
    """
    ending = PurePath(name).suffix.lower()
    if ending not in _READERS:
        found = f"the ending {ending!r} is" if ending else "a name without an ending is"
        raise UnknownFormat(f"{found} not known; known are {', '.join(ENDINGS)}.")
    if len(data) > MAX_BYTES:
        raise DocumentError(f"it has {len(data)} bytes, and at most {MAX_BYTES} are read; split it.")
    module, function = _READERS[ending]
    reader: _Reader = getattr(importlib.import_module(f"service.documents.{module}"), function)
    return reader(data, options or DocumentOptions())
