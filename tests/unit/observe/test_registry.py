"""Counters and histograms of our own."""

import re

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from service.observe.registry import Registry
from service.observe.table import OF_MODELS, OF_SERVER, STEP_BUCKETS, TLS_NOT_AFTER, Kind, Metric

CALLS = Metric(Kind.COUNTER, "calls", "Calls.", ("method",))
SECONDS = Metric(Kind.HISTOGRAM, "seconds", "Durations.", ("method",), STEP_BUCKETS)


def test_a_value_observed_several_times_at_once_is_counted_as_often() -> None:
    table = [Metric(Kind.HISTOGRAM, name, "Rows.", ("model",), (1.0, 2.0, 4.0)) for name in ("once", "each")]
    registry = Registry(table)
    at_once, one_by_one = (registry.histograms[metric.name] for metric in table)
    for value, count in ((0.5, 3), (2.0, 5), (2.5, 0), (3.0, 1), (9.0, 2)):
        at_once.labels("en-de").observe_times(value, count)
        for _ in range(count):
            one_by_one.labels("en-de").observe(value)
    samples: dict[str, list[tuple[str, str | None, float]]] = {"once": [], "each": []}
    for sample in registry.samples():
        name = sample.name.removeprefix("dragoman_")
        if name[:4] in samples and not name.endswith("_created"):
            samples[name[:4]].append((name[4:], sample.labels.get("le"), sample.value))
    assert samples["once"] == samples["each"]
    assert ("_count", None, 11.0) in samples["once"]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.floats(0.0, 5.0).map(lambda value: round(value, 3))), max_size=40),
    st.sampled_from(["", "application/openmetrics-text; version=1.0.0"]),
)
def test_a_page_is_as_prometheus_client_writes_it(observed: list[tuple[str, float]], accept: str) -> None:
    ours, theirs = Registry([CALLS, SECONDS]), CollectorRegistry()
    their_counter = prometheus_client.Counter("dragoman_calls", "Calls.", ["method"], registry=theirs)
    their_histogram = prometheus_client.Histogram(
        "dragoman_seconds", "Durations.", ["method"], buckets=STEP_BUCKETS, registry=theirs
    )
    for method, seconds in observed:
        ours.counters["calls"].labels(method).inc()
        their_counter.labels(method).inc()
        ours.histograms["seconds"].labels(method).observe(seconds, {"trace_id": "t"})
        their_histogram.labels(method).observe(seconds, {"trace_id": "t"})
    expected = choose_encoder(accept)[0](theirs).decode()
    assert _own(ours.render(accept)[0].decode()) == _own(expected)


def _own(page: str) -> list[str]:
    """Return the lines of a page about our metrics, without times."""
    lines = [line for line in page.splitlines() if "dragoman_" in line]
    return [re.sub(r"( \S+)? \d{10}\.\d+$|\d\.\d+e\+09$", "", line) for line in lines]


def test_series_are_removed_by_their_labels() -> None:
    finish = Metric(Kind.COUNTER, "finish", "Finished.", ("model", "reason"))
    registry = Registry([finish])
    counter = registry.counters["finish"]
    for model in "ab":
        for reason in "xy":
            counter.labels(model, reason).inc()
    registry.remove(finish, {"model": "a"})
    counter.remove("b", "x")
    counter.remove("b", "x")
    assert [each.labels for each in registry.samples() if each.name == "dragoman_finish_total"] == [
        {"model": "b", "reason": "y"}
    ]
    with pytest.raises(ValueError, match="labels"):
        counter.labels("b")


def test_only_histograms_have_buckets_in_ascending_order() -> None:
    for metric in (*OF_SERVER, TLS_NOT_AFTER, *OF_MODELS):
        assert (metric.kind is Kind.HISTOGRAM) == bool(metric.buckets)
        assert list(metric.buckets) == sorted(set(metric.buckets))
