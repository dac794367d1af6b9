import pytest

from benchmarks.measures import identical_share, rates


def test_rates_are_of_each_round() -> None:
    found = rates([100, 100, 90], [1.0, 0.5, 0.3])
    assert found == {"tokens_per_second_best": 300.0, "tokens_per_second_median": 200.0, "rounds": 3}


def test_rates_need_a_round() -> None:
    with pytest.raises(ValueError, match=r"0 counts and 0 times"):
        rates([], [])


def test_identical_share_compares_lists_with_tuples() -> None:
    assert identical_share([[1, 2], [3], []], [(1, 2), (4,), ()]) == pytest.approx(2 / 3)
