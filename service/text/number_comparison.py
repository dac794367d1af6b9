"""Comparison of the numbers of a source and its translation: the same digits, however they are separated or spelt."""

import functools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from service.domain.checkpoint import paced
from service.text.number_words import count_written, names_hour, names_month, spells_numbers
from service.text.numbers import DIGITS, Languages, Number, find_numbers
from service.text.spans import Span

_MINUS = re.compile(
    r"(?:[-−–]|(?<!\w)(?:minus|moins|menos?|минус|мінус|eksi|माइनस|ऋणात्मक))\s?\Z|(?:[负負]|零下|マイナス|영하)\s?\Z",
    re.IGNORECASE,
)
_BEFORE = 12  # characters in which a word for a minus may be
# Words for powers of ten, and the languages that have others: 2.5 million are 25 lakh, 100 million 1亿.
_SCALE = re.compile(r"\s?(?:[bmt]n\b|hundred|thousand|[bm]illi|trilli|tausend|mrd|mio|lakh|crore)", re.IGNORECASE)
_OTHER_SCALES = frozenset(
    ["bn", "gu", "hi", "ja", "kn", "ko", "ml", "mr", "my", "ne", "pa", "ta", "te", "th", "ur", "zh"]
)

_HALF_OF_DAY = re.compile(
    r"\d\s?[ap]\.?m\b|\b(?:o.clock|afternoon|evening|tonight|night|morning|noon)\b", re.IGNORECASE
)
_LONGEST_WORD = 2  # digits of numbers that have words here

# What is between the numbers of a range, a score or a share.
_RANGE = re.compile(
    r"\s?[-–—:/x×→]\s?"
    r"|\s(?:to|till|until|by|(?:out )?of|bis|von|à|au?|sur|al|de|di|su|až|z|do|tot|van|til|av|af|до|из)\s"
)

_Form = tuple[str, ...]
_Pair = tuple[Number, Number | None]  # of a source, and the same one in its translation

# How the parts of a number belong together: not at all, as those of a date or time, as those of a decimal number.
_SINGLE, _LOOSE, _TIGHT = range(3)


class Comparison(NamedTuple):
    """Numbers of a source that its translation lacks, and places in the translation of digits that it has in excess."""

    lost: tuple[Number, ...] = ()
    extra: tuple[Span, ...] = ()


class _Spelling:
    """The words of a text that stand for digits. Each question is answered once: there may be many."""

    def __init__(self, text: str, language: str) -> None:
        self._text = text
        self._language = language
        self.count = functools.cache(lambda digits: self._answer(count_written, digits))
        self.names_month = functools.cache(lambda digits: bool(self._answer(names_month, digits)))
        self.names_hour = functools.cache(lambda digits: bool(self._answer(names_hour, digits)))

    @functools.cached_property
    def has_halves_of_day(self) -> bool:
        """Return whether its hours may be those from 1 to 12."""
        return _HALF_OF_DAY.search(self._text) is not None

    @functools.cached_property
    def signs(self) -> frozenset[str]:
        """Return its digits in other signs: superscripts, fractions."""
        signs = "".join(each for each in self._text if unicodedata.category(each) == "No")
        return frozenset(DIGITS.findall(unicodedata.normalize("NFKC", signs)))

    @functools.cached_property
    def has_large(self) -> bool:
        return spells_numbers(self._text, self._language)

    def _answer(self, question: Callable[[int, str, str], int], digits: str) -> int:
        return question(int(digits), self._text, self._language) if len(digits) <= _LONGEST_WORD else 0


def compare(source: str, translation: str, languages: Languages) -> Comparison:
    """Compare the numbers of a source and its translation, in linear time.

    A number survives with its minus and any separators, thousands separated or not; a small one also as a word or in
    Roman numerals, a month by its name, an hour on either clock. Digits are in excess if no number or word of the
    source explains them. First whole numbers are paired by their forms, then the others by their parts, apart or in
    words.
    """
    spelling = _Spelling(source, languages.source)
    pairs, unpaired = _pairs(source, translation, languages, spelling)
    missing = [number for number, written in pairs if written is None]
    wrong = _wrong(pairs, source, translation)
    if not missing and not wrong and not unpaired:
        return Comparison()
    parts = _Parts(unpaired, spelling, _Spelling(translation, languages.target))
    lost = [number for number in paced(missing) if not parts.take(number)]
    extra = [
        place
        for place, digits in paced(parts.left())
        if not (spelling.count(digits) or spelling.names_month(digits) or (not lost and _is_spelt(digits, spelling)))
    ]
    lost = sorted([*lost, *(number for number, _ in wrong)], key=lambda number: number.start)
    return Comparison(tuple(lost), tuple(sorted([*extra, *(place for _, place in wrong)])))


