"""The figures of the serving benchmark and the band in which each must fall when somebody repeats it.

A figure has a value for each round. Its band goes from the lowest to the highest of them, and further on either side by
half of that or by a tenth of the median, whichever is more; a figure of one round has a quarter of its value on either
side. Quality, which is no matter of speed, has a tenth of that room. A repetition is within the band if its median is.
Figures that are no ratios depend on the machine, and are only compared on the same processor.
"""

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.tables import Record, markdown
from benchmarks.targets import goodput_ratio

RATIO = "x"
OURS = "continuous"
# Kind of record, its field, and what it is called. The higher rate of two is better.
RATES = (
    ("saturated", "sentences_per_second", "capacity, calls/s"),
    ("offline", "sentences_per_second", "Offline, samples/s"),
    ("server", "found_rate", "Server, calls/s"),
)
OTHERS = (
    ("few callers", "tokens_per_second", "16 callers, tokens/s"),
    ("saturated", "outside_ms_per_call", "CPU per call outside the engine, ms"),
    ("saturated", "client_ms_per_call", "callers' CPU per call, ms"),
)
QUALITY = (("offline", "bleu", "BLEU"), ("offline", "chrf", "chrF"))  # the only load that has every held-out text
ROOM, ROOM_OF_QUALITY = 0.1, 0.01
LESS_SURE = 2.5  # times the room, for a figure of one round


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure's name, its value in every round, and whether it is a ratio of two of the same run.

    `room` is the least share of the median by which a repetition may be above or below all rounds.
    """

    name: str
    values: tuple[float, ...]
    is_ratio: bool = False
    room: float = ROOM

    @property
    def median(self) -> float:
        """Return the median of all rounds."""
        return statistics.median(self.values)

    @property
    def band(self) -> tuple[float, float]:
        """Return the lowest and the highest value that a repetition may have."""
        low, high = min(self.values), max(self.values)
        room = self.room if len(self.values) > 1 else LESS_SURE * self.room
        margin = max((high - low) / 2, abs(self.median) * room)
        return low - margin, high + margin

    def document(self) -> dict[str, Any]:
        """Return the record of the figure."""
        low, high = self.band
        return {
            "figure": self.name,
            "values": list(self.values),
            "median": self.median,
            "low": low,
            "high": high,
            "is_ratio": self.is_ratio,
            "room": self.room,
        }


def figure_of(record: Record) -> Figure:
    """Return the figure that `Figure.document` described."""
    return Figure(record["figure"], tuple(record["values"]), record["is_ratio"], record["room"])


def figures_of(records: Sequence[Record]) -> list[Figure]:
    """Return all figures that the records of `benchmarks.serving` allow."""
    found = []
    for model in dict.fromkeys(record["model"] for record in records):
        of_model = [record for record in records if record["model"] == model]
        batchings = dict.fromkeys(record["batching"] for record in of_model if record["kind"] == "saturated")
        for batching in batchings:
            for kind, field, what in (*RATES, *OTHERS):
                found.append(Figure(f"{model}: {what}, {batching}", _values(of_model, kind, field, batching)))
            for kind, field, what in QUALITY:
                values = _values(of_model, kind, field, batching)
                found.append(Figure(f"{model}: {what}, {batching}", values, room=ROOM_OF_QUALITY))
            for kind, field, what in RATES if batching != OURS else ():
                ours, theirs = (_values(of_model, kind, field, name) for name in (OURS, batching))
                found.append(Figure(f"{model}: {what.split(',')[0]} against {batching}", _ratios(ours, theirs), True))
        served = _values(of_model, "few callers", "tokens_per_second", OURS)
        bare = _values(of_model, "bare engine", "tokens_per_second", None)
        found.append(Figure(f"{model}: tokens/s of 16 callers against the bare engine", _ratios(served, bare), True))
        found.append(Figure(f"{model}: p99 at 70 % load, continuous against static", _p99_ratios(of_model), True))
        for kind, objective in (("sweep", "ten times"), ("sweep, tight", "three times")):
            ratio = goodput_ratio(of_model, model, kind)
            name = f"{model}: goodput within {objective} the unloaded latency against static (CTranslate2)"
            found.append(Figure(name, (ratio,) if ratio is not None else (), True))
    return [figure for figure in found if figure.values]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A recorded figure and its repetition; `is_within` is `None` if they can't be compared."""

    name: str
    recorded: float
    low: float
    high: float
    again: float | None
    is_within: bool | None


def compare(recorded: Iterable[Mapping[str, Any]], again: Sequence[Figure], *, is_same_cpu: bool) -> list[Comparison]:
    """Return for each recorded figure (as `Figure.document` returns it) whether its repetition is within its band."""
    repeated = {figure.name: figure.median for figure in again}
    found = []
    for each in recorded:
        value = repeated.get(each["figure"])
        is_comparable = value is not None and (is_same_cpu or each["is_ratio"])
        is_within = each["low"] <= value <= each["high"] if value is not None and is_comparable else None
        found.append(Comparison(each["figure"], each["median"], each["low"], each["high"], value, is_within))
    return found


_OTHER_SERVER = re.compile(r"\w+ \((\w+)\)")  # its batching goes without saying


def figures_table(figures: Sequence[Figure]) -> str:
    """Return median, range of the rounds, and band of each figure."""
    rows = [
        [
            _OTHER_SERVER.sub(r"\1", figure.name),
            _shown(figure.median),
            f"{_shown(min(figure.values))} to {_shown(max(figure.values))}",
            str(len(figure.values)),
            " to ".join(map(_shown, figure.band)),
        ]
        for figure in figures
    ]
    return markdown(("figure", "median", "rounds from, to", "rounds", "band"), rows)


def comparison_table(comparisons: Sequence[Comparison]) -> str:
    """Return recorded and repeated values and whether each is within its band."""
    said = {True: "yes", False: "NO", None: "not compared"}
    rows = [
        [
            each.name,
            _shown(each.recorded),
            f"{_shown(each.low)} to {_shown(each.high)}",
            "-" if each.again is None else _shown(each.again),
            said[each.is_within],
        ]
        for each in comparisons
    ]
    return markdown(("figure", "recorded", "band", "again", "within"), rows)


def _values(records: Sequence[Record], kind: str, field: str, batching: str | None) -> tuple[float, ...]:
    """Return the field of each round's last record of a kind that has it, in the order of rounds."""
    of_rounds = {
        record["round"]: record[field]
        for record in records
        if record["kind"] == kind and field in record and batching in (None, record.get("batching"))
    }
    return tuple(of_rounds[number] for number in sorted(of_rounds))


def _ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Return the ratio of each round that both sides have; a round in which nothing was answered has none."""
    return tuple(a / b for a, b in zip(ours, theirs, strict=False) if b and math.isfinite(a / b))


def _p99_ratios(records: Sequence[Record]) -> tuple[float, ...]:
    """Return the ratios of the ablation's rounds, at 70 % of continuous batching's capacity."""
    rounds = {
        record["batching"]: record["p99_ms_of_rounds"]
        for record in records
        if record["kind"] == "ablation, of continuous" and "p99_ms_of_rounds" in record
    }
    return _ratios(rounds.get(OURS, ()), rounds.get("static", ()))


def _shown(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
