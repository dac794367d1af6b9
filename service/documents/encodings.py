"""Bytes of text files to text, and back in the same encoding."""

import codecs
import functools
from collections.abc import Callable

from service.documents.errors import DocumentError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decoded(data: bytes) -> tuple[str, Callable[[str], bytes]]:
    """Return the text of UTF-8, or of UTF-16 with a byte order mark, and a function that encodes it in the same way.

    Raises:
        DocumentError: it is neither.
    """
    mark, encoding = next(((mark, encoding) for mark, encoding in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        start = error.start + len(mark)
        line = data.count(b"\n", 0, start) + 1
        raise DocumentError(
            f"byte {start + 1} of the file, 0x{data[start]:02x}, is not {encoding.upper()}; "
            "convert the file, for example with iconv.",
            f"line {line}",
        ) from None
    return text, functools.partial(_encoded, mark, encoding)


def _encoded(mark: bytes, encoding: str, text: str) -> bytes:
    return mark + text.encode(encoding)
