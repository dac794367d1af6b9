"""The reference for finding terms, by place and length: slow where many begin alike."""

import re
from collections.abc import Iterable, Iterator

from service.domain.translation import Term
from service.text.terms import FoundTerm, capitalized
from service.text.words import UNSPACED, is_word_boundary

_PREFIX = 4
_MAY_BEGIN = re.compile(rf"\b\w|(?<=[{UNSPACED}])\w|[^\w\s]|[{UNSPACED}]")


class TermIndex:
    """Terms by their beginnings: built once per glossary, in time linear in the number of terms."""

    def __init__(self, terms: Iterable[Term]) -> None:
        """Index the terms; of those that match the same words the case-sensitive one counts, otherwise the first."""
        self._terms: dict[str, list[Term]] = {}
        lengths: dict[str, set[int]] = {}
        for term in sorted(terms, key=lambda term: not term.is_case_sensitive):
            if source := _folded(term.source):
                self._terms.setdefault(source, []).append(term)
                lengths.setdefault(source[:_PREFIX], set()).add(len(source))
        self._first = {prefix[0] for prefix in lengths}
        self._lengths = {prefix: sorted(several, reverse=True) for prefix, several in lengths.items()}

    def candidates(self, text: str, folded: str, start: int) -> Iterator[tuple[int, Term]]:
        """Yield ends and terms at a place of a text, given unchanged and folded; the longest first."""
        if folded[start] not in self._first:
            return
        for size in range(min(_PREFIX, len(text) - start), 0, -1):
            for length in self._lengths.get(folded[start : start + size], ()):
                end = start + length
                if end > len(text):  # otherwise a shorter term at the text's end would be taken for one of this length
                    continue
                for term in self._terms.get(folded[start:end], ()):
                    if not term.is_case_sensitive or text[start:end] == term.source:
                        yield end, term


def find_terms(text: str, *indexes: TermIndex) -> list[FoundTerm]:
    """Find terms at word boundaries, from left to right, the longest where several begin; ordered and disjoint.

    Of terms of the same length that of the first index counts, so a request's terms precede a glossary's. A term that
    is not case-sensitive adapts its target to the case of the match, if that differs from the term's: all capitals, or
    the first letter. Text that must not be translated is kept as found.
    """
    folded = _folded(text)
    found: list[FoundTerm] = []
    end = 0
    for match in _MAY_BEGIN.finditer(text):
        start = match.start()
        if start < end:
            continue
        best: tuple[int, Term] | None = None
        for index in indexes:
            for candidate in index.candidates(text, folded, start):
                if is_word_boundary(text, candidate[0]):
                    best = candidate if best is None or candidate[0] > best[0] else best
                    break
        if best is not None and is_word_boundary(text, start):
            end = best[0]
            found.append(FoundTerm(start, end, _target(best[1], text[start:end])))
    return found


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


def _folded(text: str) -> str:
    """Return the text in lower case, with unchanged length."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
