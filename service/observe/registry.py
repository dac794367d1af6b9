"""The registry of all metrics, and the only importer of prometheus_client."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Gauge, Metric
from prometheus_client import samples as prometheus
from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from service.observe.families import Exemplar, Family, Merge, Sample
from service.observe.series import Counter, Histogram

# fmt: off
REQUEST_BUCKETS = (
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0,
)
STEP_BUCKETS = (
    0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2,
    0.5, 1.0,
)
# fmt: on
SIZE_BUCKETS = tuple(float(2**power) for power in range(11))  # 1 to 1024
RATIO_BUCKETS = tuple(tenths / 10 for tenths in range(11))

_FOREIGN_GAUGES = {  # those that prometheus_client adds, and Triton's
    "process_virtual_memory_bytes": Merge.SUM,
    "process_resident_memory_bytes": Merge.SUM,
    "process_start_time_seconds": Merge.MIN,
    "process_open_fds": Merge.SUM,
    "process_max_fds": Merge.SUM,
    "nv_inference_pending_request_count": Merge.SUM,
}


T = TypeVar("T", Counter, Histogram)


class ForeignMetric(NamedTuple):
    """A metric under a foreign name, with a value for each label set."""

    name: str
    text: str
    is_gauge: bool
    samples: list[tuple[Mapping[str, str], float]]


class Registry:
    """The metrics of this process and of its garbage collector, and those that are added."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._rules = dict(_FOREIGN_GAUGES)
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        return self._added(Counter(f"dragoman_{name}", text, labels))

    def gauge(self, name: str, text: str, *labels: str, merge: Merge) -> Gauge:
        """Add a gauge; `merge` is how those of several worker processes become one."""
        return self.later_gauge(name, text, *labels, merge=merge)()

    def later_gauge(self, name: str, text: str, *labels: str, merge: Merge) -> Callable[[], Gauge]:
        """Return what adds a gauge when it is called, once, for one that only some servers have."""
        self._rules[f"dragoman_{name}"] = merge
        return lambda: Gauge(f"dragoman_{name}", text, labels, registry=self._registry)

    def histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        """Add a histogram with the upper bounds of its buckets."""
        return self._added(Histogram(f"dragoman_{name}", text, labels, buckets))

    def seconds(self, name: str, text: str, buckets: tuple[float, ...] = REQUEST_BUCKETS) -> Histogram:
        return self.histogram(name, text, buckets, "model")

    def sizes(self, name: str, text: str) -> Histogram:
        return self.histogram(name, text, SIZE_BUCKETS, "model")

    def shows(self, foreign: Callable[[], Iterable[ForeignMetric]]) -> None:
        """Include these metrics whenever the metrics are read."""
        self._registry.register(_Foreign(foreign))

    def render(self, accept: str = "") -> tuple[bytes, str]:
        return _encoded(self._registry, accept)

    def samples(self) -> Iterator[Sample]:
        for family in self.families():
            yield from family.samples

    def families(self) -> Iterator[Family]:
        for metric in self._registry.collect():
            yield Family(metric.name, metric.type, metric.documentation, [_sample(each) for each in metric.samples])

    def _added(self, series: T) -> T:
        self._registry.register(_Counted(series))
        return series

    def rules(self) -> dict[str, Merge]:
        """Return how gauges of several worker processes become one: of these metrics, and of those that are added."""
        return dict(self._rules)


def render(families: Iterable[Family], accept: str = "") -> tuple[bytes, str]:
    """Return metrics in the text format requested by an HTTP `Accept` header, and its content type."""
    return _encoded(_Given(families), accept)


def _encoded(collector: Collector, accept: str) -> tuple[bytes, str]:
    try:
        encoder, content_type = choose_encoder(" ".join(accept.split()))  # the content type echoes parts of the header
    except TypeError:  # its parser fails on invalid versions
        encoder, content_type = choose_encoder("")
    return encoder(collector), content_type


def _sample(sample: prometheus.Sample) -> Sample:
    given = sample.exemplar
    exemplar = Exemplar(given.labels, given.value, float(given.timestamp or 0.0)) if given else None
    return Sample(sample.name, sample.labels, sample.value, exemplar)


class _Given(Collector):
    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return map(_metric, self._families)


class _Counted(Collector):
    def __init__(self, series: Counter | Histogram) -> None:
        self._series = series

    def collect(self) -> Iterator[Metric]:
        yield _metric(self._series.family())

    def describe(self) -> Iterator[Metric]:  # its names, which must be unique
        yield Metric(self._series.name, "", self._series.kind)


def _metric(family: Family) -> Metric:
    metric = Metric(family.name, family.text, family.kind)
    for name, labels, value, given in family.samples:
        exemplar = prometheus.Exemplar(dict(given.labels), given.value, given.time_seconds) if given else None
        metric.add_sample(name, dict(labels), value, exemplar=exemplar)
    return metric


class _Foreign(Collector):
    def __init__(self, foreign: Callable[[], Iterable[ForeignMetric]]) -> None:
        self._foreign = foreign

    def collect(self) -> Iterator[Metric]:
        for each in self._foreign():
            # Not a counter, whose name would have to end with _total.
            metric = Metric(each.name, each.text, "gauge" if each.is_gauge else "unknown")
            for labels, value in each.samples:
                metric.add_sample(each.name, dict(labels), value)
            yield metric

    def describe(self) -> Iterator[Metric]:  # otherwise registering it calls `collect`
        return iter(())
