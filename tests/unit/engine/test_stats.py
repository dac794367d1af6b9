import pytest

from service.engine.stats import DepartureRate


def test_the_hint_follows_the_measured_rate() -> None:
    rate = DepartureRate()
    assert rate.seconds_until(10) == 1.0, "nothing is known yet"
    for _ in range(100):
        rate.add(2, 0.1)
    assert rate.seconds_until(40) == pytest.approx(2.0)


def test_the_hint_forgets_the_distant_past() -> None:
    rate = DepartureRate()
    rate.add(1000, 1.0)
    for _ in range(600):
        rate.add(1, 0.1)
    assert rate.seconds_until(10) == pytest.approx(1.0, rel=0.2)


def test_the_hint_is_bounded() -> None:
    rate = DepartureRate()
    rate.add(1, 1.0)
    assert rate.seconds_until(1_000_000) == 60.0
    rate.add(1_000_000, 1.0)
    assert rate.seconds_until(1) == 0.1
