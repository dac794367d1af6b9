"""The goals that were set before any measurement, next to the measured values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.tables import MISSING, Record, as_served, fastest, markdown, ratio_of

BATCHES = (1, 8, 32)
# Must and aim for our tokens per second against CTranslate2's, by model, decoding and batch. On Intel CTranslate2 has
# MKL; no aims were set there.
OFFLINE: Mapping[str, Mapping[tuple[str, str], Sequence[tuple[float, float | None]]]] = {
    "AMD": {
        ("base", "greedy"): ((3.0, 5.0), (2.2, 4.0), (1.7, 2.5)),
        ("base", "beam4"): ((2.2, 4.0), (1.5, 2.5), (1.3, 2.0)),
        ("en-de", "greedy"): ((3.0, 5.0), (2.5, 4.5), (2.2, 4.0)),
        ("en-de", "beam4"): ((2.0, 4.0), (1.8, 3.0), (1.6, 3.0)),
        ("big", "greedy"): ((3.6, 5.0), (3.3, 4.5), (2.2, 3.0)),
        ("big", "beam4"): ((4.7, 6.0), (2.4, 3.5), (1.7, 2.3)),
        ("nllb", "greedy"): ((3.0, 4.0), (2.2, 3.0), (1.5, 2.0)),
        ("nllb", "beam4"): ((2.5, None), (1.7, None), (1.3, None)),
    },
    "Intel": {
        ("base", "greedy"): ((1.6, None), (1.6, None), (1.5, None)),
        ("base", "beam4"): ((1.5, None), (1.3, None), (1.2, None)),
        ("en-de", "greedy"): ((2.0, None), (1.8, None), (1.7, None)),
        ("en-de", "beam4"): ((1.6, None), (1.5, None), (1.4, None)),
        ("big", "greedy"): ((2.4, None), (2.2, None), (1.5, None)),
        ("big", "beam4"): ((3.1, None), (1.6, None), (1.1, None)),
        ("nllb", "greedy"): ((2.0, None), (1.5, None), (1.0, None)),
        ("nllb", "beam4"): ((1.7, None), (1.1, None), (0.9, None)),
    },
}


@dataclass(frozen=True, slots=True)
class Target:
    """A row of the issue's table: the measured value and the required one. `None`: not measured."""

    what: str
    measured: float | None
    must: float
    aim: float | None
    is_ratio: bool = True
    less_is_better: bool = False

    @property
    def verdict(self) -> str:
        """Return whether the number reaches the aim, the minimum, or neither."""
        if self.measured is None:
            return "not measured"
        if self.aim is not None and self._reaches(self.aim):
            return "aim"
        return "yes" if self._reaches(self.must) else "no"

    def _reaches(self, bound: float) -> bool:
        assert self.measured is not None
        return self.measured <= bound if self.less_is_better else self.measured >= bound


