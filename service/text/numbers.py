"""Numbers of a source and of its translation, compared: the same digits, however they are separated or spelt."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from service.domain.checkpoint import paced
from service.text.number_words import count_written, names_month, spells_numbers, tells_hour
from service.text.spans import Span

_SPACES = " \u00a0\u2009\u202f"
# A number with its separators; thousands may be separated by spaces. Other signs, as in ranges, separate numbers.
_NUMBER = re.compile(
    rf"(?:(?<![^\s(\[{{,;:=\0])(?<!\d[ ,;:])[-−])?"
    rf"(?:(?<!\d)(?<!\d[.,:/])\d{{1,3}}(?:[{_SPACES}]\d{{3}})++(?!\d)(?:[.,]\d+)?|\d+(?:[.,:/’'٫٬]\d+)*)"
)
_MINUS = re.compile(
    r"(?:[-−–]|(?<!\w)(?:minus|moins|menos?|минус|мінус|eksi|माइनस|ऋणात्मक))\s?\Z|(?:[负負]|零下|マイナス|영하)\s?\Z",
    re.IGNORECASE,
)
_BEFORE = 12  # characters in which a word for a minus may be
_DIGITS = re.compile(r"\d+")
_MASK = "\0"

# Words for powers of ten, and the languages that have others: 2.5 million are 25 lakh, 100 million 1亿.
_SCALE = re.compile(r"\s?(?:[bmt]n\b|hundred|thousand|[bm]illi|trilli|tausend|mrd|mio|lakh|crore)", re.IGNORECASE)
_OTHER_SCALES = frozenset(
    ["bn", "gu", "hi", "ja", "kn", "ko", "ml", "mr", "my", "ne", "pa", "ta", "te", "th", "ur", "zh"]
)

_HALF_OF_DAY = re.compile(
    r"\d\s?[ap]\.?m\b|\b(?:o.clock|afternoon|evening|tonight|night|morning|noon)\b", re.IGNORECASE
)
_MOST_APART = 2  # characters between digits that a model tore apart
_LEAST_LIKENESS = 0.4  # of a number and of the digits that stand for it
_MOST_PAIRED = 8
_LONGEST_WORD = 2  # digits of numbers that have words here
_LONGEST_LIKE = 64  # digits; longer numbers are not compared digit by digit

_Form = tuple[str, ...]

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
        """Return whether it has a minus."""
        return not self.text[0].isdecimal()


class Comparison(NamedTuple):
    """Numbers of a source that its translation lacks, and places in the translation of digits that it has in excess."""

    lost: tuple[Number, ...] = ()
    extra: tuple[Span, ...] = ()


class Languages(NamedTuple):
    """The primary subtags of a source's and its translation's language, such as "de"."""

    source: str
    target: str


def has_digits(text: str) -> bool:
    """Return whether a text has digits, of any script."""
    return _DIGITS.search(text) is not None


def masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text of the same length without the digits in the spans, which are sorted and disjoint."""
    parts, done = [], 0
    for start, end in spans:
        parts += [text[done:start], _MASK * (end - start)]
        done = end
    return "".join((*parts, text[done:]))


def find_numbers(text: str) -> list[Number]:
    """Return a text's numbers, in order."""
    return [
        Number(*found.span(), found[0], tuple(map(_ascii, _DIGITS.findall(found[0]))))
        for found in _NUMBER.finditer(text)
    ]


def compare(source: str, translation: str, languages: Languages) -> Comparison:
    """Compare the numbers of a source and its translation, in linear time.

    A number survives with its minus and any separators, thousands separated or not; a small one also as a word or in
    Roman numerals, a month by its name, an hour on either clock. Digits are in excess if neither a number nor a word of
    the source explains them.
    """
    runs = find_numbers(translation)
    by_form: dict[_Form, list[int]] = defaultdict(list)
    for index in reversed(range(len(runs))):  # lists are emptied from their ends: first come, first served
        for form in _forms(runs[index]):
            by_form[form].append(index)
    is_free = [True] * len(runs)
    missing = []
    unsigned = []  # numbers that have lost their minus, and what is left of them
    for number in paced(find_numbers(source)):
        at = _taken(_forms(number), by_form, is_free)
        if at is None:
            at = _taken(_further_forms(number, source, languages), by_form, is_free)
        if at is None:
            missing.append(number)
        elif number.is_negative and not _has_minus(translation, runs[at]):
            unsigned.append((number, Span(runs[at].start, runs[at].end)))
    if not missing and not unsigned and not any(is_free):
        return Comparison()
    parts = _Parts(run for run, free in zip(runs, is_free, strict=True) if free)
    words = _Words(source, translation, languages)
    lost = [number for number in paced(missing) if not parts.take(number, words)]
    extra = [place for place, digits in paced(parts.left()) if not _is_word(digits, source, languages.source)]
    if not lost:
        extra = [each for each in extra if not _is_spelt(translation[each.start : each.end], source, languages.source)]
    return Comparison(
        (*lost, *(number for number, _ in unsigned)), tuple(sorted([*extra, *(place for _, place in unsigned)]))
    )


