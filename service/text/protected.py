"""Search for the parts of a source that the model must not change: placeholders, terms, identifiers, amounts."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from service.domain.checkpoint import paced
from service.domain.translation import Flag
from service.text.exact import find_amounts, find_identifiers
from service.text.numbers import Languages
from service.text.placeholders import OwnPlaceholders, Placeholder, search_placeholders
from service.text.spans import Span
from service.text.terms import TermIndex, find_terms

_BRACKETS = ("[]", "<>", "{}", "''")
_MOST_BRACKETS = 2  # around a placeholder


@dataclass(frozen=True, slots=True)
class Protected:
    """A part of a source, its target, and the flag if its place is guessed; `is_apart`: it is between segments."""

    start: int
    end: int
    target: str
    flag: Flag
    is_apart: bool = False

    @property
    def may_touch_words(self) -> bool:
        """Return whether it may be adjacent to words that are apart from it: unknown characters and line ends may."""
        return self.flag is Flag.UNKNOWN or self.target.isspace()


def with_unknown(spans: Sequence[Protected], unknown: Sequence[Span], text: str) -> list[Protected]:
    """Return `spans`, and the parts of `unknown` outside of them, to be kept unchanged; all sorted, each disjoint."""
    found = list(spans)
    following = 0
    for run in unknown:
        start, end = run
        while following < len(spans) and spans[following].start < end:
            span = spans[following]
            if span.end > start:
                found += _unknown(text, start, span.start)
                start = span.end
            if span.end > end:
                break
            following += 1
        found += _unknown(text, start, end)
    return sorted(found, key=lambda span: span.start)


def _unknown(text: str, start: int, end: int) -> list[Protected]:
    return [Protected(start, end, text[start:end], Flag.UNKNOWN)] if text[start:end].strip() else []


def find_protected(
    text: str,
    *indexes: TermIndex,
    kept: Sequence[Protected] = (),
    own: OwnPlaceholders | None = None,
    languages: Languages | None = None,
) -> list[Protected]:
    """Find a source's placeholders, the caller's `own` among them, and terms; sorted and disjoint.

    A term within a placeholder does not count. With `languages`, amounts and identifiers are found outside of the
    others, or around placeholders, as in a call. `kept` parts, sorted and disjoint, overlap no match.
    """
    found = placeholders = [
        Protected(start, end, text[start:end], Flag.PLACEHOLDER, is_apart)
        for start, end, is_apart in paced(_joined(_enclosed(paced(search_placeholders(text, own)), text)))
    ]
    exact = find_exact(text, languages) if languages is not None else []
    if indexes:
        terms = (Protected(term.start, term.end, term.target, Flag.TERM) for term in find_terms(text, *indexes))
        found = beside(found, terms)
    if kept:
        found = beside(kept, found)
    return _around(found, placeholders, exact) if exact else found


def find_exact(text: str, languages: Languages) -> list[Protected]:
    """Find a source's amounts and identifiers, also those around amounts; sorted and disjoint."""
    amounts = [Protected(*amount, Flag.NUMBERS) for amount in find_amounts(text, languages)]
    identifiers = verbatim(text, find_identifiers(text), Flag.NUMBERS)
    return _around(amounts, amounts, identifiers) if identifiers else amounts


def _enclosed(found: Iterable[Placeholder], text: str) -> Iterator[Placeholder]:
    """Extend placeholders by the brackets that are close around them, as in `[$name]` and `''{name}''`."""
    done = 0
    for each in found:
        start, end = max(each.start, done), each.end
        for _ in range(0 if each.is_apart else _MOST_BRACKETS):
            if start > done and text[start - 1] + text[end : end + 1] in _BRACKETS:
                start, end = start - 1, end + 1
        yield Placeholder(start, end, each.is_apart)
        done = end


def _joined(found: Iterable[Placeholder]) -> list[Placeholder]:
    """Join placeholders without anything between them: a translation has them beside each other, too."""
    joined: list[Placeholder] = []
    for each in found:
        if joined and joined[-1].end == each.start and not (joined[-1].is_apart or each.is_apart):
            joined[-1] = Placeholder(joined[-1].start, each.end)
        else:
            joined.append(each)
    return joined


def verbatim(text: str, spans: Iterable[Span], flag: Flag = Flag.PLACEHOLDER) -> list[Protected]:
    return [Protected(*span, text[span.start : span.end], flag) for span in paced(spans)]


def beside(first: Sequence[Protected], others: Iterable[Protected]) -> list[Protected]:
    """Return all of `first`, and those of `others` that overlap none of them; both are sorted and disjoint."""
    spans = list(first)
    ends = [span.end for span in first]
    for span in paced(others):
        following = bisect_right(ends, span.start)
        if following == len(ends) or first[following].start >= span.end:
            spans.append(span)
    return sorted(spans, key=lambda span: span.start)


def _around(spans: Sequence[Protected], yielding: Iterable[Protected], others: Sequence[Protected]) -> list[Protected]:
    """Return `spans`, and the `others` beside them, or around those that are `yielding`, in the place of these."""
    inner = set[int]()
    for span in paced(yielding):
        outer = others[bisect_right(others, span.start, key=lambda each: each.start) - 1]
        if outer.start <= span.start and span.end <= outer.end and bounds([outer]) != bounds([span]):
            inner.add(id(span))
    found = beside([span for span in spans if id(span) not in inner], others)
    return beside(found, [span for span in spans if id(span) in inner])


def bounds(spans: Sequence[Protected]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in paced(spans)]


def spans_within(spans: Sequence[Protected], start: int, end: int) -> list[Protected]:
    first = bisect_left(spans, start, key=lambda span: span.start)
    last = bisect_right(spans, end, lo=first, key=lambda span: span.end)
    return [replace(span, start=span.start - start, end=span.end - start) for span in paced(spans[first:last])]


def has_letters_outside(text: str, spans: Sequence[Protected]) -> bool:
    """Return whether a text has anything to translate: a letter outside the spans."""
    done = 0
    for span in spans:
        if any(map(str.isalpha, text[done : span.start])):
            return True
        done = span.end
    return any(map(str.isalpha, text[done:]))
