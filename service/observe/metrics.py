"""Metrics of the server, its calls and models; `table.py` defines each one. In tokens and seconds."""

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from service.domain.call import Call, CallKind, Phase
from service.domain.errors import Cancelled, DeadlineExceeded, MemoryFull, Overloaded
from service.domain.translation import FinishReason, Flag
from service.engine.engine import Engine
from service.engine.reports import TurnStats
from service.engine.sequence import SequenceUpdate
from service.models.reload_plan import ReloadOutcome
from service.observe.own_memory import memory_bytes, memory_limit_bytes
from service.observe.registry import ForeignMetric, Registry, Sample
from service.observe.table import OF_MODELS, OF_SERVER, TLS_NOT_AFTER

_OF_KEYS = tuple(metric.name for metric in OF_SERVER if metric.labels == ("key",))
_EVICTED = (FinishReason.CANCELLED, FinishReason.DEADLINE)
_REFUSALS = (Overloaded, MemoryFull)  # for which servers are at fault, and more of them help
_OUTCOMES = ("ok", "failed", "cancelled")


class VersionMetrics:
    """Metrics of one version of a model."""

    def __init__(self, registry: Registry, model: str, version: str) -> None:
        counters, histograms = registry.counters, registry.histograms
        self._labels = model, version
        self._answers = counters["model_requests"].by_values
        self._answer_seconds = histograms["model_request_duration_seconds"].labels(model, version)
        self.flags = {flag: counters["segment_flags"].labels(model, version, flag.value) for flag in Flag}
        self.finish = {reason: counters["finish"].labels(model, version, reason.value) for reason in FinishReason}
        self.source_length = histograms["source_length_tokens"].labels(model, version)
        self.target_length = histograms["target_length_tokens"].labels(model, version)

    def answered(self, code: str, seconds: float) -> None:
        self._answers[(*self._labels, code)].value += 1
        self._answer_seconds.observe(seconds)


class KeyMetrics:
    """Metrics of the keys of one name, with labels looked up once. `digits` are the first of their hashes."""

    def __init__(self, registry: Registry, name: str, digits: set[str]) -> None:
        self._registry = registry
        self._name = name
        self.counts = {metric: registry.counters[metric].labels(name) for metric in _OF_KEYS}
        self._last_used = {each: registry.gauges["key_last_used_seconds"].labels(name, each) for each in digits}

    def called(self, digits: str) -> None:
        self.counts["key_requests"].value += 1
        if digits in self._last_used:
            self._last_used[digits].set_to_current_time()

    def remove_but(self, digits: set[str]) -> None:
        """Remove the series of all other keys; without any, those of the name."""
        for each in self._last_used.keys() - digits:
            self._registry.gauges["key_last_used_seconds"].remove(self._name, each)
        if not digits:
            for metric in _OF_KEYS:
                self._registry.counters[metric].remove(self._name)