def substitutes(comparison: Comparison, translation: str) -> list[tuple[Number, Span]]:
    """Return for each lost number the digits that obviously stand for it, in order; empty unless all are found."""
    if len(comparison.lost) > _MOST_PAIRED:
        return []
    for extra in (comparison.extra, _joined(comparison.extra, translation)):
        if len(extra) == len(comparison.lost) and (found := _paired(comparison.lost, extra, translation)):
            return found
    return []


def in_place_of(number: Number, wrong: str, languages: Languages) -> str:
    """Return how a number is written in place of a wrong one: with the same separators, if there are as many."""
    sign, digits, separators = number.text[: number.is_negative], number.parts, _DIGITS.split(wrong)[1:-1]
    if 1 < len(digits) == len(separators) + 1 and not any(map(str.isspace, separators)):
        return sign + "".join(each for pair in zip(digits, (*separators, ""), strict=True) for each in pair)
    return localized(number.text, languages)


def localized(number: str, languages: Languages) -> str:
    """Return a number with its thousands separated as in the target's language; unchanged if it has none."""
    read, wanted = _SEPARATORS.get(languages.source), _SEPARATORS.get(languages.target)
    if read is None or wanted is None:
        return number
    groups, fraction = map(re.escape, read)
    if not re.fullmatch(rf"[-−]?\d{{1,3}}(?:{groups}\d{{3}})+(?:{fraction}\d+)?", number):
        return number
    return number.translate(str.maketrans(read, wanted))


def _ascii(digits: str) -> str:
    return digits if digits.isascii() else "".join(str(unicodedata.decimal(digit)) for digit in digits)


def _forms(number: Number) -> set[_Form]:
    """Return a number's parts, also with thousands not separated, and without a fraction of zeros."""
    parts = number.parts
    forms = {parts}
    if len(parts) == 1:
        return forms
    end = 1
    while end < len(parts) and len(parts[end]) == 3 and len(parts[0]) <= 3:
        end += 1
    if ":" not in number.text and "/" not in number.text:
        forms.add(("".join(parts[:end]), *parts[end:]))
    return forms | {form[:1] for form in forms if len(form) == 2 and len(form[1]) < 3 and not form[1].strip("0")}


def _further_forms(number: Number, source: str, languages: Languages) -> set[_Form]:
    """Return the forms that are accepted if a translation has none of `_forms`: of scaled numbers, and of times."""
    forms = set[_Form]()
    if not _OTHER_SCALES.isdisjoint(languages) and _SCALE.match(source, number.end):
        significant = "".join(number.parts).rstrip("0")
        forms |= {(significant + "0" * zeros,) for zeros in range(12)}
        forms |= {(significant[:at], significant[at:]) for at in range(1, min(len(significant), 12))}
    hour, *rest = number.parts
    has_halves = _HALF_OF_DAY.search(source) is not None
    if len(rest) <= 1 and len(hour) <= 2 and (":" in number.text or has_halves):
        hours = {int(hour)} | ({int(hour) % 12, int(hour) % 12 + 12} if has_halves and int(hour) <= 12 else set())
        forms |= {(form, *rest) for each in hours for form in (str(each), f"{each:02}")}
        forms |= {form[:1] for form in forms if form[1:] == ("00",)}
    return forms


def _has_minus(text: str, number: Number) -> bool:
    return number.is_negative or _MINUS.search(text, max(0, number.start - _BEFORE), number.start) is not None


def _taken(accepted: Iterable[_Form], by_form: dict[_Form, list[int]], is_free: list[bool]) -> int | None:
    """Take the first number that has one of these forms, and return its index; `None` if there is none."""
    for form in sorted(accepted, key=len, reverse=True):
        while found := by_form.get(form):
            at = found.pop()
            if is_free[at]:
                is_free[at] = False
                return at
    return None


