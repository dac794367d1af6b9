"""Names of encodings in declarations of files, and the codecs of a closed list that they stand for."""

import codecs
import re

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


def codec_of(name: str) -> str | None:
    """Return Python's name of the codec that a declared encoding stands for; `None` if it is not of the list."""
    if not _NAME.fullmatch(name):
        return None
    try:
        found = codecs.lookup(name).name
    except LookupError:
        return None
    return found if found in _KNOWN else None
