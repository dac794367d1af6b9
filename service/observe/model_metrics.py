"""The metrics of models: their texts, phases and engines. Lengths are in tokens, times in seconds."""

import threading
from collections.abc import Callable, Iterable

from service.domain.call import Phase
from service.domain.errors import Cancelled, DeadlineExceeded
from service.domain.translation import FinishReason, Flag
from service.engine.engine import Engine
from service.engine.reports import TurnStats
from service.engine.sequence import SequenceUpdate
from service.observe.registry import Registry
from service.observe.table import OF_MODELS

_EVICTED = (FinishReason.CANCELLED, FinishReason.DEADLINE)
_OUTCOMES = ("ok", "failed", "cancelled")


class VersionMetrics:
    """What is counted of one version of a model."""

    def __init__(self, registry: Registry, model: str, version: str) -> None:
        self._labels = (model, version)
        self._answers, self._finish = registry.counters["model_requests"], registry.counters["finish"]
        self._flags = {flag: registry.counters["segment_flags"].labels(model, version, flag.value) for flag in Flag}
        self._answer_seconds = registry.histograms["model_request_duration_seconds"].labels(model, version)
        self._source_length = registry.histograms["source_length_tokens"].labels(model, version)
        self._target_length = registry.histograms["target_length_tokens"].labels(model, version)

    def answered(self, code: str, seconds: float) -> None:
        """Count a call that ended with status `code`."""
        self._answers.labels(*self._labels, code).inc()
        self._answer_seconds.observe(seconds)

    def flagged(self, flags: Iterable[Flag]) -> None:
        for flag in flags:
            self._flags[flag].inc()

    def ended(self, reason: FinishReason) -> None:
        """Count the end of a sequence."""
        self._finish.labels(*self._labels, reason.value).inc()

    def translated(self, num_source_tokens: int, num_target_tokens: int) -> None:
        """Observe the lengths of an answered sequence."""
        self._source_length.observe(num_source_tokens)
        self._target_length.observe(num_target_tokens)


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
            "engine_batches": lambda: max((len(each.workers) for each in self._engines), default=1),
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

    def took(self, phase: Phase, seconds: float) -> None:
        """Observe how long tokenizing or detokenizing a call took."""
        self._observed["tokenize_seconds" if phase is Phase.TOKENIZE else "detokenize_seconds"].observe(seconds)

    def looked_up(self, num_hits: int, num_misses: int) -> None:
        """Count a call's cache lookups."""
        self._lookups["hit"].inc(num_hits)
        self._lookups["miss"].inc(num_misses)

    def texts_translated(self, texts: Iterable[str]) -> None:
        """Count the texts of an answered call that had something to translate."""
        lengths = [len(text) for text in texts]
        self._observed["request_sentences"].observe(len(lengths))
        self._counts["source_codepoints"].inc(sum(lengths))

    def turn(self, stats: TurnStats) -> None:
        """Count one turn of the engine. Called on the threads of its workers."""
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
        if stats.num_followers:
            counts["coalesced_sequences"].inc(stats.num_followers)
        for seconds in stats.queue_seconds:
            observed["queue_seconds"].observe(seconds)
        for seconds in stats.first_token_seconds:
            observed["time_to_first_token_seconds"].observe(seconds)

    def finished(self, update: SequenceUpdate, version: VersionMetrics) -> None:
        """Count a finished sequence of a version, whatever its outcome."""
        if update.finish_reason is not None:
            version.ended(update.finish_reason)
        if update.error is not None:
            gone = isinstance(update.error, Cancelled | DeadlineExceeded)
            self._sentences["cancelled" if gone else "failed"].inc()
            if update.finish_reason in self._evictions and update.sequence.admitted_seconds:
                self._evictions[update.finish_reason].inc()
            return
        sequence, num_tokens = update.sequence, len(update.hypotheses[0].token_ids)
        self._sentences["ok"].inc()
        version.translated(len(sequence.source_ids), num_tokens)
        num_chosen = num_tokens - len(sequence.output_prefix_ids) + (update.finish_reason is FinishReason.STOP)
        num_steps = num_chosen - 1  # after the first token
        if num_steps > 0 and sequence.first_token_seconds:  # else it was coalesced with a running sequence
            seconds = (update.finished_seconds - sequence.first_token_seconds) / num_steps
            self._observed["time_per_output_token_seconds"].observe(seconds)
