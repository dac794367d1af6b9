"""Identifiers and amounts in plain texts, which a translation must have exactly.

Identifiers are machine-readable names, addresses and codes, which stay; amounts are written as in the target's
language.
"""

import functools
import re
from collections.abc import Iterator

from service.domain.checkpoint import checkpoint
from service.text.numbers import Languages, localized
from service.text.placeholders.kinds import KEYS, MODIFIERS
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
# Of a clause: a mark, such as (a) or (iii), and what may be before the marks. Spaces are before two marks or more.
_MARK = r"(?:\((?:\d{1,3}[A-Za-z]?|[a-z]{1,2}|[A-Z]{1,2}|[ivxl]{1,6}|[IVXL]{1,6})\))"
_CLAUSE = (
    rf"(?:\d{{1,4}}[A-Za-z]?(?:[.-]\d{{1,4}}[A-Za-z]?){{0,5}}(?=\(|[ ]{_MARK}[ ]?\()"
    rf"|[IVXL]{{1,6}}(?=\(\d|{_MARK}\()|(?={_MARK}\())"
)

# A name with "&" between spaces is one only if no words are likely: "R & D", not "Save & Close".
_CAPITALIZED = r"[A-Z0-9À-ÖØ-Þ][\w]{0,40}+"
_FIRM = rf"(?P<name>{_CAPITALIZED}) & (?:(?P=name)|Sons|Co|Company|Cie|Partners|Brothers|Associates)"

# Calls: "open(path, 'r')" is one, "file(s)" and "Rome(Italy)" are words. A space in one is beside a sign.
_STRING = "(?:\"[^\"\n\r]{0,100}+\"|'[^'\n\r]{0,100}+'|“[^”\n\r]{0,100}+”|‘[^’\n\r]{0,100}+’)"
_ARGUMENT = rf"(?:{_STRING}|[^\s()\"'“‘]|(?<=[,;:=+*/<>|&-])[ ]|[ ](?=[!=+*/<>|&-]))"
_ARGUMENTS = rf"\((?:{_ARGUMENT}|\({_ARGUMENT}{{0,60}}+\)){{0,100}}+\)"
_NAME = r"[A-Za-z_][\w]{0,60}+(?:\.[A-Za-z_][\w]{0,60}+){0,8}+"
_MEMBER = r"(?:(?<!\.)\.(?=[A-Za-z_]))?"  # what a name may begin with
# What of code the parentheses behind a word must have: none, strings or signs, variables, another call, numbers, which
# pages of manuals have, too: apt-get(8). One word is enough only behind what is no word itself.
_OF_CODE = r"(?=\((?:\)|[^()\n\r]{0,100}[\"'“‘=_{\[]|[a-z](?:, ?[a-z]){1,5}\)|[xyz]\)|[\w.]{1,60}\())"
_WITH_NUMBER = r"(?:[a-z][\w]{0,60}+(?:[.-][\w]{1,60}+){0,3}+|[A-Z][A-Z0-9.]{0,30}+)(?=\([^()\n\r]{0,100}\d)"
_FUNCTION = r"(?:len|str|int|dict|enumerate|isinstance|sizeof|typeof|printf|strlen|malloc|sqrt|sin|cos|tan|exp)"
_CALL = (
    rf"(?=[\w.-]{{1,100}}[(\[])(?:(?:{_MEMBER}{_NAME}{_OF_CODE}|{_WITH_NUMBER}|{_FUNCTION}(?=\([\w.]{{4,60}}\)))"
    rf"{_ARGUMENTS}(?:\.[\w]{{1,60}}+(?:{_ARGUMENTS})?){{0,8}}"
    rf"|{_NAME}(?:\[(?:0|-1|{_STRING})\]){{1,4}})"  # args[0]; others may be notes
)
# Operators that sentences do not have, with what they compare; numbers behind "<=" are written as others are.
_OPERATOR = r"(?:[!=]==?|&&|\|\||[+*/-]=)"
_OPERAND = rf"[\w]{{1,60}}+(?:\.[\w]{{1,60}}+){{0,8}}+(?:{_ARGUMENTS})?"
_COMPARISON = (
    rf"(?:if|while|for|switch)[ ]?(?=\([^()\n\r]{{0,100}}(?:{_OPERATOR}|[<>]=|;)){_ARGUMENTS}"
    rf"|{_OPERAND}(?:[ ]?{_OPERATOR}[ ]?!?{_OPERAND}){{1,4}}|[<>]=[ ]?(?=[A-Za-z_]){_OPERAND}"
)

