"""Amounts in plain texts: numbers with a unit's symbol, a currency or half of the day, as a target language has them.

Models garble them: "5 kg" becomes "5 g", "USD 20" becomes "20 EUR", "3:30 pm" becomes "3.30". Symbols of units (SI,
ISO 80000) and codes of currencies (ISO 4217) are the same in all languages of an alphabet.
"""

import functools
import re

from service.text.identifiers import matches
from service.text.numbers import Languages, localized

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
# Languages that count hours from 0 to 23.
_WITH_24_HOURS = "be|bg|ca|cs|da|de|el|es|et|fi|fr|hr|hu|it|kk|lt|lv|nb|nl|nn|no|pl|pt|ro|ru|sk|sl|sr|sv|tr|uk"

_ANY_VALUE = re.compile(_VALUE)
_ANY_HOUR = re.compile(r"(\d{1,2})(?:[.:](\d\d))?")
_ANY_HALF = re.compile(r"[AaPp](?=\.?[ ]?[Mm])")


def find_amounts(text: str, languages: Languages) -> list[tuple[int, int, str]]:
    """Return where amounts begin and end, and how the target's language writes them; sorted, disjoint; linear time."""
    return [
        (*found.span(), _clock(found[0]) if found.lastgroup == "times" else _localized(found[0], languages))
        for found in matches(_amounts(languages), text)
    ]


@functools.lru_cache(maxsize=64)
def _amounts(languages: Languages) -> re.Pattern[str]:
    units = f"{_UNITS}|{_WORDLIKE}" if languages.source in _WITH_WORDLIKE else _UNITS
    per = r"(?:/(?:[A-Za-zµμ]{1,2}|min|mol|dl|100[ ]?(?:g|km|ml))[²³]?)?"
    kinds = [_MONEY, rf"{_NUMBER}[ \u00a0\u202f-]?(?:{units}){per}"]
    if languages.source == "en" and re.fullmatch(_WITH_24_HOURS, languages.target):
        kinds.insert(0, f"(?P<times>{_TIMES})")
    return re.compile(rf"(?=[\dA-Z$€£¥₹−-])(?<![\w$€£¥₹])(?<!\d[.,:/’'])(?:{'|'.join(kinds)})(?![\w'’])")


def _localized(amount: str, languages: Languages) -> str:
    return _ANY_VALUE.sub(lambda value: localized(value[0], languages, is_amount=True), amount)


def _clock(times: str) -> str:
    """Return a time of a half of the day, or two, by the clock of 24 hours; impossible ones as they are."""
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
