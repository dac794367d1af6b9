import pytest
from benchmarks.mlperf import highest_rate, keeps_bound


def test_the_highest_rate_that_holds_is_found_to_its_resolution() -> None:
    assert highest_rate(lambda rate: rate <= 70.0, 110.0, 1.0, 2) == pytest.approx(69.5, abs=0.5)


def test_a_rate_is_confirmed_and_lowered_until_it_is() -> None:
    tried: list[float] = []

    def holds(rate: float) -> bool:
        tried.append(rate)
        return rate <= (64.0 if len(tried) <= 5 else 61.0)  # the machine became slower

    found = highest_rate(holds, 128.0, 4.0, 2)
    assert tried == [64.0, 96.0, 80.0, 72.0, 68.0, 64.0, 60.0, 60.0]
    assert found == 60.0


def test_a_server_that_never_holds_has_no_rate() -> None:
    assert highest_rate(lambda _: False, 100.0, 5.0, 2) == 0.0
    calls: list[float] = []

    def only_searching(rate: float) -> bool:
        calls.append(rate)
        return len(calls) <= 5

    assert highest_rate(only_searching, 100.0, 5.0, 1) == 0.0


def point(**changed: float) -> dict[str, float]:
    good = {"shed_share": 0.0, "late_share": 0.0, "failed_share": 0.0, "p99_ms": 250.0, "slo_ms": 250.0}
    return {**good, **changed}


def test_a_run_is_valid_if_all_queries_are_answered_and_the_percentile_keeps_the_bound() -> None:
    assert keeps_bound(point())
    assert not keeps_bound(point(p99_ms=250.1))
    assert not keeps_bound(point(p99_ms=float("nan")))
    for share in ("shed_share", "late_share", "failed_share"):
        assert not keeps_bound(point(**{share: 0.001}))