# Keys that are held together: what holds, how, and with what.
_HELD = rf"(?:(?:{MODIFIERS})(?:[+-]|[ ][+][ ]|/(?=(?:{MODIFIERS})[+-]))|[⌘⌥⇧⌃][+-]?)"
_KEY = rf"(?:(?:{KEYS}|[0-9a-z]|(?<=[+ ])(?:{MODIFIERS}))(?![\w]|-[\w])|(?<=[+])(?:[^\s\w]|[\w]{{2,12}}))"

# Emoji and signs like them (but no arrows), which belong to the number directly behind them.
_EMOJIS = "\u231a\u231b\u23e9-\u23fa\u2600-\u2767\u2b50-\u2bff\U0001f000-\U0001faff"
_EMOJI = f"[{_EMOJIS}]\ufe0f?[ ]?"
_CIRCLED = "①-⓿❶-➓㉈-㉟㊱-㊿"  # numbers that a tokenizer takes for others

# In order of precedence: of several at the same position, the longest come first. All repetitions are bounded, so that
# any text takes linear time. "\w" stands for `_LETTERS`, of which none precedes or follows a match.
_KINDS = (
    rf"(?=[A-Za-z ]{{2,9}}[+/-]|[⌘⌥⇧⌃])(?i:{_HELD}{{1,4}}{_KEY})",  # Ctrl+Shift+P, Alt-F4, ⌘S
    rf"{_CAPITALIZED}(?:&(?:amp;)?{_CAPITALIZED}){{1,5}}(?!&)|[A-Z]{{1,2}} & [A-Z]{{1,2}}|{_FIRM}",  # AT&T, Q&A
    rf"{_CLAUSE}(?:[ ]?{_MARK}){{1,8}}(?:[-–]{_MARK})?",  # 4.2(a)(iii), 6 (1) (f), II(3), (a)(i)
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
    _COMPARISON,  # if (a == b), x >= 5, >= end
    _CALL,  # print("x"), os.path.join(a, b).x
    rf"{_NAME}(?:::{_NAME}){{1,8}}(?:{_ARGUMENTS})?",  # std::vector, open.xlsx::read.xlsx
    # Paths and files
    rf"(?:[A-Za-z]:|\\\\{_PART})\\(?:{_FOLDER}\\){{0,20}}(?:{_PART}(?<![.-]))?",  # C:\Program Files\x, \\server\share
    rf"(?:~|\.{{1,2}})?/(?:{_PART}/){{0,20}}{_PART}(?<![.-])/?",  # /etc/passwd, ./x, ~/x/
    rf"(?:{_PART}/){{1,20}}[\w+@~-]{{0,60}}\.[a-z0-9]{{1,5}}",  # src/main.c
    rf"(?<!\.)(?:\*\*?/)?(?:\*|[\w+-][\w.+-]{{0,99}})\.(?:{_FILES})(?!\.[\w])",
    # Names of programmers
    r"[@#]?[\w]{0,60}[A-Za-z0-9]_[A-Za-z0-9][\w]{0,60}(?:(?:\.|::|->)[\w]{1,60}){0,8}"
    rf"(?:{_ARGUMENTS})?",  # user_name
    r"_{1,2}[A-Za-z][\w]{1,60}",
    r"(?<![^\n\r(\[\"'“‘])\.[a-z][\w]{1,60}(?![ ]?[\w])",  # .usage by itself; "one .two" may be a slip
    # os.path, example.com, java.util.List
    rf"[a-z_][\w]{{1,60}}(?:\.[a-z_][\w]{{1,60}}){{1,8}}(?:\.[A-Z][\w]{{1,60}}){{0,3}}(?:{_ARGUMENTS})?",
    r"[A-Z][\w]{1,60}(?:\.[A-Z][\w]{1,60}){2,8}",  # System.Text.Json; two parts may be a missing space
    # getElementById; iPhone may be inflected
    rf"{_MEMBER}[a-z]{{2,30}}[A-Z][A-Za-z0-9]{{0,60}}(?:\.[\w]{{1,60}}){{0,8}}(?:{_ARGUMENTS})?",
    rf"[A-Z][\w]{{0,60}}[a-z][A-Z][\w]{{0,60}}(?:(?:\.[\w]{{1,60}}){{1,8}}(?:{_ARGUMENTS})?|{_ARGUMENTS})",  # MyClass.f
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
    r"\d{2,9}(?:-[A-Z0-9]{1,12}){3,6}",  # 1240-DS-OPT-SIGH
    r"[A-Z]{1,10}\d{3,20}[A-Z]{0,5}\d{0,10}",  # ISO9001
    r"[A-Za-z][a-z]{1,40}\d{1,20}",  # python3
    r"[A-Z]{2,10}-\d{1,20}",  # UTF-8
)
_IDENTIFIER = re.compile(
    rf"(?<![\w])(?:{_EMOJI}(?=[\d+(]))?(?:{'|'.join(_KINDS)})(?![\w])|[{_CIRCLED}]".replace(r"\w", _LETTERS)
)

