"""Search for glossary terms in texts, by a table of their beginnings with 12 bytes for each."""

import functools
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.domain.checkpoint import checkpoint, paced
from service.domain.translation import Term
from service.text.normalization import normalized, visible
from service.text.term_list import TermList
from service.text.words import is_word_boundary, unbroken

NONE = -1
_WINDOW = 8_192  # characters searched at once, so that no call holds the interpreter for long
_BITS_PER_PART = 4  # of the filter of first parts; a quarter of the others pass it
_FEWEST_BITS = 64

Form = Callable[[int], str]
Hashes = NDArray[np.int64]


class TermTable:
    """Terms and some of their prefixes, so that binary search by parts, between word boundaries, finds the longest
    term.

    Of a term of 13 = 8 + 4 + 1 parts, the prefixes of 8, 12 and 13 parts are stored. So if the first 8 at a position
    are present, and the next 4 too, but not the next 2, at most 1 more follows. Each prefix is stored with the longest
    term that it begins with, so there is no backtracking (Waldvogel et al., Scalable High Speed IP Routing Lookups,
    1997).

    Prefixes are stored as sorted 64-bit hashes under a secret of the process: callers compare with the term that is
    found.
    """

    def __init__(self, forms: Iterable[tuple[int, str]], form: Form) -> None:
        """Index terms, of ascending numbers, by texts in `form`; the first of equal ones wins. Passes checkpoints."""
        keys, numbers, lengths, are_terms, firsts = array("q"), array("i"), array("i"), array("b"), array("q")
        self.max_length = max_parts = 0
        for number, source in paced(forms):
            places = boundaries(unbroken(source))
            self.max_length = max(self.max_length, len(source))
            max_parts = max(max_parts, len(places) - 1)
            firsts.append(hash(source[: places[1]]))
            for end in _ends(places):
                keys.append(hash(source[:end]))
                numbers.append(number)
                lengths.append(end)
                are_terms.append(end == len(source))
        self._steps = [1 << bit for bit in reversed(range(max_parts.bit_length()))]
        self.first_parts: Hashes = np.array(firsts, np.int64)
        self._keys, self._values = array("q"), array("i")
        self._store(np.array(keys), np.array(numbers), np.array(lengths), np.array(are_terms, np.bool_), form)

    def _store(
        self, keys: Hashes, numbers: NDArray[Any], lengths: NDArray[Any], are_terms: NDArray[np.bool_], form: Form
    ) -> None:
        order = np.lexsort((numbers, ~are_terms, keys))  # of the same key, the first term first
        kept = order[np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))]
        values = np.where(are_terms[kept], numbers[kept], NONE).astype(np.int32)
        self._keys.frombytes(keys[kept].tobytes())
        self._values.frombytes(values.tobytes())
        places = np.flatnonzero(values == NONE)
        places = places[np.argsort(lengths[kept[places]])]  # the shortest first, as others begin with them
        owners = kept[places]
        beginnings = zip(places.tolist(), numbers[owners].tolist(), lengths[owners].tolist(), strict=True)
        for place, number, length in paced(beginnings):
            beginning = form(number)[:length]
            self._values[place] = self.longest(beginning, boundaries(unbroken(beginning))[:-1], 0)

    def longest(self, text: str, places: Sequence[int], first: int) -> int:
        """Return the number of the longest term that begins at the word boundary with index `first` and ends at a later
        one; `NONE` if there is none.

        `places` are all boundaries of the text.
        """
        start, found, last = places[first], NONE, first
        for step in self._steps:
            if last + step < len(places):
                key = hash(text[start : places[last + step]])
                place = bisect_left(self._keys, key)
                if place < len(self._keys) and self._keys[place] == key:
                    last += step
                    found = self._values[place]
        return found


