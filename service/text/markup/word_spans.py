"""Spans of words for sibling elements: in order, with the best balance, and large enough. Plain numbers only."""

from bisect import bisect_right
from collections.abc import Sequence

from service.domain.checkpoint import paced


def longest_ordered(labels: Sequence[int | None], weights: Sequence[int]) -> list[tuple[int, int]]:
    """Return indices and labels of the heaviest non-decreasing subsequence of `labels`, ignoring `None` and negative
    ones.
    """
    last_labels: list[int] = []  # of the best subsequence of each weight: its last label,
    last_indices: list[int] = []  # and the index of that
    previous: dict[int, int] = {}
    for index, label in paced(enumerate(labels)):
        if label is None or label < 0:
            continue
        for copy in range(weights[index]):
            place = bisect_right(last_labels, label)
            if copy == 0 and place:
                previous[index] = last_indices[place - 1]
            last_labels[place : place + 1] = [label]
            last_indices[place : place + 1] = [index]
    chosen: list[tuple[int, int]] = []
    last = last_indices[-1] if last_indices else None
    while last is not None:
        label = labels[last]
        assert label is not None
        chosen.append((last, label))
        last = previous.get(last)
    return chosen[::-1]


def best_span(
    labels: Sequence[int | None], weights: Sequence[int], label: int, start: int, end: int
) -> tuple[int, int]:
    """Return the part of `start` to `end` with the most words of `label` minus those of others (maximum subarray)."""
    best, span = 0, (start, end)
    balance, first = 0, start
    for index in range(start, end):
        if balance <= 0:
            balance, first = 0, index
        found = labels[index]
        if found is not None:
            balance += weights[index] if found == label else -weights[index]
        if balance > best:
            best, span = balance, (first, index + 1)
    return span


def fitted(wanted_needs: Sequence[int], spans: Sequence[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """Move `spans` as little as needed so that they are sorted, disjoint, in bounds and have the words they need.

    `wanted_needs` has the number of words that each needs. If there are too few words, the first spans get them.
    """
    spare = high - low
    needs: list[int] = []
    for need in wanted_needs:
        needs.append(min(need, spare))
        spare -= needs[-1]
    reserved = sum(needs)
    result: list[tuple[int, int]] = []
    for (wanted_start, wanted_end), need in paced(zip(spans, needs, strict=True)):
        reserved -= need
        start = min(max(wanted_start, low), high - reserved - need)
        end = min(max(wanted_end, start + need), high - reserved)
        result.append((start, end))
        low = end
    return result


def with_letters(
    needs: Sequence[int], spans: Sequence[tuple[int, int]], low: int, high: int, num_before: Sequence[int]
) -> list[tuple[int, int]]:
    """Move `spans`, which are sorted and disjoint, as `fitted` does, so that they have words that are no punctuation.

    `needs` has the number of these that each needs, and `num_before` for each word, and behind the last one, how many
    of these are before it. If there are too few in all, the spans stay as they are.
    """
    found = [(num_before[start], num_before[end]) for start, end in spans]
    if all(end - start >= need for (start, end), need in zip(found, needs, strict=True)):
        return list(spans)
    first, last = num_before[low], num_before[high]
    if last - first < sum(needs):
        return list(spans)
    places = [*(index for index in range(low, high) if num_before[index] < num_before[index + 1]), high]
    result: list[tuple[int, int]] = []
    for span, before, (start, end) in zip(spans, found, fitted(needs, found, first, last), strict=True):
        if (start, end) == before:
            result.append(span)
        elif start == end:
            result.append((places[start - first], places[start - first]))
        else:
            result.append((places[start - first], places[end - first - 1] + 1))
    return fitted([0] * len(result), result, low, high)