# One of these is in every identifier: most sentences have none, and need no further search.
_SURE = rf"\d²³⁴-⁹₀-₉_/\\@#=+&|⌘⌥⇧⌃{_CIRCLED}"
_HINT = re.compile(
    rf"[{_SURE}A-Z:*.(\[-](?:(?<=[{_SURE}])|(?<=[a-z][A-Z])|(?<=:)(?::|latest)|(?<=\*)\.|(?<=\.)[^\W\d_]"
    rf"|(?<=[\w)]\()|(?<=\w\[)[\"']|(?<=--)|(?<=[ (\[]-)[A-Za-z]|(?<=-)(?i:[a-z]|{KEYS})(?![A-Za-z]))"
)

# Of amounts: numbers with a unit's symbol, a currency or half of the day. Models garble them: "5 kg" becomes "5 g",
# "USD 20" becomes "20 EUR", "3:30 pm" becomes "3.30". Symbols of units (SI, ISO 80000) and codes of currencies
# (ISO 4217) are the same in all languages of an alphabet.
_SPACE = "[ \u00a0\u202f]?"
_VALUE = (
    r"(?:\d{1,3}(?:[ \u00a0\u202f]\d{3}){1,6}(?!\d)(?:[.,]\d{1,9})?"
    r"|\d{1,15}(?:[.,/’']\d{1,15}){0,6})(?:[eE][+-]?\d{1,3})?"
)
_NUMBER = rf"[-−]?(?:{_VALUE}{_SPACE}[-–x×]{_SPACE}){{0,2}}{_VALUE}"
_UNITS = (
    "[kmµμ]?g|mcg|lbs?|oz|[kcdmµμn]?m[²³23]?|ft|yd|mph|[mcdµμh]?[lL]|gal|[mµμn]s|[kMGT]?Hz"
    "|[kKMGTP]i?B|[kKMGT]?bit|[kKMG]bps|[mkMGT]?Wh?|[mkµμ]?V|k?VA|m?Ah|mA|[kM]?Ω|[µμnp]F"
    "|[kMG]?J|k?cal|k?N|Nm|[hkM]?Pa|mbar|mmHg|psi|[mµμ]?mol|lm|lx|cd|dBA?|rpm|hp|°[ ]?[CFK]?|K|px|dpi|ppi|fps|pp[mb]|IU"
)
# Words in other languages than these; the last ones even in English, before a noun.
_WORDLIKE = r"(?<!\d)s|sec|min|h|hrs?|ha|t|(?:A|bar|pt)(?=[.,;:!?)]|\Z|[ ](?:of|or|and|is|for|at|per|to|in|was|were)\b)"
_WITH_WORDLIKE = ("en", "de", "fr")
_CODES = (
    "(?:AED|ARS|AUD|BDT|BGN|BRL|BTC|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|ETH|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KES|KRW|KZT"
    "|LKR|MAD|MXN|MYR|NGN|NOK|NPR|NZD|PEN|PHP|PKR|PLN|QAR|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|TZS|UAH|USD|VND|ZAR)"
)
_SCALE = "(?:bn|tn|[mkMBK])"  # billion, trillion, million, thousand
_MONEY = (
    rf"(?:{_CODES}|[A-Z]{{0,3}}[$€£¥₹]){_SPACE}{_NUMBER}{_SCALE}"
    rf"|{_CODES}{_SPACE}{_NUMBER}|[$€£¥₹]?{_NUMBER}{_SCALE}?{_SPACE}{_CODES}|{_CODES}"
)
_HALF = r"[ \u00a0\u202f]?(?:[AaPp][Mm]|[AaPp]\.[ ]?[Mm](?:\.(?=[ ]?[,;:)a-z–-]))?)(?!\w|[ ](?:I|not)\b)"
_HOUR = r"\d{1,2}(?:[.:]\d\d)?"
_TIMES = rf"{_HOUR}(?:(?:{_HALF})?[ ]?[-–][ ]?{_HOUR})?{_HALF}"
_LAST_STOP = re.compile(r"\.(?=[ \t]{0,9}(?:[\n\r]|\Z))")
_ONLY_TIMES = re.compile(rf"(?:(?:from|to|at|until|till?|by|and|or|through)\b|{_TIMES}|[^\w\n\r])*+")
_LABEL_END = re.compile(r":\s|\t|  |[\n\r]")  # as in `Open: 9 a.m. to 5 p.m.`
# Languages that count hours from 0 to 23.
_WITH_24_HOURS = "be|bg|ca|cs|da|de|el|es|et|fi|fr|hr|hu|it|kk|lt|lv|nb|nl|nn|no|pl|pt|ro|ru|sk|sl|sr|sv|tr|uk"