class ModelMetrics:
    """One model's metrics, with labels looked up once to save time on the engine's thread."""

    def __init__(self, registry: Registry, model: str) -> None:
        self._registry = registry
        self._model = model
        self._engines: tuple[Engine, ...] = ()
        self._turns = threading.Lock()
        self._versions: dict[str, VersionMetrics] = {}
        counters, histograms = registry.counters, registry.histograms
        alone = [metric.name for metric in OF_MODELS if metric.labels == ("model",)]
        self._counts = {name: counters[name].labels(model) for name in alone if name in counters}
        self._observed = {name: histograms[name].labels(model) for name in alone if name in histograms}
        self.phases = {
            Phase.TOKENIZE: self._observed["tokenize_seconds"],
            Phase.DETOKENIZE: self._observed["detokenize_seconds"],
        }
        self._sentences = {outcome: counters["sentences"].labels(model, outcome) for outcome in _OUTCOMES}
        self._evictions = {reason: counters["evictions"].labels(model, reason.value) for reason in _EVICTED}
        self._lookups = {outcome: counters["cache_lookups"].labels(model, outcome) for outcome in ("hit", "miss")}

    @property
    def is_loaded(self) -> bool:
        return bool(self._engines)

    def version(self, version: str) -> VersionMetrics:
        """Return the metrics of one version. Thread-safe."""
        found = self._versions.get(version)
        return found or self._versions.setdefault(version, VersionMetrics(self._registry, self._model, version))

    def answered(self, version: str, code: str, seconds: float) -> None:
        """Count a call that ended with status `code`, unless its version has been retired in the meantime."""
        if version in self._versions:
            self._versions[version].answered(code, seconds)

    def restarted(self) -> None:
        self._counts["engine_restarts"].inc()

    def loaded(self, engine: Engine, version: str, seconds: float) -> None:
        """Add a loaded version, whose engine is queried whenever the metrics are read."""
        self.version(version)
        self._engines = (*self._engines, engine)
        gauges = self._registry.gauges
        gauges["model_load_seconds"].labels(self._model).set(seconds)
        gauges["kv_cache_bytes_per_slot"].labels(self._model).set(engine.bytes_per_slot)
        for name, read in self._of_engines().items():
            gauges[name].labels(self._model).set_function(read)

    def _of_engines(self) -> dict[str, Callable[[], float]]:
        return {
            # Not 0 for the moment in which no version is left: queries divide by it.
            "engine_batches": lambda: max((each.costs.num_workers for each in self._engines), default=1),
            "slots_max": lambda: self._sum("max_slots"),
            "queue_sequences": lambda: self._sum("num_waiting"),
            "queue_tokens": lambda: self._sum("num_waiting_tokens"),
            "estimated_wait_seconds": lambda: self._most("wait_seconds"),
            "engine_turn_seconds": lambda: self._most("turn_seconds"),
            "sequences_running": lambda: self._sum("num_running"),
            "slots_running": lambda: self._sum("slots_used"),
            "kv_cache_utilization_ratio": lambda: self._sum("slots_used") / max(self._sum("max_slots"), 1),
        }

    def retired(self, engine: Engine, version: str, *, is_replaced: bool) -> None:
        """Remove a version's stopped engine and, unless another engine has the same version, its series."""
        self._engines = tuple(each for each in self._engines if each is not engine)
        if not is_replaced:
            self._versions.pop(version, None)
            for metric in OF_MODELS:
                if "version" in metric.labels:
                    self._registry.remove(metric, {"model": self._model, "version": version})

    def _sum(self, number: str) -> int:
        return sum(getattr(engine.snapshot(), number) for engine in self._engines)

    def _most(self, number: str) -> float:
        return max((getattr(engine.snapshot(), number) for engine in self._engines), default=0.0)

    def looked_up(self, num_hits: int, num_misses: int) -> None:
        self._lookups["hit"].inc(num_hits)
        self._lookups["miss"].inc(num_misses)

    def translated(self, num_texts: int, num_codepoints: int) -> None:
        """Count the texts of an answered call that had something to translate."""
        self._observed["request_sentences"].observe(num_texts)
        self._counts["source_codepoints"].value += num_codepoints

    def turn(self, stats: TurnStats) -> None:
        """Count one turn of the engine, on the thread of its worker."""
        with self._turns:
            self._turn(stats)

    def _turn(self, stats: TurnStats) -> None:
        counts, observed = self._counts, self._observed
        counts["engine_busy_seconds"].inc(stats.busy_seconds)
        if stats.num_encoded:
            counts["admissions"].inc(stats.num_encoded)
            counts["source_tokens"].inc(stats.encoded_tokens)
            observed["encode_seconds"].observe(stats.encode_seconds)
            observed["encode_padding_ratio"].observe(1.0 - stats.encoded_tokens / max(stats.padded_tokens, 1))
        if stats.num_steps:
            counts["target_tokens"].inc(stats.num_generated)
            observed["decode_step_seconds"].observe_times(stats.run_seconds / stats.num_steps, stats.num_steps)
            observed["step_batch_size"].observe_times(stats.num_row_steps / stats.num_steps, stats.num_steps)
        for seconds in stats.queue_seconds:
            observed["queue_seconds"].observe(seconds)
        for seconds in stats.first_token_seconds:
            observed["time_to_first_token_seconds"].observe(seconds)

    def finished(self, updates: Iterable[SequenceUpdate], version: VersionMetrics) -> None:
        for update in updates:
            if update.finish_reason is not None:
                version.finish[update.finish_reason].value += 1
            if update.error is not None:
                self._failed(update)
                continue
            sequence, num_tokens = update.sequence, len(update.hypotheses[0].token_ids)
            self._sentences["ok"].value += 1
            version.source_length.observe(len(sequence.source_ids))
            version.target_length.observe(num_tokens)
            num_chosen = num_tokens - len(sequence.output_prefix_ids) + (update.finish_reason is FinishReason.STOP)
            num_steps = num_chosen - 1  # after the first token
            if num_steps > 0:
                seconds = (update.finished_seconds - sequence.first_token_seconds) / num_steps
                self._observed["time_per_output_token_seconds"].observe(seconds)

    def _failed(self, update: SequenceUpdate) -> None:
        gone = isinstance(update.error, Cancelled | DeadlineExceeded)
        self._sentences["cancelled" if gone else "failed"].inc()
        if update.finish_reason in self._evictions and update.sequence.admitted_seconds:
            self._evictions[update.finish_reason].inc()


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
        self._keys: dict[str, KeyMetrics] = {}  # by name
        self._num_inflight = 0
        self._counters, self._gauges = self._registry.counters, self._registry.gauges
        self._requests = self._counters["requests"].by_values
        self._request_seconds = self._registry.histograms["request_duration_seconds"].by_values
        for outcome in ReloadOutcome:
            self._counters["reloads"].labels(outcome.value)
        self._loop_lag = self._registry.histograms["event_loop_lag_seconds"].labels()
        self._gauges["inflight_requests"].set_function(lambda: self._num_inflight)
        self._gauges["memory_bytes"].set_function(memory_bytes)
        self._gauges["memory_limit_bytes"].set_function(memory_limit_bytes)  # each time: it may be changed meanwhile

    def render(self, accept: str = "") -> tuple[bytes, str]:
        return self._registry.render(accept)

    def samples(self) -> Iterator[Sample]:
        return self._registry.samples()

    def model(self, name: str) -> ModelMetrics:
        return self._models.get(name) or self._models.setdefault(name, ModelMetrics(self._registry, name))

    def knows_method(self, method: str, kind: CallKind) -> None:
        """Begin to count a translating method's refusals: `rate` sees no series' first number."""
        if kind is not CallKind.OTHER:
            for refusal in _REFUSALS:
                self._counters["rejected"].labels(method, kind, refusal.reason)

    def call_started(self) -> None:
        self._num_inflight += 1

    def call_finished(self, call: Call) -> None:
        """Count a call that was served and has ended. The id of its trace, if there is one, becomes the exemplar."""
        self._num_inflight -= 1
        seconds = call.total_seconds
        self._call_answered(call, seconds)
        if call.model in self._models:  # else it used none, or it has been retired in the meantime
            self._models[call.model].answered(call.model_version, call.code, seconds)

    def call_refused(self, call: Call) -> None:
        """Count a call rejected on arrival; `rejected` counts the reason."""
        self._call_answered(call, 0.0)

    def rejected(self, call: Call, reason: str) -> None:
        self._counters["rejected"].labels(call.method, call.kind, reason).inc()

    def knows_keys(self, keys: dict[str, set[str]]) -> None:
        """Set the names of the keys, with the first digits of their hashes, and remove the series of all others."""
        before, self._keys = (
            self._keys,
            {name: KeyMetrics(self._registry, name, digits) for name, digits in keys.items()},
        )
        for name, old in before.items():
            old.remove_but(keys.get(name, set()))

    def key_called(self, name: str, digits: str) -> None:
        if name in self._keys:  # else it has been revoked in the meantime
            self._keys[name].called(digits)

    def key_refused(self, name: str) -> None:
        if name in self._keys:
            self._keys[name].counts["key_refused"].value += 1

    def key_used(self, name: str, num_tokens: int) -> None:
        if name in self._keys:
            self._keys[name].counts["key_tokens"].value += num_tokens

    def key_answered(self, call: Call) -> None:
        """Count what a call was answered, for its bill."""
        if call.key_name in self._keys:
            counts = self._keys[call.key_name].counts
            counts["key_source_characters"].value += call.characters()
            counts["key_source_tokens"].value += call.num_source_tokens
            counts["key_output_tokens"].value += call.num_output_tokens

    def tls_valid_until(self, not_after_seconds: float) -> None:
        if TLS_NOT_AFTER.name not in self._gauges:
            self._registry.add(TLS_NOT_AFTER)
        self._gauges[TLS_NOT_AFTER.name].set(not_after_seconds)

    def state(self, *, ready: bool, draining: bool) -> None:
        self._gauges["ready"].set(ready)
        self._gauges["draining"].set(draining)

    def built_with(self, version: str, onnxruntime_version: str, provider: str) -> None:
        self._gauges["build_info"].labels(version, onnxruntime_version, provider).set(1)

    def memory_for_cache(self, max_bytes: int, num_bytes: Callable[[], int]) -> None:
        """Set the limit and a callback for the bytes of cached translations, called on each read of the metrics."""
        self._gauges["cache_max_bytes"].set(max_bytes)
        self._gauges["cache_bytes"].set_function(num_bytes)

    def memory_for_calls(self, max_bytes: int, num_bytes: Callable[[], int]) -> None:
        self._gauges["bytes_in_flight_max"].set(max_bytes)
        self._gauges["bytes_in_flight"].set_function(num_bytes)

    def has_connections(self, protocol: str, most: int, num_open: Callable[[], int]) -> None:
        """Set the limit of connections, and a callback for their number, called on each read of the metrics."""
        self._gauges["connections_max"].labels(protocol).set(most)
        self._gauges["connections"].labels(protocol).set_function(num_open)

    def connections_refused(self, protocol: str) -> Callable[[], None]:
        """Return what counts a connection closed because there were too many, from 0 on."""
        return self._counters["connections_refused"].labels(protocol).inc

    def loop_was_late(self, seconds: float) -> None:
        self._loop_lag.observe(seconds)

    def watches_loop(self, num_tasks: Callable[[], int], silent_seconds: Callable[[], float]) -> None:
        """Set callbacks for the loop's tasks, and the time since it last ran; called on another thread when read."""
        self._gauges["event_loop_tasks"].set_function(num_tasks)
        self._gauges["event_loop_silence_seconds"].set_function(silent_seconds)

    def shows(self, foreign: Callable[[], Iterable[ForeignMetric]]) -> None:
        self._registry.shows(foreign)

    def serves(self, models: Iterable[ModelInfo]) -> None:
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
        self._counters["model_load_failures"].labels(model).inc()
        self._forget_unless_loaded(model)

    def retired(self, model: str, version: str, engine: Engine) -> None:
        is_replaced = any((each.model, each.version) == (model, version) for each in self._served)
        self.model(model).retired(engine, version, is_replaced=is_replaced)
        self._forget_unless_loaded(model)

    def _call_answered(self, call: Call, seconds: float) -> None:
        labels = call.method, call.kind, call.code
        self._requests[labels].value += 1
        self._request_seconds[labels].observe(seconds, {"trace_id": call.trace_id} if call.trace_id else None)

    def _forget_unless_loaded(self, model: str) -> None:
        if not self.model(model).is_loaded:
            del self._models[model]
            for metric in OF_MODELS:
                self._registry.remove(metric, {"model": model})
