"""The serving benchmark's figures, as docs/benchmarks.md prints them: per model, the median and range of the rounds."""

import math
import statistics
from collections.abc import Iterator, Sequence

from benchmarks.tables import Record, markdown

OURS = "continuous"
# Kind of record, its field, and its name in the table.
RATES = (
    ("capacity", "sentences_per_second", "capacity, calls/s"),
    ("few callers", "sentences_per_second", "16 callers, calls/s"),
)
COSTS = (("capacity", "outside_ms_per_call", "CPU per call outside the engine, ms"),)


def summary(records: Sequence[Record]) -> str:
    """Return the table of all figures that the records of `benchmarks.serving` allow."""
    rows = []
    for model in dict.fromkeys(record["model"] for record in records):
        of_model = [record for record in records if record["model"] == model]
        for name, values in figures(of_model):
            if values:
                low_high = f"{_shown(min(values))} to {_shown(max(values))}"
                rows.append([f"{model}: {name}", _shown(statistics.median(values)), low_high, str(len(values))])
    return markdown(("figure", "median", "from, to", "rounds"), rows)


def figures(records: Sequence[Record]) -> Iterator[tuple[str, Sequence[float]]]:
    """Yield name and values, one of each round; no values if it was not measured."""
    batchings = dict.fromkeys(record["batching"] for record in records if record["kind"] in ("capacity", "few callers"))
    for batching in batchings:
        for kind, field, what in (*RATES, *COSTS):
            yield f"{what}, {batching}", _values(records, kind, field, batching)
        for kind, field, what in RATES if batching != OURS else ():
            ours, theirs = (_values(records, kind, field, name) for name in (OURS, batching))
            yield f"{what.rpartition(',')[0]} against {batching}", _ratios(ours, theirs)
    served = _values(records, "few callers", "tokens_per_second", OURS)
    bare = _values(records, "bare engine", "tokens_per_second", None)
    yield "tokens/s of 16 callers against the bare engine", _ratios(served, bare)
    ablation = {record["batching"]: record for record in records if record["kind"] == "ablation, of continuous"}
    for name in ("p50", "p99"):
        ours, static = (ablation.get(batching, {}).get(f"{name}_ms_of_rounds", ()) for batching in (OURS, "static"))
        yield f"{name} at 70 % load, continuous against static", _ratios(ours, static)
    for kind, objective in (("sweep", "ten times"), ("sweep, tight", "three times")):
        ratio = goodput_ratio(records, kind)
        name = f"goodput within {objective} the unloaded latency against CTranslate2"
        yield name, () if ratio is None else (ratio,)


def goodput_ratio(records: Sequence[Record], kind: str) -> float | None:
    """Return our server's highest goodput over all loads of a kind, divided by the peer's; `None` if one is missing."""
    of_kind = [each for each in records if each["kind"] == kind]
    best = {
        engine: max((each["goodput"] for each in of_kind if each["engine"] == engine), default=0.0)
        for engine in ("dragoman", "ctranslate2")
    }
    return best["dragoman"] / best["ctranslate2"] if all(best.values()) else None


def _values(records: Sequence[Record], kind: str, field: str, batching: str | None) -> tuple[float, ...]:
    """Return the field of each round's record of a kind that has it, in the order of rounds."""
    of_rounds = {
        record["round"]: record[field]
        for record in records
        if record["kind"] == kind and field in record and batching in (None, record.get("batching"))
    }
    return tuple(of_rounds[number] for number in sorted(of_rounds))


def _ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Return the ratio of each round that both sides have; a round in which nothing was answered has none."""
    return tuple(a / b for a, b in zip(ours, theirs, strict=False) if b and math.isfinite(a / b))


def _shown(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
