import math
from typing import Any

import pytest
from benchmarks.figures import Figure, compare, comparison_table, figure_of, figures_of, figures_table


def test_the_band_is_wider_than_the_rounds() -> None:
    assert Figure("a", (90.0, 100.0, 130.0)).band == (70.0, 150.0)  # half of their range
    assert Figure("a", (99.0, 100.0, 101.0)).band == (89.0, 111.0)  # a tenth of the median
    assert Figure("a", (100.0,)).band == (75.0, 125.0)
    assert Figure("a", (40.0, 40.0), room=0.01).band == (39.6, 40.4)


def saturated(round_number: int, batching: str, rate: float, **more: Any) -> dict[str, Any]:
    return {
        "model": "en-de",
        "kind": "saturated",
        "round": round_number,
        "batching": batching,
        "sentences_per_second": rate,
        **more,
    }


PEER = "static (CTranslate2)"
P99_MS = [50.0, 60.0, math.nan]  # nothing was answered in the last round
RECORDS: list[dict[str, Any]] = [
    {"model": "en-de", "kind": "bare engine", "round": 1, "tokens_per_second": 10_000.0},
    saturated(1, "continuous", 300.0, outside_ms_per_call=2.0),
    {
        "model": "en-de",
        "kind": "few callers",
        "round": 1,
        "batching": "continuous",
        "tokens_per_second": 4000.0,
    },
    saturated(1, PEER, 200.0),
    saturated(2, "continuous", 330.0, outside_ms_per_call=1.0),
    saturated(2, PEER, 220.0),
    {"model": "en-de", "kind": "server", "round": 1, "batching": "continuous", "rate": 110.0, "holds": False},
    {"model": "en-de", "kind": "server", "round": 1, "batching": "continuous", "rate": 90.0, "found_rate": 90.0},
    {"model": "en-de", "kind": "offline", "round": 1, "batching": "continuous", "bleu": 39.0},
    {
        "model": "en-de",
        "kind": "ablation, of continuous",
        "batching": "continuous",
        "p99_ms_of_rounds": [50.0, 60.0, math.nan],
    },
    {"model": "en-de", "kind": "ablation, of continuous", "batching": "static", "p99_ms_of_rounds": [100.0] * 3},
]


def test_figures_come_from_the_rounds_of_each_contender() -> None:
    found = {figure.name: figure for figure in figures_of(RECORDS)}
    assert found["en-de: capacity, calls/s, continuous"].values == (300.0, 330.0)
    assert found["en-de: CPU per call outside the engine, ms, continuous"].values == (2.0, 1.0)
    assert found["en-de: Server, calls/s, continuous"].values == (90.0,)
    assert found["en-de: BLEU, continuous"].band == pytest.approx((39.0 * 0.975, 39.0 * 1.025))
    against = found[f"en-de: capacity against {PEER}"]
    assert (against.values, against.is_ratio) == ((1.5, 1.5), True)
    assert found["en-de: tokens/s of 16 callers against the bare engine"].values == (0.4,)
    assert found["en-de: p99 at 70 % load, continuous against static"].values == (0.5, 0.6)
    assert all(figure.values for figure in found.values())
    assert not any("Offline" in name or "goodput" in name for name in found)


def test_a_repetition_is_within_its_bands_or_not_or_can_not_be_compared() -> None:
    recorded = [
        Figure("rate", (100.0,)).document(),
        Figure("ratio", (1.0, 1.0), is_ratio=True).document(),
        Figure("gone", (1.0,)).document(),
    ]
    again = [Figure("rate", (130.0,)), Figure("ratio", (1.05,), is_ratio=True)]
    on_same = compare(recorded, again, is_same_cpu=True)
    assert [each.is_within for each in on_same] == [False, True, None]
    elsewhere = compare(recorded, again, is_same_cpu=False)
    assert [each.is_within for each in elsewhere] == [None, True, None]
    assert "| rate | 100 | 75 to 125 | 130 | NO |" in comparison_table(on_same)


def test_the_table_has_median_and_rounds() -> None:
    table = figures_table([Figure("rate", (1000.0, 1200.0, 1300.0))])
    assert table.splitlines()[-1] == "| rate | 1200 | 1000 to 1300 | 3 | 850 to 1450 |"


@pytest.mark.parametrize("values", [(1.0,), (1.0, 2.0, 4.0)])
def test_what_was_recorded_is_within_its_own_band(values: tuple[float, ...]) -> None:
    figure = Figure("a", values)
    [found] = compare([figure.document()], [figure], is_same_cpu=True)
    assert found.is_within


def test_a_figure_is_read_back() -> None:
    figure = Figure("a", (1.0, 2.0), is_ratio=True, room=0.01)
    assert figure_of(figure.document()) == figure
