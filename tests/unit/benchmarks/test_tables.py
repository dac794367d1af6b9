from typing import Any

import pytest
from benchmarks.document import DOCUMENT, circumstances, filled, sections
from benchmarks.figures import Figure
from benchmarks.targets import Target, capacity_ratio, goodput_ratio, p99_ratio, targets, targets_table

from benchmarks.tables import fastest, offline_table, outputs_table


def record(
    engine: str, precision: str, best: float, batch: int = 8, model: str = "base", decode: str = "greedy", **more: Any
) -> dict[str, Any]:
    return {
        "model": model,
        "engine": engine,
        "precision": precision,
        "decode": decode,
        "batch": batch,
        "tokens_per_second_best": best,
        "tokens_per_second_median": best / 2,
        "settings": {},
        **more,
    }


OFFLINE = [
    record("dragoman", "int8", 600.0, settings={"allow_spinning": False}),
    record("dragoman", "int8", 9999.0, settings={"allow_spinning": True}),
    record("dragoman", "float32", 300.0),
    record("ctranslate2", "int8", 200.0, settings={"inter_threads": 1}),
    record("ctranslate2", "float32", 100.0, settings={"inter_threads": 2}),
    record("dragoman", "int8", 50.0, batch=1),
    record("dragoman", "int8", 70.0, batch=32),
]


def served(
    batching: str, kind: str, p99: float = 1.0, goodput: float = 1.0, engine: str = "dragoman", model: str = "base"
) -> dict[str, Any]:
    return {"model": model, "engine": engine, "batching": batching, "kind": kind, "p99_ms": p99, "goodput": goodput}


def test_the_ratio_is_to_the_peers_fastest_and_ours_is_as_served() -> None:
    table = offline_table(OFFLINE)
    [row, settings] = [line for line in table.splitlines() if "batch 8" in line]
    assert row == "| base, greedy, batch 8 | 600 (300) | 300 (150) | 200 (100) | - | 3.00x |"
    assert settings == "- base, greedy, batch 8: int8, inter_threads 1"


def test_rows_come_in_order_of_batch_sizes_and_lack_what_was_not_measured() -> None:
    lines = offline_table(OFFLINE).splitlines()[2:5]
    assert [line.split(" |")[0] for line in lines] == [f"| base, greedy, batch {batch}" for batch in (1, 8, 32)]
    assert lines[0].endswith("| - | - | - | - |")


def test_fastest_of_nothing_is_nothing() -> None:
    assert fastest(OFFLINE, engine="transformers") is None


def test_identical_outputs_are_shown_as_a_range() -> None:
    records = [record("ctranslate2", "int8", 1.0, identical_to_float32=share) for share in (0.5, 0.75)]
    assert "| base | greedy | ctranslate2 | int8 | 50% to 75% |" in outputs_table(records)


@pytest.mark.parametrize(
    ("measured", "less_is_better", "verdict"),
    [
        (4.0, False, "aim"),
        (3.0, False, "yes"),
        (2.9, False, "no"),
        (None, False, "not measured"),
        (4.1, True, "no"),
        (3.5, True, "yes"),
    ],
)
def test_verdicts(measured: float | None, less_is_better: bool, verdict: str) -> None:
    must, aim = (4.0, 3.0) if less_is_better else (3.0, 4.0)
    assert Target("speed", measured, must, aim, less_is_better=less_is_better).verdict == verdict


