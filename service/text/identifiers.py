"""Identifiers in plain texts: names, addresses and codes of machines, which a translation must keep as they are."""

import re
from collections.abc import Iterator

from service.domain.checkpoint import checkpoint
from service.text.spans import Span

_WINDOW = 2_048  # searched at once, which holds the interpreter for that time
_LONGEST = 256  # a longer identifier is cut: words that long are no names

_FILES = (
    "7z|apk|avi|avif|bak|bat|bin|bmp|bz2|c|cc|cfg|class|cmd|conf|cpp|crt|cs|css|csv|dart|db|deb|dll|dmg|docm|docx?|ebook|eml"
    "|env|epub|exe|flac|gif|go|gz|heic|hpp|html?|ico|img|ini|ipynb|iso|jar|java|jpe?g|js|json|jsonl|jsx|key|kt|lock|log"
    "|lua|md|mdx|mjs|mkv|mobi|mov|mp3|mp4|mpe?g|msi|odp|ods|odt|ogg|onnx|otf|parquet|patch|pdf|pem|php|pkl|plist|png|po|pot"
    "|pptx?|properties|ps1|psd|py|rar|rb|rpm|rs|rst|rtf|scss|sh|so|sql|sqlite3?|srt|svg|swift|tar|tex|tgz|tiff?|tmp|toml"
    "|ts|tsv|tsx|ttf|txt|vtt|vue|war|wasm|wav|webm|webp|whl|xlf|xliff|xlsm|xlsx?|xml|xz|ya?ml|zip|zst"
)
# Digits, and letters of scripts with spaces: names of machines may stand between others without any.
_LETTERS = r"0-9A-Za-z_\u00c0-\u0dff\u10a0-\u10ff\u1e00-\u1fff"
_PART = r"[\w.+@~-]{1,100}"  # of a path
_FOLDER = rf"{_PART}(?: {_PART}){{0,3}}"

