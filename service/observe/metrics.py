"""Every Prometheus metric of the server, and the only importer of prometheus_client. Names are permanent.

Times are in seconds, lengths in tokens. Labels are bounded: `model` only from the models on disk, `method` only from
the served methods, `code` is the name of a gRPC status, `reason` is from `ServiceError.reason` or `FinishReason`.

A model's series cover all its loaded versions: counters continue when one version replaces another, gauges are sums.
They are removed when no version is left.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from service.domain.call import Phase
from service.domain.errors import Cancelled, DeadlineExceeded
from service.domain.translation import FinishReason, Flag
from service.engine.engine import Engine
from service.engine.sequence import SequenceUpdate
from service.engine.stats import TurnStats
from service.process.lifecycle import ReloadOutcome

# fmt: off
REQUEST_BUCKETS = (
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0,
)
STEP_BUCKETS = (
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0,
)
# fmt: on
SIZE_BUCKETS = tuple(float(2**power) for power in range(11))  # 1 to 1024
RATIO_BUCKETS = tuple(tenths / 10 for tenths in range(11))


T = TypeVar("T", Counter, Gauge, Histogram)


class ModelInfo(NamedTuple):
    """The labels of `model_info`."""

    model: str
    version: str
    precision: str
    checkpoint_sha256: str


class ForeignMetric(NamedTuple):
    """A metric under a foreign name, with a value for each label set."""

    name: str
    text: str
    is_gauge: bool
    samples: list[tuple[Mapping[str, str], float]]


class Sample(NamedTuple):
    """One current value; the names of samples are those on the metrics page."""

    name: str
    labels: Mapping[str, str]
    value: float


class Metrics:
    """The server's metrics in their own registry."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._registry = registry or CollectorRegistry()
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._models: dict[str, ModelMetrics] = {}
        self._served: set[ModelInfo] = set()
        self._of_models: set[Counter | Gauge | Histogram] = set()  # metrics whose series are removed with their model
        # Calls, as seen by the caller
        self._requests = self._counter("requests", "Finished calls.", "method", "code")
        self._request_seconds = self._histogram(
            "request_duration_seconds",
            "Time from a call's arrival to its last byte.",
            REQUEST_BUCKETS,
            "method",
            "code",
        )
        self._inflight = self._gauge("inflight_requests", "Calls that were accepted and not yet answered.")
        self._bytes_in_flight = self._gauge(
            "bytes_in_flight", "Bytes of calls' messages and answers, including those that may still arrive."
        )
        self._bytes_in_flight_max = self._gauge("bytes_in_flight_max", "Maximum of these bytes.")
        self._rejected = self._counter("rejected", "Rejected calls, by reason.", "reason")
        # Callers, by name of their key
        self._key_requests = self._counter("key_requests", "Accepted calls, by the caller's key.", "key")
        self._key_refused = self._counter("key_refused", "Calls rejected by a quota, by the caller's key.", "key")
        self._key_tokens = self._counter(
            "key_tokens", "Tokens of sources and translations, by the caller's key.", "key"
        )
        self._keys: set[str] = set()
        # The server
        self._ready = self._gauge("ready", "1 while the server is ready for calls.")
        self._draining = self._gauge("draining", "1 while the server is stopping.")
        self._tls_not_after: Gauge | None = None  # only with TLS: 0 would look long expired
        self._loop_tasks = self._gauge("event_loop_tasks", "Tasks on the event loop, such as calls in progress.")
        self._loop_silence = self._gauge(
            "event_loop_silence_seconds", "Time since the event loop last ran; it should run every second."
        )
        self._build_info = self._gauge("build_info", "Always 1.", "version", "onnxruntime_version", "provider")
        self._model_info = self._gauge("model_info", "Always 1.", *ModelInfo._fields)
        self._reloads = self._counter("reloads", "Reloads of the models on disk, by outcome.", "outcome")
        for outcome in ReloadOutcome:
            self._reloads.labels(outcome.value)
        self._load_failures = self._counter("model_load_failures", "Bundles that could not be loaded.", "model")
        # Texts of finished calls
        self.sentences = self._counter("sentences", "Sequences by outcome: ok, failed, cancelled.", "model", "outcome")
        self.source_codepoints = self._counter("source_codepoints", "Characters of translated texts.", "model")
        self.source_tokens = self._counter("source_tokens", "Tokens that were encoded.", "model")
        self.target_tokens = self._counter("target_tokens", "Tokens that were generated.", "model")
        self.finish = self._counter("finish", "Finished sequences by the reason they ended.", "model", "reason")
        self.flags = self._counter(
            "segment_flags", "Segments whose translation should be reviewed, by reason.", "model", "flag"
        )
        self.request_sentences = self._sizes("request_sentences", "Sequences per call.")
        self.source_length = self._sizes("source_length_tokens", "Source tokens per sequence.")
        self.target_length = self._sizes("target_length_tokens", "Tokens of the best hypothesis per sequence.")
        # Phases of a call
        self.queue_seconds = self._seconds("queue_seconds", "Wait for a free slot, per sequence.")
        self.tokenize_seconds = self._seconds("tokenize_seconds", "Tokenizing a call's texts.", STEP_BUCKETS)
        self.detokenize_seconds = self._seconds("detokenize_seconds", "Detokenizing a call's texts.", STEP_BUCKETS)
        self.first_token_seconds = self._seconds(
            "time_to_first_token_seconds", "Time from a sequence's arrival to its first token."
        )
        self.output_token_seconds = self._seconds(
            "time_per_output_token_seconds", "Mean time between a sequence's tokens after the first.", STEP_BUCKETS
        )
        # The engine
        self.encode_seconds = self._seconds("encode_seconds", "One run of the encoder.")
        self.step_seconds = self._seconds("decode_step_seconds", "One run of the decoder.", STEP_BUCKETS)
        self.step_batch_size = self._sizes("step_batch_size", "Rows that one decoder run advanced.")
        self.padding_ratio = self._histogram(
            "encode_padding_ratio", "Share of padding in one encoder run.", RATIO_BUCKETS, "model"
        )
        self.model_load_seconds = self._gauge(
            "model_load_seconds", "Time to load a model, from checksums to warm-up.", "model"
        )
        self.queue_sequences = self._gauge("queue_sequences", "Sequences that wait for a free slot.", "model")
        self.queue_tokens = self._gauge("queue_tokens", "Source tokens of waiting sequences.", "model")
        self.estimated_wait = self._gauge(
            "estimated_wait_seconds",
            "How long a call that arrives now would wait for a slot if all took turns.",
            "model",
        )
        self.restarts = self._counter("engine_restarts", "Engines that failed and were restarted.", "model")
        self.admissions = self._counter("admissions", "Sequences that got slots.", "model")
        self.evictions = self._counter(
            "evictions", "Sequences removed while they ran, by reason: cancelled, deadline.", "model", "reason"
        )
        self.turn_seconds = self._gauge(
            "engine_turn_seconds", "Duration of the engine's current turn so far; 0 when idle.", "model"
        )
        self.coalesced = self._counter(
            "coalesced_sequences", "Sequences answered by an identical one that was being decoded.", "model"
        )
        self.kv_bytes_per_slot = self._gauge(
            "kv_cache_bytes_per_slot", "Memory reserved for one slot's keys and values at its maximum length.", "model"
        )
        self.cache_lookups = self._counter(
            "cache_lookups", "Segments looked up in the translation cache: hit, miss.", "model", "outcome"
        )
        self._cache_bytes = self._gauge("cache_bytes", "Approximate memory of cached translations.")
        self._cache_max_bytes = self._gauge("cache_max_bytes", "Maximum memory for cached translations; 0: no cache.")
        self.sequences_running = self._gauge("sequences_running", "Sequences that are being decoded.", "model")
        self.slots_running = self._gauge("slots_running", "Slots in use.", "model")
        self.slots_max = self._gauge("slots_max", "Slots in total.", "model")
        self.kv_cache_utilization = self._gauge("kv_cache_utilization_ratio", "Share of slots in use, 0 to 1.", "model")
        self._of_models -= {self._model_info, self._load_failures}

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return all metrics in the text format requested by an HTTP `Accept` header, and its content type."""
        try:
            encoder, content_type = choose_encoder(
                " ".join(accept.split())
            )  # the content type echoes parts of the header
        except TypeError:  # its parser fails on invalid versions
            encoder, content_type = choose_encoder("")
        return encoder(self._registry), content_type

    def samples(self) -> Iterator[Sample]:
        """Yield all current values. Thread-safe."""
        for family in self._registry.collect():
            for sample in family.samples:
                yield Sample(sample.name, sample.labels, sample.value)

    def model(self, name: str) -> "ModelMetrics":
        """Return the metrics of one model, for all its versions. Thread-safe."""
        return self._models.get(name) or self._models.setdefault(name, ModelMetrics(self, name))

    def call_started(self) -> None:
        """Count the arrival of a call."""
        self._inflight.inc()

    def call_finished(self, method: str, code: str, seconds: float, trace_id: str = "") -> None:
        """Count a call answered with status `code`. `trace_id` becomes the exemplar, if there is a trace."""
        self._inflight.dec()
        self._call_answered(method, code, seconds, trace_id)

    def call_refused(self, method: str, code: str) -> None:
        """Count a call rejected on arrival; `rejected` counts the reason."""
        self._call_answered(method, code, 0.0)

    def rejected(self, reason: str) -> None:
        """Count a rejected call by reason."""
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
        """Count an admitted call of this key."""
        self._key_requests.labels(name).inc()

    def key_refused(self, name: str) -> None:
        """Count a call of this key that a quota rejected."""
        self._key_refused.labels(name).inc()

    def key_used(self, name: str, num_tokens: int) -> None:
        """Count the tokens that a call of this key has used."""
        if name in self._keys:  # else it has been revoked in the meantime
            self._key_tokens.labels(name).inc(num_tokens)

    def tls_valid_until(self, not_after_seconds: float) -> None:
        """Set until when the certificate for new connections is valid, in Unix time."""
        if self._tls_not_after is None:
            self._tls_not_after = self._gauge(
                "tls_certificate_not_after_seconds", "End of the TLS certificate's validity, in Unix time."
            )
        self._tls_not_after.set(not_after_seconds)

    def state(self, *, ready: bool, draining: bool) -> None:
        """Set the server's state."""
        self._ready.set(ready)
        self._draining.set(draining)

    def built_with(self, version: str, onnxruntime_version: str, provider: str) -> None:
        """Set the versions and the provider of this server."""
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
        self._registry.register(_Foreign(foreign))

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
        """Count a reload by outcome."""
        self._reloads.labels(outcome.value).inc()

    def load_failed(self, model: str) -> None:
        """Count a bundle of this model that could not be loaded."""
        self._load_failures.labels(model).inc()
        self._forget_unless_loaded(model)

    def retired(self, model: str, engine: Engine) -> None:
        """Remove the stopped engine of one version of a model."""
        self.model(model).retired(engine)
        self._forget_unless_loaded(model)

    def _call_answered(self, method: str, code: str, seconds: float, trace_id: str = "") -> None:
        self._requests.labels(method, code).inc()
        self._request_seconds.labels(method, code).observe(seconds, {"trace_id": trace_id} if trace_id else None)

    def _forget_unless_loaded(self, model: str) -> None:
        if not self.model(model).is_loaded:
            del self._models[model]
            for metric in self._of_models:
                metric.remove_by_labels({"model": model})

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return self._noted(Counter(f"dragoman_{name}", text, labels, registry=self._registry), labels)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return self._noted(Gauge(f"dragoman_{name}", text, labels, registry=self._registry), labels)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        metric = Histogram(f"dragoman_{name}", text, labels, buckets=buckets, registry=self._registry)
        return self._noted(metric, labels)

    def _noted(self, metric: T, labels: tuple[str, ...]) -> T:
        if "model" in labels:
            self._of_models.add(metric)
        return metric

    def _seconds(self, name: str, text: str, buckets: tuple[float, ...] = REQUEST_BUCKETS) -> Histogram:
        return self._histogram(name, text, buckets, "model")

    def _sizes(self, name: str, text: str) -> Histogram:
        return self._histogram(name, text, SIZE_BUCKETS, "model")


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


