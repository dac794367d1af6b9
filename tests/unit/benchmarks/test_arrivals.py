import numpy as np
import pytest

from benchmarks.arrivals import poisson_schedule


def test_the_same_seed_gives_the_same_schedule_and_another_one_another() -> None:
    assert poisson_schedule(50, 4, 7, seed=1) == poisson_schedule(50, 4, 7, seed=1)
    assert poisson_schedule(50, 4, 7, seed=1) != poisson_schedule(50, 4, 7, seed=2)


def test_arrivals_ascend_within_the_time_and_name_every_text() -> None:
    times, texts = zip(*poisson_schedule(100, 5, 4, seed=3), strict=True)
    assert list(times) == sorted(times)
    assert 0 < times[0] < times[-1] < 5
    assert set(texts) == {0, 1, 2, 3}


def test_gaps_are_exponential() -> None:
    """Mean 1 / rate, deviation equal to the mean, and e^-1 of all gaps longer than the mean."""
    rate = 40.0
    gaps = np.diff([time for time, _ in poisson_schedule(rate, 500, 1, seed=4)])
    assert gaps.mean() == pytest.approx(1 / rate, rel=0.03)
    assert gaps.std() == pytest.approx(1 / rate, rel=0.05)
    assert (gaps > 1 / rate).mean() == pytest.approx(np.exp(-1), abs=0.02)


@pytest.mark.parametrize("arguments", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_nonsense_is_refused(arguments: tuple[float, float, int]) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        poisson_schedule(*arguments, seed=1)