_ANY_VALUE = re.compile(_VALUE)
_ANY_HOUR = re.compile(r"(\d{1,2})(?:[.:](\d\d))?")
_ANY_HALF = re.compile(r"[AaPp](?=\.?[ ]?[Mm])")


def may_have_exact(text: str) -> bool:
    """Return whether a text may have digits or an identifier: a quick check."""
    return _HINT.search(text) is not None


def find_identifiers(text: str) -> list[Span]:
    """Find what must be kept as it is; sorted and disjoint, none across several lines, in linear time."""
    return [Span(*found.span()) for found in _matches(_IDENTIFIER, text)]


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
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


def find_amounts(text: str, languages: Languages) -> list[tuple[int, int, str]]:
    """Return where amounts begin and end, and how the target's language writes them; sorted, disjoint; linear time."""
    amounts = []
    for found in _matches(_amounts(languages), text):
        mark, (start, end) = found["mark"] or "", found.span()
        amount = text[start + len(mark) : end]
        if found.lastgroup == "times":
            end += _is_stop_of_time(text, start, end)
            amount = _clock(amount)
        else:
            amount = _localized(amount, languages)
        amounts.append((start, end, mark + amount))
    return amounts


def _is_stop_of_time(text: str, start: int, end: int) -> bool:
    """Return whether the full stop after a time does not end a sentence, as its line contains only times."""
    if _LAST_STOP.match(text, end) is None:
        return False
    before = _LABEL_END.split(text[max(0, start - _LONGEST) : start])[-1]
    return _ONLY_TIMES.fullmatch(before) is not None


@functools.lru_cache(maxsize=64)
def _amounts(languages: Languages) -> re.Pattern[str]:
    units = f"{_UNITS}|{_WORDLIKE}" if languages.source in _WITH_WORDLIKE else _UNITS
    per = r"(?:/(?:[A-Za-zµμ]{1,2}|min|mol|dl|100[ ]?(?:g|km|ml))[²³]?)?"
    kinds = [_MONEY, rf"{_NUMBER}[ \u00a0\u202f-]?(?:{units}){per}"]
    if languages.source == "en" and re.fullmatch(_WITH_24_HOURS, languages.target):
        kinds.insert(0, f"(?P<times>{_TIMES})")
    kinds.append(rf"(?(mark)[$€£¥₹]?{_VALUE}(?::\d\d){{0,2}}(?![-/:.]?\d)|(?!))")
    return re.compile(
        rf"(?=[\dA-Z$€£¥₹−{_EMOJIS}<>-])(?<![\w$€£¥₹])(?<!\d[.,:/’'])"
        rf"(?P<mark>(?:{_EMOJI}|[<>]=[ ]?)(?=[\d$€£¥₹−-]))?(?:{'|'.join(kinds)})(?![\w'’])"
    )


def _localized(amount: str, languages: Languages) -> str:
    return _ANY_VALUE.sub(lambda value: localized(value[0], languages, is_amount=True), amount)


def _clock(times: str) -> str:
    """Return one or two 12-hour times in 24-hour form; impossible ones unchanged."""
    hours = [(int(found[1]), found[2] or "00") for found in _ANY_HOUR.finditer(times)]
    halves = _ANY_HALF.findall(times.lower())
    if len(halves) < len(hours):  # 9-11 pm, 11-1 pm
        is_same = hours[0][0] % 12 <= hours[1][0] % 12
        halves.insert(0, halves[0] if is_same else "ap"["ap".index(halves[0]) - 1])
    if not all(0 < hour <= 12 and int(minutes) < 60 for hour, minutes in hours):
        return times
    clocks = (
        f"{hour % 12 + 12 * (half == 'p')}:{minutes}" for (hour, minutes), half in zip(hours, halves, strict=True)
    )
    return "–".join(clocks)
