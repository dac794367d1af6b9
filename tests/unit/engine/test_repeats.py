"""Repetitions in outputs, compared with counting by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.options import LONGEST_REPEAT
from service.engine.repeats import Repeats, most_repeats
from tests.unit.engine import reference_search

tokens = st.lists(st.integers(0, 2), max_size=40)


def new_repeats(*outputs: list[int]) -> Repeats:
    """Return repeats of which nothing is counted yet, for rows with these outputs."""
    output_ids = np.zeros((len(outputs), max(map(len, outputs)) + 1), np.int64)
    for row, output in enumerate(outputs):
        output_ids[row, : len(output)] = output
    return Repeats(np.zeros((len(outputs), LONGEST_REPEAT), np.int32), output_ids)


@settings(derandomize=True, deadline=None)
@given(tokens, tokens, st.integers(0, 5), st.integers(1, 4), st.booleans())
def test_rows_are_counted_each_by_itself(
    first: list[int], second: list[int], num_forced: int, allowed: int, is_view: bool
) -> None:
    repeats, rows = new_repeats(first, second, [7] * 40), slice(0, 2) if is_view else np.array([0, 1])
    for length in range(1, min(len(first), len(second)) + 1):
        longest = repeats.append(rows, np.array([length, length]), np.array([length > num_forced, True]))
        excesses = [repeats.excess(0, allowed), repeats.excess(1, allowed + 1)]
        assert excesses == [
            reference_search.excess(first[:length], num_forced, allowed),
            reference_search.excess(second[:length], 0, allowed + 1),
        ]
        assert longest >= allowed or not any(excesses)
        repeats.check_integrity(0, first[:length], num_forced)
        repeats.check_integrity(1, second[:length], 0)
    assert repeats.excess(2, 1) == 0


@settings(derandomize=True, deadline=None)
@given(tokens, st.integers(1, 3))
def test_what_is_doubtful_is_all_that_may_be_taken_off(output: list[int], allowed: int) -> None:
    repeats, certain = new_repeats(output), [0]
    for length in range(1, len(output) + 1):
        repeats.append(slice(0, 1), np.array([length]))
        certain.append(length - repeats.doubtful(0, allowed))
        assert certain[-1] >= certain[-2]
        if excess := repeats.excess(0, allowed):
            assert length - excess >= certain[-1]
            break


def test_rows_move_and_begin_anew() -> None:
    repeats = new_repeats([7, 7, 7], [])
    for length in range(1, 4):
        repeats.append(slice(0, 1), np.array([length]))
    repeats.copy(0, 1)
    assert (repeats.excess(1, 2), repeats.excess(1, 3)) == (1, 0)
    repeats.append(slice(0, 1), np.array([1]))
    assert repeats.excess(0, 1) == 0
    with pytest.raises(AssertionError, match="row 0 remembers"):
        repeats.check_integrity(0, [7, 7], 0)


@settings(derandomize=True, deadline=None)
@given(tokens)
def test_repeats_of_a_source(ids: list[int]) -> None:
    assert most_repeats(ids) == reference_search.most_repeats(ids)