# In order of precedence: of several at the same position, the longest come first. All repetitions are bounded, so that
# any text takes linear time. "\w" stands for `_LETTERS`, of which none precedes or follows a match.
_KINDS = (
    # Addresses of machines and checksums
    r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}",  # UUID (RFC 9562)
    r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}",  # MAC
    r"(?=[0-9A-Fa-f]{0,4}:(?:[0-9A-Fa-f]{0,4}:){1,7})(?=[^ ]{0,30}::|(?:[0-9A-Fa-f]{1,4}:){7})"
    r"(?:[0-9A-Fa-f]{1,4}|:)[0-9A-Fa-f:]{1,40}(?:::|[0-9A-Fa-f])(?:%[\w]{1,15})?(?:/\d{1,3})?",  # IPv6 (RFC 4291)
    r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2}|:\d{1,5})?",  # IPv4, a network, an address with a port
    # Times, telephone numbers and versions, which are often torn apart as they are, and written by other rules
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?",  # ISO 8601
    r"(?:\+\d{1,3}|00\d{1,3})(?:[ .()/-]{1,3}\d{1,12}){1,7}",  # E.123
    r"(?:1[ .-])?(?:\(\d{2,5}\)[ -]?|\d{3}[ .-])\d{3,4}[ .-]\d{4}",
    r"\(?0\d{1,5}\)?(?:[ ]?[/-][ ]?|[ ])\d{3,10}(?:[ -]\d{1,8}){0,3}",
    r"\d{3}-\d{4}",
    r"\d{4}(?:[ -]\d{4}){2,3}",  # cards
    r"\d{1,9}(?:-\d{1,9}){2,6}(?:-[Xx])?",  # ISBN, dates
    r"\d{1,2}/\d{1,2}/(?:\d{4}|\d\d)",  # whichever is the month
    r"(?:v|(?<=[Vv]ersion )|(?<=[Rr]elease ))\d{1,9}(?:\.\d{1,9}){1,5}(?:[-+]?[A-Za-z][\w.]{0,30}(?<!\.))?",
    r"(?!\d{1,3}(?:\.\d{3}){2,5}(?!\d))(?!\d\d?\.\d\d?\.(?:19|20)\d\d(?![\w]))\d{1,9}(?:\.\d{1,9}){2,5}"
    r"(?:[-+]?[A-Za-z][\w.]{0,30}(?<!\.))?",
    r"0x[0-9A-Fa-f]{1,64}",
    r"\d[\d.,]{0,20}(?:[ ]?[x×·*][ ]?10)?(?:\^[+-]?\d{1,4}|[⁺⁻]?[²³¹⁰⁴-⁹]{1,4})",  # 10^6
    r"(?=[a-f]{0,63}\d)(?=\d{0,63}[a-f])[0-9a-f]{7,128}",  # a checksum, a commit
    r"(?=[A-Za-z()]{1,12}[₀-₉])[A-Z](?:[A-Za-z()]|[₀-₉]){1,40}|[A-Za-z]{1,2}[⁺⁻]?[²³⁴-⁹]{1,3}",  # H₂O, mc²
    # Paths and files
    rf"(?:[A-Za-z]:|\\\\{_PART})\\(?:{_FOLDER}\\){{0,20}}(?:{_PART}(?<![.-]))?",  # C:\Program Files\x, \\server\share
    rf"(?:~|\.{{1,2}})?/(?:{_PART}/){{0,20}}{_PART}(?<![.-])/?",  # /etc/passwd, ./x, ~/x/
    rf"(?:{_PART}/){{1,20}}[\w+@~-]{{0,60}}\.[a-z0-9]{{1,5}}",  # src/main.c
    rf"(?<!\.)(?:\*\*?/)?(?:\*|[\w+-][\w.+-]{{0,99}})\.(?:{_FILES})(?!\.[\w])",
    # Names of programmers
    r"[@#]?[\w]{0,60}[A-Za-z0-9]_[A-Za-z0-9][\w]{0,60}(?:(?:\.|::|->)[\w]{1,60}){0,8}(?:\(\))?",  # user_name
    r"_{1,2}[A-Za-z][\w]{1,60}",
    r"[A-Za-z_][\w]{0,60}(?:::[A-Za-z_][\w]{0,60}){1,8}(?:\(\))?",  # std::vector
    r"[A-Za-z_][\w]{0,60}(?:\.[A-Za-z_][\w]{0,60}){0,8}\(\)",  # print()
    r"[a-z_][\w]{1,60}(?:\.[a-z_][\w]{1,60}){1,8}",  # os.path, example.com
    r"[A-Z][\w]{1,60}(?:\.[A-Z][\w]{1,60}){2,8}",  # System.Text.Json; two parts may be a missing space
    r"[a-z]{2,30}[A-Z][A-Za-z0-9]{0,60}(?:\.[\w]{1,60}){0,8}(?:\(\))?",  # getElementById; iPhone may be inflected
    r"[A-Z][\w]{0,60}[a-z][A-Z][\w]{0,60}(?:(?:\.[\w]{1,60}){1,8}(?:\(\))?|\(\))",  # MyClass.method
    # Options and arguments of programs. A dash before a word may be that of a speaker, except after "Use" or "(".
    r"--[a-z][\w-]{1,60}(?:=[\w./:@-]{1,60}(?<![.:]))?",
    r"(?:(?<=[\w,:|] )|(?<=[(\[/|]))-"
    r"(?:[a-zB-HJ-NP-Z]|[b-df-hj-np-tv-z]{2,4}|it|l?al?|jar|name|type|exec|help|version|[A-Z]{2,20}|[A-Za-z]{1,12}\d[\w.]{0,20}(?<!\.))"
    r"(?:=[\w./:@-]{1,60}(?<![.:]))?",
    r"-[b-df-hj-np-tv-z](?=,? --[a-z])",
    # key=value, pip==1.0, host:80
    r"(?:[A-Za-z_][\w.-]{1,60}[=<>~!]?=|[a-z][\w.-]{1,60}:(?=\d\d|latest))[\w./-]{1,60}(?<![./-])",
    r"[@#](?=\d{0,60}[A-Za-z\u00c0-\u0dff])[\w]{2,60}",  # handles and hashtags
    # Codes
    r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?",  # IBAN (ISO 13616)
    r"[A-Z]{1,10}(?:[-/][A-Z0-9]{1,12}){0,3}[-/](?=[A-Z0-9-]{0,30}\d[A-Z-]{0,8}\d[A-Z-]{0,8}\d)"
    r"[A-Z0-9]{1,20}(?:-[A-Z0-9]{1,20}){0,4}",  # CVE-2021-44228
    r"[A-Z]{1,10}\d{3,20}[A-Z]{0,5}\d{0,10}",  # ISO9001
    r"[A-Za-z][a-z]{1,40}\d{1,20}",  # python3
    r"[A-Z]{2,10}-\d{1,20}",  # UTF-8
)
_IDENTIFIER = re.compile(rf"(?<![\w])(?:{'|'.join(_KINDS)})(?![\w])".replace(r"\w", _LETTERS))

# One of these is in every identifier: most sentences have none, and need no further search.
_SIGN = re.compile(r"[0-9²³⁴-⁹₀-₉_/\\@#=]")
_OPTION = re.compile(r"--|[ (\[|]-[A-Za-z]")
_DIGIT = re.compile(r"\d")
_DOT = re.compile(r"\.[^\W\d_]")
_HUMP = re.compile(r"[a-z][A-Z]")


def may_have_exact(text: str) -> bool:
    """Return whether a text may have digits or an identifier: a quick check."""
    return (
        _SIGN.search(text) is not None
        or "::" in text
        or "()" in text
        or "*." in text
        or ":latest" in text
        or ("-" in text and _OPTION.search(text) is not None)
        or (not text.isascii() and _DIGIT.search(text) is not None)
        or ("." in text[:-1] and _DOT.search(text) is not None)
        or (not text[1:].islower() and _HUMP.search(text) is not None)
    )


def find_identifiers(text: str) -> list[Span]:
    """Find what must be kept as it is; sorted and disjoint, none across several lines, in linear time."""
    return [Span(*found.span()) for found in matches(_IDENTIFIER, text)]


def matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield a pattern's matches, from window to window; it should match no more than `_LONGEST` characters."""
    position = 0
    while position < len(text):
        checkpoint()
        start, end = position, position + _WINDOW
        position = end
        for found in pattern.finditer(text, start, end + _LONGEST):
            if found.start() >= end:  # left to the next window, which may see more of it
                break
            position = max(end, found.end())
            yield found
