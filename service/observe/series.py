"""Counters and histograms that are plain additions, and are formatted only when they are read.

prometheus_client's take a lock for each number and look at their labels on each use: some 70 calls of Python functions
for one short text. Here a series is changed by one thread at a time, so an addition is an addition; a reader may see
an observation half counted.
"""

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from service.observe.families import Exemplar, Family, Sample


class Count:
    """The number of one label set of a counter."""

    __slots__ = ("created_seconds", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.created_seconds = time.time()

    def inc(self, amount: float = 1.0) -> None:
        """Add an amount, which is not negative."""
        self.value += amount

    def samples(self, name: str, labels: Mapping[str, str]) -> Iterator[Sample]:
        """Yield the current values under these names."""
        yield Sample(f"{name}_total", labels, self.value)
        yield Sample(f"{name}_created", labels, self.created_seconds)


class Observations:
    """The values of one label set of a histogram: how many are up to each bound, and their sum."""

    __slots__ = ("_bounds", "_counts", "_exemplars", "_sum", "created_seconds")

    def __init__(self, bounds: Sequence[float]) -> None:
        """Take the upper bounds in ascending order, below a million and without infinity."""
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._exemplars: dict[int, Exemplar] = {}
        self.created_seconds = time.time()

    def observe(self, value: float, exemplar: Mapping[str, str] | None = None) -> None:
        """Count a value; `exemplar` has the labels of the observation."""
        place = bisect_left(self._bounds, value)
        self._counts[place] += 1
        self._sum += value
        if exemplar is not None:
            self._exemplars[place] = Exemplar(exemplar, value, time.time())

    def observe_times(self, value: float, count: int) -> None:
        """Count a value `count` times, at the cost of once."""
        self._counts[bisect_left(self._bounds, value)] += count
        self._sum += value * count

    def samples(self, name: str, labels: Mapping[str, str]) -> Iterator[Sample]:
        """Yield the current values under these names."""
        total = 0
        for place, count in enumerate(self._counts.copy()):
            total += count
            bound = repr(self._bounds[place]) if place < len(self._bounds) else "+Inf"
            yield Sample(f"{name}_bucket", {**labels, "le": bound}, float(total), self._exemplars.get(place))
        yield Sample(f"{name}_count", labels, float(total))
        yield Sample(f"{name}_sum", labels, self._sum)
        yield Sample(f"{name}_created", labels, self.created_seconds)


S = TypeVar("S", Count, Observations)


class Series(Generic[S]):
    """A metric's series by the values of its labels; without labels there is one series."""

    def __init__(self, name: str, text: str, label_names: Sequence[str]) -> None:
        self.name = name
        self._text = text
        self._label_names = tuple(label_names)
        self._series: dict[tuple[str, ...], S] = {}
        if not label_names:
            self.labels()

    kind: str

    def labels(self, *values: str) -> S:
        """Return the series of these values, which begins at 0 with its first use."""
        found = self._series.get(values)
        if found is None:
            if len(values) != len(self._label_names):
                raise ValueError(f"{self.name} has the labels {self._label_names}, not {values}")
            found = self._series.setdefault(values, self._new())
        return found

    def remove(self, *values: str) -> None:
        """Remove the series of these values, if there is one."""
        self._series.pop(values, None)

    def remove_by_labels(self, labels: Mapping[str, str]) -> None:
        """Remove all series with these labels."""
        wanted = labels.items()
        for values in list(self._series):
            if wanted <= dict(zip(self._label_names, values, strict=True)).items():
                self.remove(*values)

    def family(self) -> Family:
        """Return all current values."""
        samples: list[Sample] = []
        for values, series in list(self._series.items()):
            samples += series.samples(self.name, dict(zip(self._label_names, values, strict=True)))
        return Family(self.name, self.kind, self._text, samples)

    def _new(self) -> S:
        raise NotImplementedError


class Counter(Series[Count]):
    """A number that only grows; `name` is without `_total`."""

    kind = "counter"

    def _new(self) -> Count:
        return Count()


class Histogram(Series[Observations]):
    """The distribution of values over buckets."""

    kind = "histogram"

    def __init__(self, name: str, text: str, label_names: Sequence[str], bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        super().__init__(name, text, label_names)

    def _new(self) -> Observations:
        return Observations(self._bounds)
