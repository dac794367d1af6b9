"""Merging: what several workers counted is what one server would have counted, whatever happens to the workers."""

import json
import math
import subprocess
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from service.observe.families import Exemplar, Family, Merge, Sample, from_json, to_json
from service.observe.kept_counts import KeptCounts, reported_by
from service.observe.merging import UnruledGauge, merged
from service.observe.metrics import Metrics
from service.observe.registry import Registry, render
from tests.patience import patient
from tests.tools import tool

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
METHODS, CODES, MODELS = ("Translate", "reload"), ("OK", "INTERNAL"), ("en-de", "many")
BOUNDS = (0.25, 1.0, 4.0)

# Durations whose sums are exact in binary, so that the order of additions does not matter.
observations = st.tuples(
    st.sampled_from(METHODS), st.sampled_from(CODES), st.integers(0, 80).map(lambda tenths: tenths / 8)
)


class Counting:
    """One process's metrics, of each kind that counts."""

    def __init__(self) -> None:
        self.registry = Registry()
        self._calls = self.registry.counter("calls", "Calls.", "method", "code")
        self._seconds = self.registry.histogram("seconds", "Durations.", BOUNDS, "method")
        self._running = self.registry.gauge("running", "Running.", "method", merge=Merge.SUM)

    def observe(self, observation: tuple[str, str, float]) -> None:
        method, code, seconds = observation
        self._calls.labels(method, code).inc()
        self._seconds.labels(method).observe(seconds)
        self._running.labels(method).inc()

    def families(self) -> list[Family]:
        """Return the metrics as another process gets them, without those of this process."""
        families = from_json(to_json(self.registry.families()))
        return [family for family in families if family.name.startswith("dragoman_")]

    def rules(self) -> dict[str, Merge]:
        return self.registry.rules()


