import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.measures import identical_share, percentile, rates

FINITE = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60)


def test_rates_are_of_each_round() -> None:
    found = rates([100, 100, 90], [1.0, 0.5, 0.3])
    assert found == {"tokens_per_second_best": 300.0, "tokens_per_second_median": 200.0, "rounds": 3}


def test_rates_need_a_round() -> None:
    with pytest.raises(ValueError, match=r"0 counts and 0 times"):
        rates([], [])


def test_identical_share_compares_lists_with_tuples() -> None:
    assert identical_share([[1, 2], [3], []], [(1, 2), (4,), ()]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1), (0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (0.99, 4), (1.0, 4)]
)
def test_percentile_is_the_nearest_rank(share: float, expected: float) -> None:
    assert percentile([4, 2, 1, 3], share) == expected


def test_percentile_of_nothing_is_no_number() -> None:
    assert math.isnan(percentile([], 0.5))


def test_percentile_refuses_percent() -> None:
    with pytest.raises(ValueError, match=r"share is 99; allowed is 0 to 1"):
        percentile([1.0], 99)


@settings(derandomize=True)
@given(FINITE, st.floats(0, 1))
def test_at_least_the_share_does_not_exceed_a_percentile(values: list[float], share: float) -> None:
    bound = percentile(values, share)
    assert bound in values
    assert sum(value <= bound for value in values) >= share * len(values)
    assert sum(value < bound for value in values) < max(share * len(values), 1)
