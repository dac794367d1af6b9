"""Every Prometheus metric of the server. Names are permanent.

Times are in seconds, lengths in tokens. Labels are bounded: `model` only from the models on disk, `method` only from
the served methods, `code` is the name of a gRPC status, `reason` is from `ServiceError.reason` or `FinishReason`.

A model's series cover all its loaded versions: counters continue when one version replaces another, gauges are sums.
They are removed when no version is left; those with the label `version` when theirs is retired.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from service.domain.errors import MemoryFull, Overloaded
from service.engine.engine import Engine
from service.models.reload_plan import ReloadOutcome
from service.observe.families import Family, Merge, Sample
from service.observe.model_metrics import ModelMetrics, ModelSeries
from service.observe.own_memory import memory_bytes, memory_limit_bytes
from service.observe.registry import REQUEST_BUCKETS, ForeignMetric, Registry


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
        registry = self._registry = Registry()
        self._models: dict[str, ModelMetrics] = {}
        self._served: set[ModelInfo] = set()
        # Calls, as seen by the caller
        self._requests = registry.counter("requests", "Finished calls.", "method", "code")
        self._request_seconds = registry.histogram(
            "request_duration_seconds",
            "Time from a call's arrival to its last byte.",
            REQUEST_BUCKETS,
            "method",
            "code",
        )
        inflight = registry.gauge(
            "inflight_requests", "Calls that were accepted and not yet answered.", merge=Merge.SUM
        )
        self._num_inflight = 0
        inflight.set_function(lambda: self._num_inflight)
        self._bytes_in_flight = registry.gauge(
            "bytes_in_flight",
            "Bytes of calls' messages and answers, including those that may still arrive.",
            merge=Merge.SUM,
        )
        self._bytes_in_flight_max = registry.gauge("bytes_in_flight_max", "Maximum of these bytes.", merge=Merge.SUM)
        self._rejected = registry.counter("rejected", "Rejected calls, by reason.", "reason")
        for refusal in (Overloaded, MemoryFull):  # from the first one on: `rate` sees no series' beginning
            self._rejected.labels(refusal.reason)
        # Callers, by name of their key
        self._key_requests = registry.counter("key_requests", "Accepted calls, by the caller's key.", "key")
        self._key_refused = registry.counter("key_refused", "Calls rejected by a quota, by the caller's key.", "key")
        self._key_tokens = registry.counter(
            "key_tokens", "Tokens of sources and translations, by the caller's key.", "key"
        )
        self._keys: set[str] = set()
        # The server
        self._ready = registry.gauge("ready", "1 while the server is ready for calls.", merge=Merge.MAX)
        self._draining = registry.gauge("draining", "1 while the server is stopping.", merge=Merge.MAX)
        self._set_tls_not_after: Callable[[float], None] | None = None  # only with TLS: 0 would look long expired
        self._add_tls_not_after = registry.later_gauge(
            "tls_certificate_not_after_seconds", "End of the TLS certificate's validity, in Unix time.", merge=Merge.MIN
        )
        self._loop_tasks = registry.gauge(
            "event_loop_tasks", "Tasks on the event loop, such as calls in progress.", merge=Merge.SUM
        )
        self._loop_silence = registry.gauge(
            "event_loop_silence_seconds",
            "Time since the event loop last ran; it should run every second.",
            merge=Merge.MAX,
        )
        memory = registry.gauge(
            "memory_bytes",
            "Resident memory; pages that several processes share count in parts, so that theirs add up.",
            merge=Merge.SUM,
        )
        memory.set_function(memory_bytes)
        memory_limit = registry.gauge(
            "memory_limit_bytes", "What the container's limit allows of it; infinite without one.", merge=Merge.SAME
        )
        memory_limit.set_function(memory_limit_bytes)  # each time: it may be changed while the container runs
        self._build_info = registry.gauge(
            "build_info", "Always 1.", "version", "onnxruntime_version", "provider", merge=Merge.SAME
        )
        self._model_info = registry.gauge("model_info", "Always 1.", *ModelInfo._fields, merge=Merge.SAME)
        self._reloads = registry.counter("reloads", "Reloads of the models on disk, by outcome.", "outcome")
        for outcome in ReloadOutcome:
            self._reloads.labels(outcome.value)
        self._load_failures = registry.counter("model_load_failures", "Bundles that could not be loaded.", "model")
        self._cache_bytes = registry.gauge("cache_bytes", "Approximate memory of cached translations.", merge=Merge.SUM)
        self._cache_max_bytes = registry.gauge(
            "cache_max_bytes", "Maximum memory for cached translations; 0: no cache.", merge=Merge.SUM
        )
        self.of_models = ModelSeries(registry)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        return self._registry.render(accept)

    def samples(self) -> Iterator[Sample]:
        return self._registry.samples()

    def families(self) -> Iterator[Family]:
        return self._registry.families()

    def rules(self) -> dict[str, Merge]:
        return self._registry.rules()

    def model(self, name: str) -> ModelMetrics:
        return self._models.get(name) or self._models.setdefault(name, ModelMetrics(self.of_models, name))

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
        self._rejected.labels(reason).inc()

    def knows_keys(self, names: set[str]) -> None:
        """Set the names of the keys, and remove the series of all others."""
        of_keys = (self._key_requests, self._key_refused, self._key_tokens)
        for metric in of_keys:
            for name in names:
                metric.labels(name)
            for name in self._keys - names:
                metric.remove(name)
        self._keys = names

    def key_called(self, name: str) -> None:
        self._key_requests.labels(name).inc()

    def key_refused(self, name: str) -> None:
        self._key_refused.labels(name).inc()

    def key_used(self, name: str, num_tokens: int) -> None:
        if name in self._keys:  # else it has been revoked in the meantime
            self._key_tokens.labels(name).inc(num_tokens)

    def tls_valid_until(self, not_after_seconds: float) -> None:
        """Set until when the certificate for new connections is valid, in Unix time."""
        if self._set_tls_not_after is None:
            self._set_tls_not_after = self._add_tls_not_after().set
        self._set_tls_not_after(not_after_seconds)

    def state(self, *, ready: bool, draining: bool) -> None:
        """Set the server's state."""
        self._ready.set(ready)
        self._draining.set(draining)

    def built_with(self, version: str, onnxruntime_version: str, provider: str) -> None:
        self._build_info.labels(version, onnxruntime_version, provider).set(1)

    def memory_for_cache(self, max_bytes: int, num_bytes: Callable[[], int]) -> None:
        """Set the limit and a callback for the bytes of cached translations, called on each read of the metrics."""
        self._cache_max_bytes.set(max_bytes)
        self._cache_bytes.set_function(num_bytes)

    def memory_for_calls(self, max_bytes: int, num_bytes: Callable[[], int]) -> None:
        """Set the limit and a callback for the bytes of messages and answers, called on each read of the metrics."""
        self._bytes_in_flight_max.set(max_bytes)
        self._bytes_in_flight.set_function(num_bytes)

    def watches_loop(self, num_tasks: Callable[[], int], silent_seconds: Callable[[], float]) -> None:
        """Set callbacks for the number of event loop tasks, and for the time since the loop last ran.

        They are called on each read of the metrics, on another thread.
        """
        self._loop_tasks.set_function(num_tasks)
        self._loop_silence.set_function(silent_seconds)

    def shows(self, foreign: Callable[[], Iterable[ForeignMetric]]) -> None:
        """Include these metrics whenever the metrics are read."""
        self._registry.shows(foreign)

    def serves(self, models: Iterable[ModelInfo]) -> None:
        """Set the served models, and remove the series of all others."""
        served = set(models)
        for info in served - self._served:
            self._model_info.labels(*info).set(1)
            self._load_failures.labels(info.model)
        for info in self._served - served:
            self._model_info.remove(*info)
        self._served = served

    def reloaded(self, outcome: ReloadOutcome) -> None:
        self._reloads.labels(outcome.value).inc()

    def load_failed(self, model: str) -> None:
        """Count a bundle of this model that could not be loaded."""
        self._load_failures.labels(model).inc()
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
            self.of_models.remove(model)
