"""Bytes of text files to text, and back in the same encoding; the encodings that files may declare."""

import codecs
import functools
import re
from collections.abc import Callable, Mapping, Sequence

from service.documents.document import NO_DOUBTS, Document, Doubt
from service.documents.errors import DocumentError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16's, which is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,39}")
# Python's names of what gettext calls portable (https://www.gnu.org/software/gettext/manual/html_node/Header-Entry.html)
# and Python has, and of what else XML files are declared to be. All hold ASCII's letters and signs, as ASCII does.
_KNOWN = frozenset(
    (
        *("ascii", "utf-8", "utf-8-sig", "iso8859-1", "mac-roman", "mac-cyrillic", "koi8-r", "koi8-u", "koi8-t"),
        *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)),
        *(f"cp{page}" for page in (437, 850, 852, 855, 866, 874, 932, 949, 950)),
        *(f"cp{page}" for page in range(1250, 1259)),
        *("gb2312", "gbk", "gb18030", "big5", "big5hkscs", "euc_jp", "euc_kr", "johab", "shift_jis", "tis-620"),
    )
)


def decoded(data: bytes) -> tuple[str, Callable[[str], bytes]]:
    """Return the text of UTF-8, or of UTF-16 or UTF-32, and a function that encodes it in the same way.

    A byte order mark is believed. Without one, UTF-16 is recognized where every other byte is zero.
    """
    mark, encoding = next((each for each in _MARKS if data.startswith(each[0])), (b"", _without_mark(data)))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        start = error.start + len(mark)
        line = data.count(b"\n", 0, start) + 1
        raise DocumentError(
            f"byte {start + 1} of the file, 0x{data[start]:02x}, is not {encoding.upper()}; "
            "convert the file, for example with iconv, or name its encoding to the command line with --encoding.",
            f"line {line}",
        ) from None
    return text, functools.partial(_encoded, mark, encoding)


def recoded(data: bytes, encoding: str) -> bytes:
    """Return text in UTF-8 that is in `encoding`, unless it has a byte order mark."""
    if any(data.startswith(mark) for mark, _ in _MARKS):
        return data
    try:
        return data.decode(encoding).encode()
    except (LookupError, UnicodeError) as error:
        raise DocumentError(f"it can't be read as {encoding}: {error}.") from None


class Recoded:
    """A document in another encoding than UTF-8, in which it is written, too."""

    def __init__(self, document: Document, encoding: str) -> None:
        self._document = document
        self._encoding = encoding
        self.texts, self.notes, self.language = document.texts, document.notes, document.language

    def written(self, translations: Sequence[str], doubts: Mapping[int, Doubt] = NO_DOUBTS) -> bytes:
        text = self._document.written(translations, doubts).decode()
        try:
            return text.encode(self._encoding)
        except UnicodeEncodeError as error:
            raise DocumentError(
                f"the translation has {text[error.start]!r}, which {self._encoding} lacks; convert the file to UTF-8."
            ) from None


def _without_mark(data: bytes) -> str:
    sample = data[:2_000]
    if len(data) % 2 or len(sample) < 16:  # too short to tell
        return "utf-8"
    for encoding, upper, lower in (("utf-16-le", 1, 0), ("utf-16-be", 0, 1)):
        zeros = sample[upper::2].count(0)
        least = 0.4 * len(sample) / 2  # of the upper bytes, in texts of which most characters are ASCII
        if zeros > least and not sample[lower::2].count(0):
            return encoding
    return "utf-8"


def _encoded(mark: bytes, encoding: str, text: str) -> bytes:
    return mark + text.encode(encoding)


def codec_of(name: str) -> str | None:
    """Return Python's name of the codec that a declared encoding stands for; `None` if it is not of the list."""
    if not _NAME.fullmatch(name):
        return None
    try:
        found = codecs.lookup(name).name
    except LookupError:
        return None
    return found if found in _KNOWN else None
