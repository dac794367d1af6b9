"""Metric families as plain data: how one process hands its metrics to another, and how several are merged.

A worker process passes its families as JSON: prometheus_client's parser of the text formats takes 50 times as long (19
to 35 ms for one worker's page), on every scrape and for each worker.
"""

import enum
import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Merge(enum.Enum):
    """How one gauge of several worker processes becomes one of the whole server."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MEAN = "mean"
    SAME = "same"  # equal in all of them; if it is not, for as long as they are being changed, the highest


class Exemplar(NamedTuple):
    """An observation that a sample counts: its labels, its value, and when it was made (Unix time, seconds)."""

    labels: Mapping[str, str]
    value: float
    time_seconds: float


class Sample(NamedTuple):
    """One current value; the names of samples are those on the metrics page."""

    name: str
    labels: Mapping[str, str]
    value: float
    exemplar: Exemplar | None = None


class Family(NamedTuple):
    """One metric: its type in OpenMetrics' words, its help text, and its samples, those of a label set together."""

    name: str
    kind: str
    text: str
    samples: list[Sample]


def to_json(families: Iterable[Family]) -> bytes:
    """Return the families as JSON; a value may be NaN or infinite."""
    return json.dumps(list(families), separators=(",", ":")).encode()


def from_json(document: bytes) -> list[Family]:
    """Return the families of `to_json`."""
    try:
        return [
            Family(name, kind, text, [_sample(*sample) for sample in samples])
            for name, kind, text, samples in json.loads(document)
        ]
    except TypeError as error:
        raise ValueError(f"these are not families of metrics: {error}") from error


def _sample(name: str, labels: Mapping[str, str], value: float, exemplar: list[object] | None) -> Sample:
    return Sample(name, labels, value, Exemplar(*exemplar) if exemplar else None)  # type: ignore[arg-type]