def values(families: Iterable[Family] | Iterable[Metric]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return all samples but the times when something was created."""
    found = {}
    for family in families:
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found
            if not sample.name.endswith("_created"):
                found[key] = sample.value
    return found


@given(st.lists(st.tuples(st.integers(0, 3), observations), max_size=40))
def test_the_sum_of_the_workers_is_what_one_would_have_counted(calls: list[tuple[int, tuple[str, str, float]]]) -> None:
    one, workers = Counting(), [Counting() for _ in range(4)]
    for number, observation in calls:
        one.observe(observation)
        workers[number].observe(observation)
    whole = merged([worker.families() for worker in workers], one.rules())
    assert values(whole) == values(one.families())
    for accept, parse in (("", parse_text), (OPENMETRICS, parse_openmetrics)):
        body, content_type = render(whole, accept)
        assert content_type.startswith(accept or "text/plain")
        parsed = {key: value for key, value in values(parse(body.decode())).items() if "_created" not in key[0]}
        assert parsed == values(one.families())


@given(
    st.lists(
        st.one_of(
            st.tuples(st.integers(0, 2), observations),
            st.tuples(st.integers(0, 2), st.sampled_from(["restart", "read", "silent"])),
        ),
        max_size=40,
    )
)
def test_counts_never_fall_when_workers_restart(happened: list[tuple[int, tuple[str, str, float] | str]]) -> None:
    """What a worker counted after it was last read is lost with it; everything else is what one would have counted."""
    workers = [Counting() for _ in range(3)]
    starts, kept = [float(number) for number in range(3)], [KeptCounts() for _ in range(3)]
    unread: list[list[tuple[str, str, float]]] = [[], [], []]
    one, before = Counting(), dict[tuple[str, tuple[tuple[str, str], ...]], float]()
    for number, event in happened:
        if event == "restart":
            workers[number], unread[number] = Counting(), []
            starts[number] += 10.0
        elif not isinstance(event, str):
            workers[number].observe(event)
            unread[number].append(event)
        else:
            silent = number if event == "silent" else None
            parts: list[list[Family]] = []
            for each, worker in enumerate(workers):
                if each != silent:
                    for observation in unread[each]:
                        one.observe(observation)
                    unread[each] = []
                    now = [*worker.families(), started_at(starts[each])]
                    kept[each].read(now)
                    parts.append(now)
                parts.append(kept[each].kept(answers=each != silent))
            whole = merged(parts, {**one.rules(), "process_start_time_seconds": Merge.MIN})
            counted = {key: value for key, value in values(whole).items() if is_count(key)}
            assert counted == {key: value for key, value in values(one.families()).items() if is_count(key)}
            assert all(counted[key] >= value for key, value in before.items())
            before = counted


def started_at(seconds: float) -> Family:
    return Family("process_start_time_seconds", "gauge", "", [Sample("process_start_time_seconds", {}, seconds)])


def is_count(key: tuple[str, tuple[tuple[str, str], ...]]) -> bool:
    return key[0].startswith(("dragoman_calls", "dragoman_seconds"))


def counter(value: float, created: float | None = None, name: str = "calls", **labels: str) -> Family:
    samples = [Sample("calls_total", labels, value)]
    if created is not None:
        samples.append(Sample("calls_created", labels, created))
    return Family(name, "counter", "Calls.", samples)


def total(kept: KeptCounts, now: list[Family]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    kept.read(now)
    return values(merged([now, kept.kept(answers=True)], {}))


def test_another_process_is_noticed_by_its_start() -> None:
    kept = KeptCounts()
    assert not kept.read([counter(1.0), started_at(10.0)])
    assert not kept.read([counter(2.0), started_at(10.0)])
    assert kept.read([counter(3.0), started_at(20.0)])
    assert values(kept.kept(answers=True)) == {("calls_total", ()): 2.0}


def test_a_series_that_begins_again_in_the_same_process_is_kept_too() -> None:
    kept = KeptCounts()
    key = ("calls_total", (("model", "a"),))
    assert total(kept, [counter(10.0, 1.0, model="a")])[key] == 10.0
    assert total(kept, [counter(4.0, 2.0, model="a")])[key] == 14.0  # lower
    assert total(kept, [counter(5.0, 3.0, model="a")])[key] == 19.0  # higher, but created later
    assert total(kept, [])[key] == 19.0  # gone
    assert total(kept, [counter(1.0, model="a")])[key] == 20.0


def test_what_no_worker_reports_any_more_is_forgotten() -> None:
    kept = KeptCounts()
    kept.read([counter(3.0, model="a"), counter(2.0, name="keys", key="ci"), counter(1.0, name="x")])
    kept.read([])
    kept.forget(reported_by([counter(0.0, model="a")]))
    assert {key for key, value in values(kept.kept(answers=True)).items()} == {
        ("calls_total", (("model", "a"),)),
        ("calls_total", ()),
    }
    kept.forget(reported_by([]))
    assert values(kept.kept(answers=True)) == {("calls_total", ()): 1.0}


def test_a_histogram_that_begins_again_is_kept_as_a_whole() -> None:
    """Not bucket by bucket: some of them may already be higher than they were."""

    def histogram(counts: tuple[float, float]) -> Family:
        samples = [Sample("s_bucket", {"le": le}, count) for le, count in zip(("1.0", "+Inf"), counts, strict=True)]
        return Family(
            "s", "histogram", "", [*samples, Sample("s_count", {}, counts[1]), Sample("s_sum", {}, counts[1])]
        )

    kept = KeptCounts()
    total(kept, [histogram((1.0, 9.0))])
    found = total(kept, [histogram((4.0, 5.0))])
    assert found["s_bucket", (("le", "1.0"),)] == 5.0
    assert found["s_bucket", (("le", "+Inf"),)] == 14.0 == found["s_count", ()]


@pytest.mark.parametrize(
    ("rule", "expected"), [(Merge.SUM, 6.0), (Merge.MIN, 1.0), (Merge.MAX, 3.0), (Merge.MEAN, 2.0), (Merge.SAME, 3.0)]
)
def test_gauges_are_merged_by_their_rules(rule: Merge, expected: float) -> None:
    parts = [[Family("g", "gauge", "", [Sample("g", {"model": "a"}, value)])] for value in (1.0, 3.0, 2.0)]
    assert values(merged(parts, {"g": rule})) == {("g", (("model", "a"),)): expected}


def test_a_gauge_without_a_rule_is_an_error_that_names_it() -> None:
    with pytest.raises(UnruledGauge, match=r"^unruled \(gauge\) has no rule"):
        merged([[Family("unruled", "gauge", "", [Sample("unruled", {}, 1.0)])]], {})


def test_the_latest_exemplar_and_the_earliest_creation_remain() -> None:
    def part(value: float, time_seconds: float) -> list[Family]:
        exemplar = Exemplar({"trace_id": f"{value}"}, value, time_seconds)
        bucket = Sample("s_bucket", {"le": "+Inf"}, 1.0, exemplar)
        return [Family("s", "histogram", "", [bucket, Sample("s_count", {}, 1.0), Sample("s_created", {}, value)])]

    (family,) = merged([part(0.2, 10.0), part(0.3, 30.0), part(0.1, 20.0)], {})
    bucket, count, created = family.samples
    assert (bucket.value, count.value, created.value) == (3.0, 3.0, 0.1)
    assert bucket.exemplar == Exemplar({"trace_id": "0.3"}, 0.3, 30.0)
    body, _ = render([family], OPENMETRICS)
    assert b'# {trace_id="0.3"} 0.3 30.0' in body


def test_all_metrics_of_a_server_have_rules_and_survive_the_way() -> None:
    metrics = Metrics()
    metrics.tls_valid_until(1e9)
    metrics.built_with("1", "2", "cpu")
    metrics.call_finished("a/B", "OK", 0.1, "0af7651916cd43dd8448eb211c80319c")
    for name in MODELS:
        metrics.model(name)
        metrics.load_failed(name)
    families = from_json(to_json(metrics.families()))
    (whole,) = {len(merged([families] * copies, metrics.rules())) for copies in (1, 2)}
    assert whole == len(families)
    for accept, parse in (("", parse_text), (OPENMETRICS, parse_openmetrics)):
        alone, _ = render(merged([families], metrics.rules()), accept)
        assert values(parse(alone.decode())).keys() == values(parse(metrics.render(accept)[0].decode())).keys()
    assert b"0af7651916cd43dd8448eb211c80319c" in alone


def test_numbers_that_json_does_not_have_arrive() -> None:
    family = Family("g", "gauge", "Ä\n", [Sample("g", {"a": '"\\'}, value) for value in (math.inf, -math.inf)])
    assert from_json(to_json([family])) == [family]
    (nan,) = from_json(to_json([Family("g", "gauge", "", [Sample("g", {}, math.nan)])]))
    assert math.isnan(nan.samples[0].value)


@pytest.mark.parametrize("document", [b"", b"{", b"[1]", b'[["a"]]', json.dumps([["a", "b", "c", [[]]]]).encode()])
def test_something_else_is_not_taken_for_metrics(document: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # json's have no common message
        from_json(document)


def test_prometheus_finds_no_fault_with_it() -> None:
    metrics = Metrics()
    for name in MODELS:
        metrics.model(name)
    metrics.call_finished("a/B", "OK", 0.1)
    body, _ = render(merged([list(metrics.families())] * 3, metrics.rules()))
    command = [tool("promtool", "prometheus"), "check", "metrics"]
    run = subprocess.run(command, input=body, capture_output=True, timeout=patient(30), check=False)
    assert run.stdout + run.stderr == b""
