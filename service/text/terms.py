"""Search for glossary terms in texts."""

import functools
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from service.domain.checkpoint import checkpoint, paced
from service.domain.translation import Term
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
        """Index terms; of those that match the same words, a case-sensitive one wins, else the first."""
        exact: dict[str, Term] = {}
        in_any_case: dict[str, Term] = {}
        for term in terms:
            if term.source and not term.source[0].isspace():
                if term.is_case_sensitive:
                    exact.setdefault(term.source, term)
                else:
                    in_any_case.setdefault(_folded(term.source), term)
        self._exact = _Table(exact)
        self._in_any_case = _Table(in_any_case)
        self.first_parts = {_folded(part) for part in self._exact.first_parts} | self._in_any_case.first_parts
        self.max_length = max(map(len, (*exact, *in_any_case)), default=0)

    def longest(self, text: str, folded: str, boundaries: Sequence[int], first: int) -> Term | None:
        """Return the longest term that begins at the word boundary with index `first` and ends at a later one.

        `boundaries` are all of the text's, which is given both as written and folded.
        """
        exact = self._exact.longest(text, boundaries, first)
        other = self._in_any_case.longest(folded, boundaries, first)
        if exact is None or (other is not None and len(other.source) > len(exact.source)):
            return other
        return exact


class _Table:
    """Terms and some of their prefixes, such that few lookups find the longest term at a position, whatever the terms
    are: the number of its parts, which lie between word boundaries, is found by binary search.

    Of a term of 13 = 8 + 4 + 1 parts, the prefixes of 8, 12 and 13 parts are stored. So if the first 8 at a position
    are present, and the next 4 too, but not the next 2, at most 1 more follows. Each prefix is stored with the longest
    term that it begins with, so no backtracking is needed where a longer term has started but does not continue.
    (Waldvogel et al., Scalable High Speed IP Routing Lookups, 1997.)
    """

    def __init__(self, terms: Mapping[str, Term]) -> None:
        """Index `terms`, given by their form in texts."""
        boundaries = {source: _boundaries(unbroken(source)) for source in paced(terms)}
        max_parts = max(map(len, boundaries.values()), default=1) - 1
        self.first_parts = {source[: places[1]] for source, places in boundaries.items()}
        self._steps = [1 << bit for bit in reversed(range(max_parts.bit_length()))]
        self._longest: dict[str, Term | None] = {}
        beginnings: dict[str, list[int]] = {}
        for source, places in paced(boundaries.items()):
            num_parts = 0
            for step in self._steps:
                if (len(places) - 1) & step:
                    num_parts += step
                    beginnings.setdefault(source[: places[num_parts]], places[: num_parts + 1])
        for beginning in paced(sorted(beginnings, key=len)):  # shortest first: so its prefixes' terms are known
            self._longest[beginning] = terms.get(beginning) or self.longest(beginning, beginnings[beginning], 0)

    def longest(self, text: str, boundaries: Sequence[int], first: int) -> Term | None:
        """See `TermIndex.longest`."""
        start, found, last = boundaries[first], None, first
        for step in self._steps:
            if last + step < len(boundaries):
                beginning = text[start : boundaries[last + step]]
                if beginning in self._longest:
                    last += step
                    found = self._longest[beginning]
        return found


def find_terms(text: str, *indexes: TermIndex) -> list[FoundTerm]:
    """Find terms at word boundaries, from left to right, the longest at each position; sorted and disjoint.

    Of terms of the same length, that of the first index wins, so a request's terms take precedence over a glossary's.
    The target of a term that is not case-sensitive takes the case of the match if that differs from the term's: all
    capitals, or the first letter. Terms that must not be translated keep the match. Time is linear in the length of the
    text, and logarithmic in the length of the longest term.
    """
    found: list[FoundTerm] = []
    max_length = max((index.max_length for index in indexes), default=0)
    start = 0 if max_length else len(text)
    while start < len(text):
        checkpoint()
        end = start + max(_WINDOW, 4 * max_length)
        last = end - max_length if end < len(text) else len(text)
        found += _terms_within(text, start, end, last, indexes)
        start = max(last, found[-1].end if found else 0)
    return found


def _terms_within(text: str, start: int, end: int, last: int, indexes: Sequence[TermIndex]) -> Iterator[FoundTerm]:
    """Yield the terms that begin before `last` in a window of a text; the window extends beyond the longest of them."""
    window = text[start:end]
    folded = _folded(window)
    parts = unbroken(folded)
    boundaries = _boundaries(parts)
    term_end = 0 if is_word_boundary(text, start) else boundaries[1]
    may_begin = functools.reduce(
        lambda one, other: map(operator.or_, one, other),
        (map(index.first_parts.__contains__, parts) for index in indexes),
    )
    for number in paced(itertools.compress(range(len(parts)), may_begin)):
        place = boundaries[number]
        if place < term_end:
            continue
        if place >= last - start:
            break
        best: Term | None = None
        for index in indexes:
            term = index.longest(window, folded, boundaries, number)
            if term is not None and (best is None or len(term.source) > len(best.source)):
                best = term
        if best is not None:
            term_end = place + len(best.source)
            yield FoundTerm(start + place, start + term_end, _target(best, window[place:term_end]))


def _boundaries(parts: Iterable[str]) -> list[int]:
    """Return the word boundaries of a text with these parts between them."""
    return list(itertools.accumulate(map(len, parts), initial=0))


def _target(term: Term, found: str) -> str:
    if term.target is None:
        return found
    if term.is_case_sensitive or found == term.source:
        return term.target
    if found.isupper() and not term.source.isupper() and len(found) > 1:
        return term.target.upper()
    if found[0].isupper() and not term.source[0].isupper():
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
