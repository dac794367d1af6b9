"""A table of terms by their beginnings, in 12 bytes for each."""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.domain.checkpoint import paced
from service.text.words import unbroken

NONE = -1
_BITS_PER_PART = 4  # of the filter of first parts; a quarter of the others pass it
_FEWEST_BITS = 64

Form = Callable[[int], str]
Hashes = NDArray[np.int64]


class TermTable:
    """Terms and some of their prefixes, such that few lookups find the longest term at a position, whatever the terms
    are: the number of its parts, which lie between word boundaries, is found by binary search.

    Of a term of 13 = 8 + 4 + 1 parts, the prefixes of 8, 12 and 13 parts are stored. So if the first 8 at a position
    are present, and the next 4 too, but not the next 2, at most 1 more follows. Each prefix is stored with the longest
    term that it begins with, so no backtracking is needed where a longer term has started but does not continue.
    (Waldvogel et al., Scalable High Speed IP Routing Lookups, 1997.)

    Prefixes are stored as their hashes, of 64 bits under a secret of the process, in order: whoever looks a text up
    compares it with the term that is found.
    """

    def __init__(self, forms: Iterable[tuple[int, str]], form: Form) -> None:
        """Index terms, given by ascending numbers, and by the texts by which they are found, which `form` returns, too.

        Of terms of the same form the first wins. Passes checkpoints.
        """
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
        one; `NONE` if there is none. `places` are all boundaries of the text.
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
        """Let texts with these `hashes_of` pass."""
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