class _Parts:
    """The parts of those numbers of a translation that are none of the source."""

    def __init__(self, runs: Iterable[Number]) -> None:
        self._places: dict[str, list[Span]] = defaultdict(list)
        for run in runs:
            for found, digits in zip(_DIGITS.finditer(run.text), run.parts, strict=True):
                self._places[digits].append(Span(run.start + found.start(), run.start + found.end()))

    def take(self, number: Number, words: "_Words") -> bool:
        """Take the parts of a number, which may be apart or in words; return false if one is missing."""
        is_whole = len(number.parts) == 1
        if ":" in number.text and words.tell_hour(number.parts[0]):
            return True
        if not is_whole and not _is_divisible(number):
            return False
        taken = []
        for digits in number.parts:
            forms = {digits} if is_whole else {digits, digits.lstrip("0"), digits.zfill(2)}
            found = next((form for form in forms if self._places.get(form)), None)
            if found is not None:
                taken.append((found, self._places[found].pop(0)))
            elif not (words.take(digits) if is_whole else words.name_month(digits)):
                for form, place in taken:
                    self._places[form].insert(0, place)
                return False
        return True

    def left(self) -> list[tuple[Span, str]]:
        """Return the parts that were not taken, in order."""
        return sorted((place, digits) for digits, places in self._places.items() for place in places)


class _Words:
    """The numbers that a translation has in words, besides those that the source has so, too."""

    def __init__(self, source: str, translation: str, languages: Languages) -> None:
        self._source = source
        self._translation = translation
        self._languages = languages
        self._num_taken: Counter[int] = Counter()

    def take(self, digits: str) -> bool:
        """Take the word for a number; return false if there is none left."""
        if len(digits) > _LONGEST_WORD:
            return False
        value = int(digits)
        num_known = count_written(value, self._source, self._languages.source) + self._num_taken[value]
        if count_written(value, self._translation, self._languages.target) <= num_known:
            return False
        self._num_taken[value] += 1
        return True

    def tell_hour(self, digits: str) -> bool:
        """Return whether a time of this hour is told in words."""
        return len(digits) <= _LONGEST_WORD and tells_hour(int(digits), self._translation, self._languages.target)

    def name_month(self, digits: str) -> bool:
        """Return whether a month is named."""
        return _is_month(digits, self._translation, self._languages.target)


def _is_divisible(number: Number) -> bool:
    """Return whether a number's parts have a meaning by themselves: those of times, dates and fractions."""
    is_date = len(number.parts) == 3 and 4 in (len(number.parts[0]), len(number.parts[2]))
    return is_date or ":" in number.text or "/" in number.text


def _is_word(digits: str, text: str, language: str) -> bool:
    is_written = len(digits) <= _LONGEST_WORD and count_written(int(digits), text, language) > 0
    return is_written or _is_month(digits, text, language)


def _is_month(digits: str, text: str, language: str) -> bool:
    return len(digits) <= _LONGEST_WORD and names_month(int(digits), text, language)


def _is_spelt(digits: str, source: str, language: str) -> bool:
    """Return whether a source may have these digits in words, or as signs: raised, or in fractions."""
    signs = _DIGITS.findall(unicodedata.normalize("NFKC", "".join(filter(_is_sign, source))))
    return digits in signs or (len(digits) > 1 and spells_numbers(source, language))


def _is_sign(character: str) -> bool:
    return unicodedata.category(character) == "No"


def _joined(places: Sequence[Span], text: str) -> list[Span]:
    """Join digits that are next to each other: parts of a number that the model tore apart."""
    joined: list[Span] = []
    for place in places:
        between = text[joined[-1].end : place.start] if joined else ""
        if joined and len(between) <= _MOST_APART and not any(map(str.isalnum, between)) and _MASK not in between:
            joined[-1] = Span(joined[-1].start, place.end)
        else:
            joined.append(place)
    return joined


def _paired(lost: Sequence[Number], extra: Sequence[Span], translation: str) -> list[tuple[Number, Span]]:
    waiting, found = list(lost), []
    for place in extra:
        digits = "".join(_DIGITS.findall(translation[place.start : place.end]))
        likeness, best = max(((_likeness(each, digits), each) for each in waiting), key=lambda pair: pair[0])
        if likeness < _LEAST_LIKENESS:
            return []
        waiting.remove(best)
        found.append((best, place))
    return found


def _likeness(number: Number, digits: str) -> float:
    wanted = "".join(number.parts)
    if max(len(wanted), len(digits)) > _LONGEST_LIKE:
        return 0.0
    return SequenceMatcher(None, wanted, digits, autojunk=False).ratio()