def _pairs(
    source: str, translation: str, languages: Languages, spelling: _Spelling
) -> tuple[list[_Pair], list[Number]]:
    """Return the source's numbers, each with the same one of the translation, if there is one, and those left over."""
    written = _Unpaired(find_numbers(translation))
    pairs = []
    for number in paced(find_numbers(source)):
        same = written.take(_forms(number))
        if same is None:
            same = written.take(_further_forms(number, source, languages, spelling))
        pairs.append((number, same))
    return pairs, written.left()


class _Unpaired:
    """The numbers of a translation that no number of the source has taken yet."""

    def __init__(self, numbers: Sequence[Number]) -> None:
        self._numbers: dict[int, Number] = dict(enumerate(numbers))
        self._by_form: dict[_Form, list[int]] = defaultdict(list)
        for index in reversed(range(len(numbers))):  # lists are emptied from their ends: first come, first served
            for form in _forms(numbers[index]):
                self._by_form[form].append(index)

    def take(self, accepted: Iterable[_Form]) -> Number | None:
        """Take the first number that has one of these forms, of more parts first."""
        for form in sorted(accepted, key=len, reverse=True):
            while found := self._by_form.get(form):
                number = self._numbers.pop(found.pop(), None)
                if number is not None:
                    return number
        return None

    def left(self) -> list[Number]:
        return list(self._numbers.values())


def _wrong(pairs: Sequence[_Pair], source: str, translation: str) -> list[tuple[Number, Span]]:
    """Return the numbers that have lost their minus, mixed separators or changed places, and what is there."""
    wrong: list[tuple[Number, Span]] = []
    last: tuple[Number, Number] | None = None
    for number, written in pairs:
        if written is None:
            last = None
            continue
        if _has_lost_minus(number, written, translation) or _are_mixed(number, written):
            wrong.append((number, _place(written)))
        elif last is not None and _are_swapped(*last, number, written, source, translation):
            wrong += [(last[0], _place(last[1])), (number, _place(written))]
        last = number, written
    return wrong


def _place(number: Number) -> Span:
    return Span(number.start, number.end)


def _has_lost_minus(number: Number, written: Number, translation: str) -> bool:
    if not number.is_negative or written.is_negative:
        return False
    return _MINUS.search(translation, max(0, written.start - _BEFORE), written.start) is None


def _forms(number: Number) -> set[_Form]:
    """Return a number's parts, also with thousands not separated, and without a fraction of zeros."""
    parts = number.parts
    if len(parts) == 1:
        return {parts}
    if _is_ratio(number):
        return {("/", *parts)}
    forms = {parts}
    end = 1
    while end < len(parts) and len(parts[end]) == 3 and len(parts[0]) <= 3 and not parts[0].startswith("0"):
        end += 1
    if ":" not in number.text and "/" not in number.text:
        forms.add(("".join(parts[:end]), *parts[end:]))
    return forms | {form[:1] for form in forms if len(form) == 2 and len(form[1]) < 3 and not form[1].strip("0")}


def _further_forms(number: Number, source: str, languages: Languages, spelling: _Spelling) -> set[_Form]:
    """Return the forms that are accepted if a translation has none of `_forms`: of scaled numbers, and of times."""
    forms = set[_Form]()
    if not _OTHER_SCALES.isdisjoint(languages) and _SCALE.match(source, number.end):
        significant = "".join(number.parts).rstrip("0")
        forms |= {(significant + "0" * zeros,) for zeros in range(12)}
        forms |= {(significant[:at], significant[at:]) for at in range(1, min(len(significant), 12))}
    hour, *rest = number.parts
    has_halves = spelling.has_halves_of_day
    if len(rest) <= 1 and len(hour) <= 2 and not _is_ratio(number) and (":" in number.text or has_halves):
        hours = {int(hour)} | ({int(hour) % 12, int(hour) % 12 + 12} if has_halves and int(hour) <= 12 else set())
        forms |= {(form, *rest) for each in hours for form in (str(each), f"{each:02}")}
        forms |= {form[:1] for form in forms if form[1:] == ("00",)}
    return forms


