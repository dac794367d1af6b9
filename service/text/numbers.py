"""Numbers in texts: their positions, and their form in each language."""

import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

DIGITS = re.compile(r"\d+")  # of any script
MASK = "\0"

_SPACES = " \u00a0\u2009\u202f"
# A number with its separators; thousands may be separated by spaces. Other signs, as in ranges, separate numbers.
_NUMBER = re.compile(
    rf"(?:(?<![^\s(\[{{,;:=\0])(?<!\d[ ,;:])[-−])?"
    rf"(?:(?<!\d)(?<!\d[.,:/])\d{{1,3}}(?:[{_SPACES}]\d{{3}})++(?!\d)(?:[.,]\d+)?|\d+(?:[.,:/’'٫٬]\d+)*)"
)

# How languages separate thousands, and fractions.
_SEPARATORS = {
    **dict.fromkeys(("en", "zh", "ja", "ko", "hi", "th", "he", "ms", "bn", "ta", "te", "mr", "ur", "sw"), ",."),
    **dict.fromkeys(("de", "es", "it", "pt", "nl", "da", "el", "tr", "id", "ro", "hr", "sl", "sr", "vi", "ca"), ".,"),
    **dict.fromkeys(("fr", "ru", "uk", "pl", "cs", "sk", "bg", "sv", "nb", "nn", "no", "fi", "hu"), "\u00a0,"),
    **dict.fromkeys(("et", "lv", "lt", "be", "kk"), "\u00a0,"),
}


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text, with its minus; `parts` are its digits between separators, in ASCII."""

    start: int
    end: int
    text: str
    parts: tuple[str, ...]

    @property
    def is_negative(self) -> bool:
        return not self.text[0].isdecimal()


class Languages(NamedTuple):
    """The primary subtags of a source's and its translation's language, such as "de"."""

    source: str
    target: str


def find_numbers(text: str) -> list[Number]:
    return [
        Number(*found.span(), found[0], tuple(map(_ascii, DIGITS.findall(found[0]))))
        for found in _NUMBER.finditer(text)
    ]


def in_place_of(number: Number, wrong: str, languages: Languages) -> str:
    """Return how a number is written in place of a wrong one, if need be with the points and commas of that one."""
    if (right := localized(number.text, languages)) != number.text:
        return right
    sign, digits, separators = number.text[: number.is_negative], number.parts, DIGITS.split(wrong)[1:-1]
    if 1 < len(digits) == len(separators) + 1 and {*separators, *DIGITS.split(number.text)[1:-1]} <= {".", ","}:
        return sign + "".join(each for pair in zip(digits, (*separators, ""), strict=True) for each in pair)
    return number.text


def localized(number: str, languages: Languages, *, is_amount: bool = False) -> str:
    """Return a number with its thousands separated as in the target's language; unchanged if it has none.

    The fraction of an amount changes even then; "3.2" may be a section or a version.
    """
    read, wanted = _SEPARATORS.get(languages.source), _SEPARATORS.get(languages.target)
    if read is None or wanted is None:
        return number
    groups, fraction = map(re.escape, read)
    if not re.fullmatch(rf"[-−]?\d{{1,3}}(?:{groups}\d{{3}})+(?:{fraction}\d+)?", number) and not (
        is_amount and re.fullmatch(rf"\d+{fraction}\d+", number)
    ):
        return number
    return number.translate(str.maketrans(read, wanted))


def _ascii(digits: str) -> str:
    return digits if digits.isascii() else "".join(str(unicodedata.decimal(digit)) for digit in digits)
