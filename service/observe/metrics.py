"""What is counted and measured of the server and its calls; `table.py` says what each metric is."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from service.domain.errors import MemoryFull, Overloaded
from service.engine.engine import Engine
from service.models.reload_plan import ReloadOutcome
from service.observe.model_metrics import ModelMetrics
from service.observe.own_memory import memory_bytes, memory_limit_bytes
from service.observe.registry import ForeignMetric, Registry, Sample
from service.observe.table import OF_MODELS, OF_SERVER, TLS_NOT_AFTER


class ModelInfo(NamedTuple):
    """The labels of `model_info`."""

    model: str
    version: str
    precision: str
    checkpoint_sha256: str
    kernels: str


class Metrics:
    """The server's metrics in their own registry."""

    def __init__(self) -> None:
        self._registry = Registry((*OF_SERVER, *OF_MODELS))
        self._models: dict[str, ModelMetrics] = {}
        self._served: set[ModelInfo] = set()
        self._keys: set[str] = set()
        self._num_inflight = 0
        self._counters, self._gauges = self._registry.counters, self._registry.gauges
        self._requests = self._counters["requests"]
        self._request_seconds = self._registry.histograms["request_duration_seconds"]
        for refusal in (Overloaded, MemoryFull):  # from the first one on: `rate` sees no series' beginning
            self._counters["rejected"].labels(refusal.reason)
        for outcome in ReloadOutcome:
            self._counters["reloads"].labels(outcome.value)
        self._gauges["inflight_requests"].set_function(lambda: self._num_inflight)
        self._gauges["memory_bytes"].set_function(memory_bytes)
        self._gauges["memory_limit_bytes"].set_function(memory_limit_bytes)  # each time: it may be changed meanwhile

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return the text format requested by an HTTP `Accept` header, and its content type."""
        return self._registry.render(accept)

    def samples(self) -> Iterator[Sample]:
        return self._registry.samples()

    def model(self, name: str) -> ModelMetrics:
        return self._models.get(name) or self._models.setdefault(name, ModelMetrics(self._registry, name))

    def call_started(self) -> None:
        self._num_inflight += 1

    def call_finished(
        self, method: str, code: str, seconds: float, trace_id: str = "", model: str = "", version: str = ""
    ) -> None:
        """Count a call answered with status `code`. `trace_id` becomes the exemplar, if there is a trace; `model` is
        empty for a call that used none."""
        self._num_inflight -= 1
        self._call_answered(method, code, seconds, trace_id)
        if model in self._models:  # else it has been retired in the meantime
            self._models[model].answered(version, code, seconds)

    def call_refused(self, method: str, code: str) -> None:
        """Count a call rejected on arrival; `rejected` counts the reason."""
        self._call_answered(method, code, 0.0)

    def rejected(self, reason: str) -> None:
        self._counters["rejected"].labels(reason).inc()

    def knows_keys(self, names: set[str]) -> None:
        """Set the names of the keys, and remove the series of all others."""
        for metric in ("key_requests", "key_refused", "key_tokens"):
            for name in names:
                self._counters[metric].labels(name)
            for name in self._keys - names:
                self._counters[metric].remove(name)
        self._keys = names

    def key_called(self, name: str) -> None:
        self._counters["key_requests"].labels(name).inc()

    def key_refused(self, name: str) -> None:
        self._counters["key_refused"].labels(name).inc()

    def key_used(self, name: str, num_tokens: int) -> None:
        if name in self._keys:  # else it has been revoked in the meantime
            self._counters["key_tokens"].labels(name).inc(num_tokens)

    def tls_valid_until(self, not_after_seconds: float) -> None:
        """Set until when the certificate for new connections is valid, in Unix time."""
        if TLS_NOT_AFTER.name not in self._gauges:
            self._registry.add(TLS_NOT_AFTER)
        self._gauges[TLS_NOT_AFTER.name].set(not_after_seconds)

    def state(self, *, ready: bool, draining: bool) -> None:
        """Set the server's state."""
        self._gauges["ready"].set(ready)
        self._gauges["draining"].set(draining)

    def built_with(self, version: str, onnxruntime_version: str, provider: str) -> None:
        self._gauges["build_info"].labels(version, onnxruntime_version, provider).set(1)

    def memory_for_cache(self, max_bytes: int, num_bytes: Callable[[], int]) -> None:
        """Set the limit and a callback for the bytes of cached translations, called on each read of the metrics."""
        self._gauges["cache_max_bytes"].set(max_bytes)
        self._gauges["cache_bytes"].set_function(num_bytes)

    def memory_for_calls(self, max_bytes: int, num_bytes: Callable[[], int]) -> None:
        """Set the limit and a callback for the bytes of messages and answers, called on each read of the metrics."""
        self._gauges["bytes_in_flight_max"].set(max_bytes)
        self._gauges["bytes_in_flight"].set_function(num_bytes)

    def watches_loop(self, num_tasks: Callable[[], int], silent_seconds: Callable[[], float]) -> None:
        """Set callbacks for the number of event loop tasks, and for the time since the loop last ran.

        They are called on each read of the metrics, on another thread.
        """
        self._gauges["event_loop_tasks"].set_function(num_tasks)
        self._gauges["event_loop_silence_seconds"].set_function(silent_seconds)

    def shows(self, foreign: Callable[[], Iterable[ForeignMetric]]) -> None:
        """Include these metrics whenever the metrics are read."""
        self._registry.shows(foreign)

    def serves(self, models: Iterable[ModelInfo]) -> None:
        """Set the served models, and remove the series of all others."""
        served = set(models)
        for info in served - self._served:
            self._gauges["model_info"].labels(*info).set(1)
            self._counters["model_load_failures"].labels(info.model)
        for info in self._served - served:
            self._gauges["model_info"].remove(*info)
        self._served = served

    def reloaded(self, outcome: ReloadOutcome) -> None:
        self._counters["reloads"].labels(outcome.value).inc()

    def load_failed(self, model: str) -> None:
        """Count a bundle of this model that could not be loaded."""
        self._counters["model_load_failures"].labels(model).inc()
        self._forget_unless_loaded(model)

    def retired(self, model: str, version: str, engine: Engine) -> None:
        """Remove the stopped engine of one version of a model."""
        is_replaced = any((each.model, each.version) == (model, version) for each in self._served)
        self.model(model).retired(engine, version, is_replaced=is_replaced)
        self._forget_unless_loaded(model)

    def _call_answered(self, method: str, code: str, seconds: float, trace_id: str = "") -> None:
        self._requests.labels(method, code).inc()
        self._request_seconds.labels(method, code).observe(seconds, {"trace_id": trace_id} if trace_id else None)

    def _forget_unless_loaded(self, model: str) -> None:
        if not self.model(model).is_loaded:
            del self._models[model]
            for metric in OF_MODELS:
                self._registry.remove(metric, {"model": model})
