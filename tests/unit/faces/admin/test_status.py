"""The page's numbers are sums of those on the metrics page, and count only calls that translate."""

from service.domain.call import Call, CallKind
from service.faces.admin.status import numbers_of
from service.observe.metrics import Metrics
from service.observe.registry import Registry
from service.observe.table import OF_MODELS, OF_SERVER


def test_calls_are_those_that_translate() -> None:
    metrics = Metrics()
    for method, kind, code, seconds in (
        ("dragoman.v1.TranslationService/Translate", CallKind.TRANSLATE, "OK", 0.015),
        ("http/openai/chat_completions", CallKind.TRANSLATE, "OK", 0.2),
        ("dragoman.v1.TranslationService/TranslateStream", CallKind.STREAM, "NOT_FOUND", 0.2),
        ("http/deepl/document", CallKind.DOCUMENT, "OK", 0.2),
        ("grpc.health.v1.Health/Check", CallKind.OTHER, "OK", 0.0001),
        ("admin/reload", CallKind.OTHER, "OK", 9.0),
    ):
        metrics.call_started()
        metrics.call_finished(Call(method, kind=kind, code=code, began_seconds=1.0, ended_seconds=1.0 + seconds))
    numbers = numbers_of(metrics.samples())
    assert numbers["calls"] == {"OK": 3, "NOT_FOUND": 1}
    histogram = numbers["histograms"]["request_seconds"]
    counts = dict(zip(histogram["bounds"], histogram["counts"], strict=False))
    assert (counts[0.01], counts[0.02], counts[0.15], counts[0.2]) == (0, 1, 1, 4)
    assert histogram["counts"][-1] == 4
    assert len(histogram["counts"]) == len(histogram["bounds"]) + 1  # the last one counts all
    assert numbers["inflight_requests"] == 0


def test_models_are_summed_and_memory_is_theirs() -> None:
    registry = Registry((*OF_SERVER, *OF_MODELS))
    for model, slots, slot_bytes, tokens in (("a", 2, 100, 5), ("b", 3, 1000, 7)):
        registry.gauges["slots_running"].labels(model).set(slots)
        registry.gauges["slots_max"].labels(model).set(10)
        registry.gauges["kv_cache_bytes_per_slot"].labels(model).set(slot_bytes)
        registry.counters["target_tokens"].labels(model).inc(tokens)
    numbers = numbers_of(registry.samples())
    assert (numbers["slots_running"], numbers["slots_max"], numbers["target_tokens_total"]) == (5, 20, 12)
    assert (numbers["kv_bytes_used"], numbers["kv_bytes_reserved"]) == (3200, 11000)


def test_a_server_that_has_done_nothing_has_numbers_too() -> None:
    numbers = numbers_of(Metrics().samples())
    assert numbers["calls"] == {}
    assert numbers["source_tokens_total"] == 0
    assert numbers["kv_bytes_reserved"] == 0