class FirstParts:
    """A filter of the texts that terms begin with: nearly all others are told apart, many at a time (Bloom, 1970)."""

    def __init__(self, hashes: Hashes) -> None:
        num_bits = max(_FEWEST_BITS, 1 << (_BITS_PER_PART * len(hashes)).bit_length())
        self._mask = num_bits - 1
        self._are_there = np.zeros(num_bits, np.bool_)
        self._are_there[hashes & self._mask] = True

    def may_have(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Return which of the texts with these `hashes_of` may be there; all that are are among them."""
        found: NDArray[np.bool_] = self._are_there[hashes & self._mask]
        return found


def hashes_of(texts: Iterable[str]) -> Hashes:
    """Return Python's hashes, under a secret of this process."""
    return np.fromiter(map(hash, texts), np.int64)


def boundaries(parts: Iterable[str]) -> list[int]:
    """Return the word boundaries of a text with these parts between them."""
    return list(accumulate(map(len, parts), initial=0))


def _ends(places: Sequence[int]) -> Iterable[int]:
    num_parts, left = 0, len(places) - 1
    while left:
        step = 1 << (left.bit_length() - 1)
        num_parts, left = num_parts + step, left - step
        yield places[num_parts]


@dataclass(frozen=True, slots=True)
class FoundTerm:
    """The position of a term in a text, in code points, and its required translation."""

    start: int
    end: int
    target: str


class TermIndex:
    """Terms indexed by prefix: built once for each glossary, in time linear in the length of its terms."""

    def __init__(self, terms: Iterable[Term]) -> None:
        """Index terms: of equal ones a case-sensitive one wins, else the first. Passes checkpoints."""
        self._terms = terms if isinstance(terms, TermList) else TermList(terms)
        self._exact = TermTable(self._sources(is_case_sensitive=True), self.source)
        self._in_any_case = TermTable(
            ((number, _folded(source)) for number, source in self._sources(is_case_sensitive=False)),
            lambda number: _folded(self.source(number)),
        )
        folded = hashes_of(_folded(unbroken(source)[0]) for _, source in self._sources(is_case_sensitive=True))
        self.first_parts = FirstParts(np.concatenate((folded, self._in_any_case.first_parts)))
        self.max_length = max(self._exact.max_length, self._in_any_case.max_length)

    def source(self, number: int) -> str:
        return normalized(visible(self._terms.source(number)).text)[0]

    def _sources(self, *, is_case_sensitive: bool) -> Iterator[tuple[int, str]]:
        for number in self._terms.numbers(is_case_sensitive=is_case_sensitive):
            source = self.source(number)
            if source and not source[0].isspace():
                yield number, source

    def longest(self, text: str, folded: str, places: Sequence[int], first: int) -> tuple[Term, str] | None:
        """Return the longest term from the word boundary with index `first` to a later one, and its source as in
        `text`.

        `text` is normalized, `folded` the same text; `places` are all its boundaries.
        """
        exact = self._found(self._exact.longest(text, places, first))
        other = self._found(self._in_any_case.longest(folded, places, first))
        start = places[first]
        if exact is not None and not text.startswith(exact[1], start):  # one of the same hash
            exact = None
        if other is not None and not folded.startswith(_folded(other[1]), start):
            other = None
        if exact is None or (other is not None and len(other[1]) > len(exact[1])):
            return other
        return exact

    def _found(self, number: int) -> tuple[Term, str] | None:
        return None if number == NONE else (self._terms[number], self.source(number))


def find_terms(text: str, *indexes: TermIndex) -> list[FoundTerm]:
    """Find terms at word boundaries, from left to right, the longest at each position; sorted and disjoint.

    Of terms of the same length, that of the first index wins, so a request's terms take precedence over a glossary's.
    The target of a term that is not case-sensitive takes the match's case if that differs: all capitals, or the first
    letter. Terms that must not be translated keep the match. White space, apostrophes and the composition of characters
    make no difference. Time is linear in the text's length, and logarithmic in the longest term's.
    """
    form, offsets = normalized(text)
    found = _find_terms(form, *indexes)
    if offsets is not None:
        found = [(*offsets.span(start, end), target) for start, end, target in paced(found)]
    return [FoundTerm(start, end, text[start:end] if target is None else target) for start, end, target in found]


def _find_terms(text: str, *indexes: TermIndex) -> list[tuple[int, int, str | None]]:
    found: list[tuple[int, int, str | None]] = []
    max_length = max((index.max_length for index in indexes), default=0)
    start = 0 if max_length else len(text)
    while start < len(text):
        checkpoint()
        end = start + max(_WINDOW, 4 * max_length)
        last = end - max_length if end < len(text) else len(text)
        found += _terms_within(text, start, end, last, indexes)
        start = max(last, found[-1][1] if found else 0)
    return found


def _terms_within(
    text: str, start: int, end: int, last: int, indexes: Sequence[TermIndex]
) -> Iterator[tuple[int, int, str | None]]:
    """Yield the terms that begin before `last` in a window of a text; the window extends beyond the longest of them."""
    window = text[start:end]
    folded = _folded(window)
    parts = unbroken(folded)
    places = boundaries(parts)
    term_end = 0 if is_word_boundary(text, start) else places[1]
    hashes = hashes_of(parts)
    may_begin = functools.reduce(np.logical_or, (index.first_parts.may_have(hashes) for index in indexes))
    for number in paced(np.flatnonzero(may_begin).tolist()):
        place = places[number]
        if place < term_end:
            continue
        if place >= last - start:
            break
        best: tuple[Term, str] | None = None
        for index in indexes:
            term = index.longest(window, folded, places, number)
            if term is not None and (best is None or len(term[1]) > len(best[1])):
                best = term
        if best is not None:
            term_end = place + len(best[1])
            yield start + place, start + term_end, _target(*best, window[place:term_end])


def _target(term: Term, source: str, found: str) -> str | None:
    if term.target is None or term.is_case_sensitive or found == source:
        return term.target
    if found.isupper() and not source.isupper() and len(found) > 1:
        return term.target.upper()
    if found[0].isupper() and not source[0].isupper():
        return capitalized(term.target)
    return term.target


def capitalized(text: str) -> str:
    """Capitalize the first letter if that remains one letter: German's ß, which has no capital form, is unchanged."""
    first = text[:1].upper()
    return first + text[1:] if len(first) == 1 else text


def _folded(text: str) -> str:
    """Return the text in lower case, with the same length; both lower-case sigmas become one, as in capitals."""
    small = text.lower()
    if len(small) != len(text):
        small = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    return small.replace("ς", "σ")
