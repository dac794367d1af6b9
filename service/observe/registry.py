"""The registry of all metrics, their counters and histograms, and the only importer of prometheus_client.

Counters and histograms are plain additions, formatted when they are read; prometheus_client's take a lock for each
number and search buckets: ten times as long, for some 30 numbers of one short text. One thread at a time changes a
series, so additions are safe; a reader may see an observation half counted.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar
from prometheus_client.samples import Sample as Sample  # for others, who don't import prometheus_client

from service.observe.table import Kind, Metric


class Count:
    """The number of one label set of a counter."""

    __slots__ = ("created_seconds", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.created_seconds = time.time()

    def inc(self, amount: float = 1.0) -> None:
        self.value += amount

    def samples(self, name: str, labels: dict[str, str]) -> Iterator[Sample]:
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

    def observe(self, value: float, exemplar: dict[str, str] | None = None) -> None:
        place = bisect_left(self._bounds, value)
        self._counts[place] += 1
        self._sum += value
        if exemplar is not None:
            self._exemplars[place] = Exemplar(exemplar, value, time.time())

    def observe_times(self, value: float, count: int) -> None:
        """Count a value `count` times, at the cost of once."""
        self._counts[bisect_left(self._bounds, value)] += count
        self._sum += value * count

    def samples(self, name: str, labels: dict[str, str]) -> Iterator[Sample]:
        total = 0
        for place, count in enumerate(self._counts.copy()):
            total += count
            bound = repr(self._bounds[place]) if place < len(self._bounds) else "+Inf"
            exemplar = self._exemplars.get(place)
            yield Sample(f"{name}_bucket", {**labels, "le": bound}, float(total), exemplar=exemplar)
        yield Sample(f"{name}_count", labels, float(total))
        yield Sample(f"{name}_sum", labels, self._sum)
        yield Sample(f"{name}_created", labels, self.created_seconds)


S = TypeVar("S", Count, Observations)


class _ByValues(dict[tuple[str, ...], S]):
    """A metric's series by the values of its labels; each begins at 0 with its first use."""

    def __init__(self, metric: Metric, new: Callable[[], S]) -> None:
        super().__init__()
        self._metric = metric
        self._new: Callable[[], S] = new

    def __missing__(self, values: tuple[str, ...]) -> S:
        if len(values) != len(self._metric.labels):
            raise ValueError(f"{self._metric.name} has the labels {self._metric.labels}, not {values}")
        series: S = self.setdefault(values, self._new())
        return series


class Series(Collector, Generic[S]):
    """A metric's series; without labels there is one. `by_values` has them, and is found without a frame of Python."""

    def __init__(self, metric: Metric, new: Callable[[], S]) -> None:
        self._metric = metric
        self.by_values: dict[tuple[str, ...], S] = _ByValues(metric, new)
        if not metric.labels:
            self.labels()

    def labels(self, *values: str) -> S:
        """Return the series of these values, which begins at 0 with its first use."""
        return self.by_values[values]

    def remove(self, *values: str) -> None:
        self.by_values.pop(values, None)

    def remove_by_labels(self, labels: Mapping[str, str]) -> None:
        for values in list(self.by_values):
            if labels.items() <= self._labels_of(values).items():
                self.remove(*values)

    def collect(self) -> Iterator[Family]:
        family = Family(self._metric.full_name, self._metric.text, self._metric.kind.value)
        for values, series in list(self.by_values.items()):
            family.samples += series.samples(self._metric.full_name, self._labels_of(values))
        yield family

    def describe(self) -> Iterator[Family]:  # its names, which must be unique
        yield Family(self._metric.full_name, "", self._metric.kind.value)

    def _labels_of(self, values: tuple[str, ...]) -> dict[str, str]:
        return dict(zip(self._metric.labels, values, strict=True))


class ForeignMetric(NamedTuple):
    """A metric under a foreign name, with a value for each label set."""

    name: str
    text: str
    is_gauge: bool
    samples: list[tuple[dict[str, str], float]]


class Registry:
    """The metrics of this process and of its garbage collector, and those that are added, by their names."""

    def __init__(self, table: Iterable[Metric]) -> None:
        self.counters: dict[str, Series[Count]] = {}
        self.histograms: dict[str, Series[Observations]] = {}
        self.gauges: dict[str, Gauge] = {}
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        for metric in table:
            self.add(metric)

    def add(self, metric: Metric) -> None:
        match metric.kind:
            case Kind.COUNTER:
                self.counters[metric.name] = Series(metric, Count)
                self._registry.register(self.counters[metric.name])
            case Kind.HISTOGRAM:
                self.histograms[metric.name] = Series(metric, lambda: Observations(metric.buckets))
                self._registry.register(self.histograms[metric.name])
            case Kind.GAUGE:
                gauge = Gauge(metric.full_name, metric.text, metric.labels, registry=self._registry)
                self.gauges[metric.name] = gauge

    def remove(self, metric: Metric, labels: dict[str, str]) -> None:
        every: dict[str, Any] = {**self.counters, **self.histograms, **self.gauges}
        every[metric.name].remove_by_labels(labels)

    def shows(self, foreign: Callable[[], Iterable[ForeignMetric]]) -> None:
        """Include these metrics whenever the metrics are read."""
        self._registry.register(_Foreign(foreign))

    def samples(self) -> Iterator[Sample]:
        for family in self._registry.collect():
            yield from family.samples

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return the text format requested by an HTTP `Accept` header, and its content type."""
        try:
            # The content type echoes parts of the header.
            encoder, content_type = choose_encoder(" ".join(accept.split()))
        except TypeError:  # its parser fails on invalid versions
            encoder, content_type = choose_encoder("")
        return encoder(self._registry), content_type


class _Foreign(Collector):
    def __init__(self, foreign: Callable[[], Iterable[ForeignMetric]]) -> None:
        self._foreign = foreign

    def collect(self) -> Iterator[Family]:
        for each in self._foreign():
            # Not a counter, whose name would have to end with _total.
            family = Family(each.name, each.text, "gauge" if each.is_gauge else "unknown")
            for labels, value in each.samples:
                family.add_sample(each.name, labels, value)
            yield family

    def describe(self) -> Iterator[Family]:  # otherwise registering it calls `collect`
        return iter(())