def test_targets_take_their_numbers_from_the_records() -> None:
    serving = [
        served("continuous", "sweep", goodput=50.0),
        served("continuous", "sweep", goodput=40.0),
        served("static (CTranslate2)", "sweep", goodput=20.0, engine="ctranslate2"),
        served("continuous", "ablation, of continuous", p99=30.0),
        served("static", "ablation, of continuous", p99=60.0),
    ]
    inside = [
        {"kind": "single while a call of 1000 runs", "wait_steps_p50": 1, "wait_steps_p99": 6},
        {"kind": "Python's share of the engine thread", "batch": 32, "python_share": 0.08},
    ]
    changed = [{"changed": changed, "sentences": 500} for changed in (0, 1)]
    figures = [
        Figure("en-de: CPU per call outside the engine, ms, continuous", (0.5, 0.6, 0.7)).document(),
        Figure("en-de: tokens/s of 16 callers against the bare engine", (0.95,), is_ratio=True).document(),
    ]
    records = {"offline": OFFLINE, "serving": serving, "inside": inside, "invariance-int8": changed}
    records["serving_figures"] = figures
    records["int8_quality"] = [{"part": "all", "bleu": 31.39, "bleu_float32": 31.72, "lines": 250}]
    rows = {row.what: row for row in targets(records)}
    assert rows["base, greedy, batch 8, against CTranslate2 (on Intel)"].measured == 3.0
    assert rows["base, greedy, batch 8, against CTranslate2 (on Intel)"].must == 1.6
    assert rows["base: goodput within ten times the unloaded latency"].measured == 2.5
    assert rows["base: goodput within three times the unloaded latency"].measured is None
    assert rows["base: p99 at 70 % load, continuous against static"].verdict == "yes"
    assert rows["en-de: p99 at 70 % load, continuous against static"].verdict == "not measured"
    assert rows["single sentence while a call of 1,000 runs: steps it waits, p99"].verdict == "no"
    assert rows["Python's share of the engine's threads, batch 32"].verdict == "yes"
    assert rows["int8, shipped model: BLEU lost, 250 lines"].measured == 0.33
    assert rows["int8: sentences that their neighbours change, of 1,000"].measured == 2.0
    table = targets_table(list(rows.values()))
    assert "| base: goodput within ten times the unloaded latency | 2.50x | 1.80x | 3.00x | yes |" in table
    assert "| en-de: the server's CPU per call outside the engine's threads, ms | 0.6 | 0.8 | 0.4 | yes |" in table
    assert "| en-de: served tokens/s of 16 callers against the bare engine | 0.95x | 0.70x | 0.90x | aim |" in table
    assert (
        "| base: capacity in calls of one sentence, against CTranslate2 | - | 1.70x | 2.50x | not measured |" in table
    )
    assert "| text over gRPC against the bare engine | - | 0.80x | 0.90x | not measured |" in table


def test_goals_against_ctranslate2_depend_on_the_maker_of_the_cpu() -> None:
    on_amd = [{**each, "machine": {"cpu": "AMD EPYC"}} for each in OFFLINE]
    rows = {row.what: row for row in targets({"offline": on_amd})}
    assert rows["base, greedy, batch 8, against CTranslate2 (on AMD)"].must == 2.2


def test_a_ratio_needs_both_sides() -> None:
    assert goodput_ratio([served("continuous", "sweep")], "base") is None
    assert p99_ratio([served("static", "ablation, of continuous")], "base") is None
    assert capacity_ratio([{"batch_size": 1, "kv_capacity": 64, "best_ms": 1.0}]) is None


def test_the_capacity_ratio_is_the_worst_batch_size() -> None:
    steps = [
        {"batch_size": batch, "kv_capacity": capacity, "best_ms": ms}
        for batch, capacity, ms in ((1, 64, 1.0), (1, 512, 1.01), (8, 64, 2.0), (8, 512, 2.1))
    ]
    assert capacity_ratio(steps) == pytest.approx(1.05)


def test_tables_replace_what_is_between_their_markers_and_nothing_else() -> None:
    text = "a\n<!-- one -->\nold\n<!-- /one -->\nb\n<!-- two --><!-- /two -->\n"
    once = filled(text, {"one": "new"})
    assert once == "a\n<!-- one -->\nnew\n<!-- /one -->\nb\n<!-- two --><!-- /two -->\n"
    assert filled(once, {"one": "new"}) == once


@pytest.mark.parametrize("text", ["", "<!-- one -->", "<!-- /one -->"])
def test_a_lost_marker_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"the document lacks <!-- one --> \.\.\. <!-- /one -->"):
        filled(text, {"one": "new"})


def test_the_shipped_document_has_a_marker_for_every_table() -> None:
    machine = {"cpu": "C", "cpus": 2, "extensions": ["avx2"], "memory_gib": 4.0}
    whole: dict[str, list[dict[str, Any]]] = {
        "offline": [{**OFFLINE[0], "machine": machine, "versions": {"python": "3"}, "identical_to_float32": 1.0}],
        "scale": [{"line": "s"}],
        "limit": [{"line": "l"}],
        "serving_figures": [Figure("f", (1.0,)).document()],
        "serving": [{"kind": "capacity", "model": "base", "engine": "dragoman", "machine": machine}],
    }
    tables = sections(lambda name: whole.get(name, []))
    assert tables.keys() == {"targets", "machine", "offline", "outputs", "serving", "figures", "scale", "limit"}
    assert "- s" in filled(DOCUMENT.read_text(encoding="utf-8"), tables)
    assert circumstances(whole["offline"][0]) == "C, 2 CPUs (avx2), 4.0 GiB; python 3."