class ModelMetrics:
    """One model's metrics, with labels looked up once to save time on the engine's thread."""

    def __init__(self, metrics: Metrics, model: str) -> None:
        self._model = model
        self._restarts = metrics.restarts.labels(model)
        self._metrics = metrics
        self._engines: tuple[Engine, ...] = ()
        self._sentences = {outcome: metrics.sentences.labels(model, outcome) for outcome in _OUTCOMES}
        self._source_codepoints = metrics.source_codepoints.labels(model)
        self._source_tokens = metrics.source_tokens.labels(model)
        self._target_tokens = metrics.target_tokens.labels(model)
        self._request_sentences = metrics.request_sentences.labels(model)
        self._source_length = metrics.source_length.labels(model)
        self._target_length = metrics.target_length.labels(model)
        self._queue_seconds = metrics.queue_seconds.labels(model)
        self._tokenize_seconds = metrics.tokenize_seconds.labels(model)
        self._detokenize_seconds = metrics.detokenize_seconds.labels(model)
        self._first_token_seconds = metrics.first_token_seconds.labels(model)
        self._output_token_seconds = metrics.output_token_seconds.labels(model)
        self._encode_seconds = metrics.encode_seconds.labels(model)
        self._step_seconds = metrics.step_seconds.labels(model)
        self._step_batch_size = metrics.step_batch_size.labels(model)
        self._padding_ratio = metrics.padding_ratio.labels(model)
        self._flags = {flag: metrics.flags.labels(model, flag.value) for flag in Flag}
        self._admissions = metrics.admissions.labels(model)
        self._evictions = {reason: metrics.evictions.labels(model, reason.value) for reason in _EVICTED}
        self._coalesced = metrics.coalesced.labels(model)
        self._cache_hits = metrics.cache_lookups.labels(model, "hit")
        self._cache_misses = metrics.cache_lookups.labels(model, "miss")

    @property
    def is_loaded(self) -> bool:
        """Return whether a version of the model is in memory."""
        return bool(self._engines)

    def restarted(self) -> None:
        """Count the recovery of a version's failed engine."""
        self._restarts.inc()

    def loaded(self, engine: Engine, seconds: float) -> None:
        """Add a loaded version, whose engine is queried whenever the metrics are read."""
        metrics, model = self._metrics, self._model
        self._engines = (*self._engines, engine)
        metrics.model_load_seconds.labels(model).set(seconds)
        metrics.kv_bytes_per_slot.labels(model).set(engine.bytes_per_slot)
        metrics.slots_max.labels(model).set_function(lambda: self._sum("max_slots"))
        metrics.queue_sequences.labels(model).set_function(lambda: self._sum("num_waiting"))
        metrics.queue_tokens.labels(model).set_function(lambda: self._sum("num_waiting_tokens"))
        metrics.estimated_wait.labels(model).set_function(lambda: self._most("wait_seconds"))
        metrics.turn_seconds.labels(model).set_function(lambda: self._most("turn_seconds"))
        metrics.sequences_running.labels(model).set_function(lambda: self._sum("num_running"))
        metrics.slots_running.labels(model).set_function(lambda: self._sum("slots_used"))
        metrics.kv_cache_utilization.labels(model).set_function(
            lambda: self._sum("slots_used") / max(self._sum("max_slots"), 1)
        )

    def retired(self, engine: Engine) -> None:
        """Remove a version's stopped engine."""
        self._engines = tuple(each for each in self._engines if each is not engine)

    def _sum(self, number: str) -> int:
        return sum(getattr(engine.snapshot(), number) for engine in self._engines)

    def _most(self, number: str) -> float:
        return max((getattr(engine.snapshot(), number) for engine in self._engines), default=0.0)

    def took(self, phase: Phase, seconds: float) -> None:
        """Observe how long tokenizing or detokenizing a call took."""
        (self._tokenize_seconds if phase is Phase.TOKENIZE else self._detokenize_seconds).observe(seconds)

    def looked_up(self, num_hits: int, num_misses: int) -> None:
        """Count a call's cache lookups."""
        self._cache_hits.inc(num_hits)
        self._cache_misses.inc(num_misses)

    def texts_translated(self, texts: Iterable[str]) -> None:
        """Count the texts of an answered call that had something to translate."""
        lengths = [len(text) for text in texts]
        self._request_sentences.observe(len(lengths))
        self._source_codepoints.inc(sum(lengths))

    def flagged(self, flags: Iterable[Flag]) -> None:
        """Count the flags of an answered call's segments."""
        for flag in flags:
            self._flags[flag].inc()

    def turn(self, stats: TurnStats) -> None:
        """Count one turn of the engine. Called on the engine's thread."""
        if stats.num_encoded:
            self._admissions.inc(stats.num_encoded)
            self._encode_seconds.observe(stats.encode_seconds)
            self._source_tokens.inc(stats.encoded_tokens)
            self._padding_ratio.observe(1.0 - stats.encoded_tokens / max(stats.padded_tokens, 1))
        if stats.batch_size:
            self._step_seconds.observe(stats.step_seconds)
            self._step_batch_size.observe(stats.batch_size)
            self._target_tokens.inc(stats.num_generated)
        if stats.num_followers:
            self._coalesced.inc(stats.num_followers)
        for seconds in stats.queue_seconds:
            self._queue_seconds.observe(seconds)
        for seconds in stats.first_token_seconds:
            self._first_token_seconds.observe(seconds)

    def finished(self, update: SequenceUpdate) -> None:
        """Count a finished sequence, whatever its outcome."""
        if update.finish_reason is not None:
            self._metrics.finish.labels(self._model, update.finish_reason.value).inc()
        if update.error is not None:
            gone = isinstance(update.error, Cancelled | DeadlineExceeded)
            self._sentences["cancelled" if gone else "failed"].inc()
            if update.finish_reason in self._evictions and update.sequence.admitted_seconds:
                self._evictions[update.finish_reason].inc()
            return
        sequence, num_tokens = update.sequence, len(update.hypotheses[0].token_ids)
        self._sentences["ok"].inc()
        self._source_length.observe(len(sequence.source_ids))
        self._target_length.observe(num_tokens)
        num_chosen = num_tokens - len(sequence.output_prefix_ids) + (update.finish_reason is FinishReason.STOP)
        num_steps = num_chosen - 1  # after the first token
        if num_steps > 0 and sequence.first_token_seconds:  # else it was coalesced with a running sequence
            self._output_token_seconds.observe((update.finished_seconds - sequence.first_token_seconds) / num_steps)


_EVICTED = (FinishReason.CANCELLED, FinishReason.DEADLINE)
_OUTCOMES = ("ok", "failed", "cancelled")