def targets(records: Mapping[str, Sequence[Record]]) -> list[Target]:
    """Return every goal. `records` are by benchmark's name."""
    offline, serving, inside = (records.get(name, ()) for name in ("offline", "serving", "inside"))
    steps, invariance = records.get("step_time", ()), records.get("invariance-int8", ())
    served = as_served(offline)
    found = []
    maker = "AMD" if any("AMD" in each.get("machine", {}).get("cpu", "") for each in offline) else "Intel"
    for (model, decode), goals in OFFLINE[maker].items():
        for batch, (must, aim) in zip(BATCHES, goals, strict=True):
            measured = _ours_to_ct2(served, model, decode, batch)
            what = f"{model}, {decode}, batch {batch}, against CTranslate2 (on {maker})"
            found.append(Target(what, measured, must, aim))
    figures = {record["figure"]: record["median"] for record in records.get("serving_figures", ())}
    for model, must, aim in (("en-de", 1.5, 3.0), ("base", 1.7, 2.5)):
        measured = figures.get(f"{model}: capacity against static (CTranslate2)")
        found.append(Target(f"{model}: capacity in calls of one sentence, against CTranslate2", measured, must, aim))
    measured = figures.get("en-de: tokens/s of 16 callers against the bare engine")
    found.append(Target("en-de: served tokens/s of 16 callers against the bare engine", measured, 0.7, 0.9))
    measured = figures.get("en-de: CPU per call outside the engine, ms, continuous")
    what = "en-de: the server's CPU per call outside the engine's threads, ms"
    found.append(Target(what, measured, 0.8, 0.4, is_ratio=False, less_is_better=True))
    for kind, objective, must in (("sweep", "ten times", 1.8), ("sweep, tight", "three times", 2.0)):
        what = f"base: goodput within {objective} the unloaded latency"
        found.append(Target(what, goodput_ratio(serving, "base", kind), must, 3.0))
    for model in ("base", "en-de"):
        found.append(
            Target(
                f"{model}: p99 at 70 % load, continuous against static",
                p99_ratio(serving, model),
                0.55,
                0.4,
                less_is_better=True,
            )
        )
    kinds = {record["kind"]: record for record in inside}
    waiting = kinds.get("single while a call of 1000 runs", {})
    for share, must in (("p50", 2.0), ("p99", 5.0)):
        found.append(
            Target(
                f"single sentence while a call of 1,000 runs: steps it waits, {share}",
                waiting.get(f"wait_steps_{share}"),
                must,
                None,
                is_ratio=False,
                less_is_better=True,
            )
        )
    over_grpc = kinds.get("text over gRPC against the bare engine", {}).get("share")
    found.append(Target("text over gRPC against the bare engine", over_grpc, 0.8, 0.9))
    python = {each["batch"]: each["python_share"] for each in inside if each["kind"].startswith("Python's share")}
    for batch in BATCHES:
        what = f"Python's share of the engine's threads, batch {batch}"
        found.append(Target(what, python.get(batch), 0.1, None, less_is_better=True))
    found.append(Target("step time, capacity 512 against 64", capacity_ratio(steps), 1.1, None, less_is_better=True))
    held_out = next((record for record in records.get("int8_quality", ()) if record["part"] == "all"), None)
    loss = round(held_out["bleu_float32"] - held_out["bleu"], 2) if held_out else None
    lines = f", {held_out['lines']} lines" if held_out else ""
    found.append(Target(f"int8, shipped model: BLEU lost{lines}", loss, 0.3, 0.1, is_ratio=False, less_is_better=True))
    found.append(
        Target(
            "int8: sentences that their neighbours change, of 1,000",
            max((1000 * record["changed"] / record["sentences"] for record in invariance), default=None),
            0.0,
            None,
            is_ratio=False,
            less_is_better=True,
        )
    )
    return found


def targets_table(rows: Sequence[Target]) -> str:
    """Return the issue's table with the measured values."""
    return markdown(
        ("what", "measured", "must", "aim", "reached"),
        [
            [
                row.what,
                MISSING if row.measured is None else _bound(row, row.measured),
                _bound(row, row.must),
                MISSING if row.aim is None else _bound(row, row.aim),
                row.verdict,
            ]
            for row in rows
        ],
    )


def goodput_ratio(serving: Sequence[Record], model: str, kind: str = "sweep") -> float | None:
    """Return the highest goodput of our server over all loads, divided by the peer's."""
    sweep = [record for record in serving if record["model"] == model and record["kind"] == kind]
    best = {
        engine: max((record["goodput"] for record in sweep if record["engine"] == engine), default=0.0)
        for engine in ("dragoman", "ctranslate2")
    }
    return best["dragoman"] / best["ctranslate2"] if all(best.values()) else None


def p99_ratio(serving: Sequence[Record], model: str) -> float | None:
    """Return the ratio of continuous batching's p99 to static batches', at 70 % of continuous batching's capacity."""
    p99 = {
        record["batching"]: record["p99_ms"]
        for record in serving
        if record["model"] == model and record["kind"] == "ablation, of continuous"
    }
    ratio = p99.get("continuous", math.nan) / p99.get("static", math.nan)
    return None if math.isnan(ratio) else ratio


def capacity_ratio(steps: Sequence[Record]) -> float | None:
    """Return the largest ratio, over batch sizes, of a step with a capacity of 512 tokens to one with 64."""
    best: dict[int, dict[int, float]] = {}
    for record in steps:
        best.setdefault(record["batch_size"], {})[record["kv_capacity"]] = record["best_ms"]
    ratios = [times[512] / times[64] for times in best.values() if {64, 512} <= times.keys()]
    return max(ratios, default=None)


def _ours_to_ct2(records: Sequence[Record], model: str, decode: str, batch: int) -> float | None:
    wanted = {"model": model, "decode": decode, "batch": batch}
    return ratio_of(
        fastest(records, engine="dragoman", precision="int8", **wanted),
        fastest(records, engine="ctranslate2", **wanted),
    )


def _bound(row: Target, value: float) -> str:
    return f"{value:.2f}x" if row.is_ratio else f"{value:.4g}"