def _are_mixed(number: Number, run: Number) -> bool:
    """Return whether the same separators of a number became different ones: "1.234,567,89"."""
    old, new = DIGITS.split(number.text)[1:-1], DIGITS.split(run.text)[1:-1]
    return len(old) == len(new) > 1 and len(set(zip(old, new, strict=True))) > len(set(old))


def _are_swapped(
    first: Number, first_written: Number, second: Number, second_written: Number, source: str, translation: str
) -> bool:
    """Return whether the numbers of a range, score or share have changed places in the translation."""
    return (
        second_written.end <= first_written.start
        and _RANGE.fullmatch(source, first.end, second.start) is not None
        and _RANGE.fullmatch(translation, second_written.end, first_written.start) is not None
    )


class _Parts:
    """The parts of those numbers of a translation that are none of the source, by how much they belong together."""

    def __init__(self, runs: Iterable[Number], source: _Spelling, translation: _Spelling) -> None:
        self._source = source
        self._translation = translation
        self._num_words_taken: Counter[str] = Counter()
        self._places: dict[tuple[int, str], list[Span]] = defaultdict(list)
        for run in runs:
            bond = self._bond(run)
            for found, digits in zip(DIGITS.finditer(run.text), run.parts, strict=True):
                self._places[bond, digits].append(Span(run.start + found.start(), run.start + found.end()))

    def _bond(self, run: Number) -> int:
        if len(run.parts) == 1:
            return _SINGLE
        is_date = len(run.parts) > 2 or self._source.names_month(run.parts[1])
        return _LOOSE if is_date or ":" in run.text or "/" in run.text else _TIGHT

    def take(self, number: Number) -> bool:
        """Take the parts of a number, apart or in words; return false if one is missing."""
        is_whole = len(number.parts) == 1
        if ":" in number.text and self._translation.names_hour(number.parts[0]):
            return True
        if not is_whole and not (_is_date(number) or ":" in number.text or "/" in number.text):
            return False
        most = _SINGLE if _is_ratio(number) else _LOOSE if is_whole else _TIGHT
        taken = []
        for digits in number.parts:
            forms = {digits} if is_whole else {digits, digits.lstrip("0"), digits.zfill(2)}
            keys = ((bond, form) for bond in range(most + 1) for form in forms)
            found = next((key for key in keys if self._places.get(key)), None)
            if found is not None:
                taken.append((found, self._places[found].pop(0)))
            elif not (self._take_word(digits) if is_whole else self._translation.names_month(digits)):
                for key, place in taken:
                    self._places[key].insert(0, place)
                return False
        return True

    def _take_word(self, digits: str) -> bool:
        """Take a word for a number that the source does not have as a word, too."""
        is_there = self._translation.count(digits) > self._source.count(digits) + self._num_words_taken[digits]
        self._num_words_taken[digits] += is_there
        return is_there

    def left(self) -> list[tuple[Span, str]]:
        return sorted((place, digits) for (_, digits), places in self._places.items() for place in places)


def _is_date(number: Number) -> bool:
    first, *_, last = number.parts
    return len(number.parts) == 3 and 4 in (len(first), len(last))


def _is_ratio(number: Number) -> bool:
    """Return whether a number is a fraction or a ratio, which no other separator may be in: neither time nor date."""
    first, *rest = number.parts
    is_time = len(first) <= 2 and all(len(part) == 2 for part in rest)
    is_years = len(first) == 4
    return ("/" in number.text and not is_years and not _is_date(number)) or (":" in number.text and not is_time)


def _is_spelt(digits: str, spelling: _Spelling) -> bool:
    return digits in spelling.signs or (len(digits) > 1 and spelling.has_large)
