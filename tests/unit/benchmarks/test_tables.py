"""The ratios that docs/benchmarks.md prints."""

from typing import Any

from benchmarks.serving_summary import summary
from benchmarks.tables import offline_table


def test_offline_the_ratio_is_to_the_peers_fastest_and_ours_is_as_served() -> None:
    def record(engine: str, precision: str, best: float, **settings: Any) -> dict[str, Any]:
        rates = {"tokens_per_second_best": best, "tokens_per_second_median": best / 2}
        row = {"model": "base", "decode": "greedy", "batch": 8}
        return {**row, "engine": engine, "precision": precision, "settings": settings, **rates}

    table = offline_table(
        [
            record("dragoman", "int8", 600.0, allow_spinning=False),
            record("dragoman", "int8", 9999.0, allow_spinning=True),
            record("ctranslate2", "int8", 200.0, inter_threads=1),
            record("ctranslate2", "float32", 100.0, inter_threads=2),
        ]
    )
    assert "| base, greedy, batch 8 | 600 (300) | - | 200 (100) | - | 3.00x |" in table
    assert "- base, greedy, batch 8: int8, inter_threads 1" in table


def test_serving_ratios_are_of_each_round_and_of_the_best_loads() -> None:
    def record(batching: str, kind: str, **fields: Any) -> dict[str, Any]:
        engine = "ctranslate2" if batching == "theirs" else "dragoman"
        return {"model": "base", "engine": engine, "batching": batching, "kind": kind, **fields}

    table = summary(
        [
            *(
                record("continuous", "capacity", round=n, sentences_per_second=rate)
                for n, rate in ((1, 90.0), (2, 80.0))
            ),
            *(record("theirs", "capacity", round=n, sentences_per_second=rate) for n, rate in ((1, 30.0), (2, 40.0))),
            record("continuous", "few callers", round=1, tokens_per_second=60.0),
            {"model": "base", "kind": "bare engine", "round": 1, "tokens_per_second": 100.0},
            *(record("continuous", "sweep", goodput=goodput) for goodput in (50.0, 40.0)),
            record("theirs", "sweep", goodput=20.0),
            record("continuous", "ablation, of continuous", p99_ms_of_rounds=[30.0, 40.0]),
            record("static", "ablation, of continuous", p99_ms_of_rounds=[60.0, 50.0]),
        ]
    )
    assert "| base: capacity against theirs | 2.5 | 2 to 3 | 2 |" in table
    assert "| base: tokens/s of 16 callers against the bare engine | 0.6 | 0.6 to 0.6 | 1 |" in table
    assert "| base: p99 at 70 % load, continuous against static | 0.65 | 0.5 to 0.8 | 2 |" in table
    assert "| base: goodput within ten times the unloaded latency against CTranslate2 | 2.5 | 2.5 to 2.5 | 1 |" in table
