"""Search for glossary terms in texts."""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from service.domain.checkpoint import checkpoint, paced
from service.domain.translation import Term
from service.text.normalization import normalized, visible
from service.text.term_list import TermList
from service.text.term_table import NONE, FirstParts, TermTable, boundaries, hashes_of
from service.text.words import is_word_boundary, unbroken

_WINDOW = 8_192  # characters searched at once, so that no call holds the interpreter for long


@dataclass(frozen=True, slots=True)
class FoundTerm:
    """The position of a term in a text, in code points, and its required translation."""

    start: int
    end: int
    target: str


class TermIndex:
    """Terms indexed by prefix: built once for each glossary, in time linear in the length of its terms."""

    def __init__(self, terms: Iterable[Term]) -> None:
        """Index terms; of those that match the same words, a case-sensitive one wins, else the first.

        Passes checkpoints.
        """
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
        """Return the longest term that begins at the word boundary with index `first` and ends at a later one, and its
        source as in `text`, which is normalized.

        `places` are all boundaries of the text, which is given both as written and folded.
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
    The target of a term that is not case-sensitive takes the case of the match if that differs from the term's: all
    capitals, or the first letter. Terms that must not be translated keep the match. White space, apostrophes and the
    composition of characters make no difference. Time is linear in the length of the text, and logarithmic in the
    length of the longest term.
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
    """Return the text in lower case, with the same length; both lower-case sigmas become one, as their capital is the
    same.
    """
    small = text.lower()
    if len(small) != len(text):
        small = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    return small.replace("ς", "σ")
