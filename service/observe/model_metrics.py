"""The metrics of models: their texts, phases and engines. Lengths are in tokens, times in seconds."""

import threading
from collections.abc import Iterable

from service.domain.call import Phase
from service.domain.errors import Cancelled, DeadlineExceeded
from service.domain.translation import FinishReason, Flag
from service.engine.engine import Engine
from service.engine.reports import TurnStats
from service.engine.sequence import SequenceUpdate
from service.observe.families import Merge
from service.observe.registry import RATIO_BUCKETS, REQUEST_BUCKETS, SIZE_BUCKETS, STEP_BUCKETS, Registry
from service.observe.series import Count

_EVICTED = (FinishReason.CANCELLED, FinishReason.DEADLINE)
_OUTCOMES = ("ok", "failed", "cancelled")


class ModelSeries:
    """The metrics that have the label `model`, for all loaded models."""

    def __init__(self, registry: Registry) -> None:
        # Texts of finished calls
        self.sentences = registry.counter(
            "sentences", "Sequences by outcome: ok, failed, cancelled.", "model", "outcome"
        )
        self.source_codepoints = registry.counter("source_codepoints", "Characters of translated texts.", "model")
        self.source_tokens = registry.counter("source_tokens", "Tokens that were encoded.", "model")
        self.target_tokens = registry.counter("target_tokens", "Tokens that were generated.", "model")
        self.request_sentences = registry.sizes("request_sentences", "Sequences per call.")
        # The same of each version, to compare one with another
        self.answers = registry.counter("model_requests", "Finished calls of a model.", "model", "version", "code")
        self.answer_seconds = registry.histogram(
            "model_request_duration_seconds", "Time from arrival to end, by model.", REQUEST_BUCKETS, "model", "version"
        )
        self.finish = registry.counter(
            "finish", "Finished sequences by the reason they ended.", "model", "version", "reason"
        )
        self.flags = registry.counter(
            "segment_flags", "Segments whose translation should be reviewed, by reason.", "model", "version", "flag"
        )
        self.source_length = registry.histogram(
            "source_length_tokens", "Source tokens per sequence.", SIZE_BUCKETS, "model", "version"
        )
        self.target_length = registry.histogram(
            "target_length_tokens", "Tokens of the best hypothesis per sequence.", SIZE_BUCKETS, "model", "version"
        )
        # Phases of a call
        self.queue_seconds = registry.seconds("queue_seconds", "Wait for a free slot, per sequence.")
        self.tokenize_seconds = registry.seconds("tokenize_seconds", "Tokenizing a call's texts.", STEP_BUCKETS)
        self.detokenize_seconds = registry.seconds("detokenize_seconds", "Detokenizing a call's texts.", STEP_BUCKETS)
        self.first_token_seconds = registry.seconds(
            "time_to_first_token_seconds", "Time from a sequence's arrival to its first token."
        )
        self.output_token_seconds = registry.seconds(
            "time_per_output_token_seconds", "Mean time between a sequence's tokens after the first.", STEP_BUCKETS
        )
        # The engine
        self.encode_seconds = registry.seconds("encode_seconds", "One run of the encoder.")
        self.step_seconds = registry.seconds("decode_step_seconds", "One step of the decoder.", STEP_BUCKETS)
        self.busy_seconds = registry.counter(
            "engine_busy_seconds",
            "Time in which batches were encoded or decoded, with what belongs to it; summed over batches side by side.",
            "model",
        )
        self.batches = registry.gauge(
            "engine_batches",
            "Batches side by side; busy seconds per second are at most as many.",
            "model",
            merge=Merge.SUM,
        )
        self.step_batch_size = registry.sizes("step_batch_size", "Rows that one decoder step advanced.")
        self.padding_ratio = registry.histogram(
            "encode_padding_ratio", "Share of padding in one encoder run.", RATIO_BUCKETS, "model"
        )
        self.model_load_seconds = registry.gauge(
            "model_load_seconds", "Time to load a model, from checksums to warm-up.", "model", merge=Merge.MAX
        )
        self.queue_sequences = registry.gauge(
            "queue_sequences", "Sequences that wait for a free slot.", "model", merge=Merge.SUM
        )
        self.queue_tokens = registry.gauge(
            "queue_tokens", "Source tokens of waiting sequences.", "model", merge=Merge.SUM
        )
        self.estimated_wait = registry.gauge(
            "estimated_wait_seconds",
            "How long a call that arrives now would wait for a slot if all took turns.",
            "model",
            merge=Merge.MAX,
        )
        self.restarts = registry.counter("engine_restarts", "Engines that failed and were restarted.", "model")
        self.admissions = registry.counter("admissions", "Sequences that got slots.", "model")
        self.evictions = registry.counter(
            "evictions", "Sequences removed while they ran, by reason: cancelled, deadline.", "model", "reason"
        )
        self.turn_seconds = registry.gauge(
            "engine_turn_seconds",
            "Duration of the engine's current turn so far; 0 when idle.",
            "model",
            merge=Merge.MAX,
        )
        self.kv_bytes_per_slot = registry.gauge(
            "kv_cache_bytes_per_slot",
            "Memory reserved for one slot's keys and values at its maximum length.",
            "model",
            merge=Merge.SAME,
        )
        self.cache_lookups = registry.counter(
            "cache_lookups", "Segments looked up in the translation cache: hit, miss.", "model", "outcome"
        )
        self.sequences_running = registry.gauge(
            "sequences_running", "Sequences that are being decoded.", "model", merge=Merge.SUM
        )
        self.slots_running = registry.gauge("slots_running", "Slots in use.", "model", merge=Merge.SUM)
        self.slots_max = registry.gauge("slots_max", "Slots in total.", "model", merge=Merge.SUM)
        self.kv_cache_utilization = registry.gauge(
            "kv_cache_utilization_ratio", "Share of slots in use, 0 to 1.", "model", merge=Merge.MEAN
        )
        self._metrics = list(vars(self).values())  # all of the above

    def remove(self, model: str) -> None:
        for metric in self._metrics:
            metric.remove_by_labels({"model": model})

    def remove_version(self, model: str, version: str) -> None:
        for metric in (
            self.answers,
            self.answer_seconds,
            self.finish,
            self.flags,
            self.source_length,
            self.target_length,
        ):
            metric.remove_by_labels({"model": model, "version": version})


class VersionMetrics:
    """What is counted of one version of a model, with labels looked up once."""

    def __init__(self, series: ModelSeries, model: str, version: str) -> None:
        self._series, self._labels = series, (model, version)
        self._answers: dict[str, Count] = {}
        self._answer_seconds = series.answer_seconds.labels(model, version)
        self._finish: dict[FinishReason, Count] = {}
        self._flags = {flag: series.flags.labels(model, version, flag.value) for flag in Flag}
        self._source_length = series.source_length.labels(model, version)
        self._target_length = series.target_length.labels(model, version)

    def answered(self, code: str, seconds: float) -> None:
        """Count a call that ended with status `code`."""
        if code not in self._answers:
            self._answers[code] = self._series.answers.labels(*self._labels, code)
        self._answers[code].inc()
        self._answer_seconds.observe(seconds)

    def flagged(self, flags: Iterable[Flag]) -> None:
        for flag in flags:
            self._flags[flag].inc()

    def ended(self, reason: FinishReason) -> None:
        """Count the end of a sequence."""
        if reason not in self._finish:
            self._finish[reason] = self._series.finish.labels(*self._labels, reason.value)
        self._finish[reason].inc()

    def translated(self, num_source_tokens: int, num_target_tokens: int) -> None:
        """Observe the lengths of an answered sequence."""
        self._source_length.observe(num_source_tokens)
        self._target_length.observe(num_target_tokens)


class ModelMetrics:
    """One model's metrics, with labels looked up once to save time on the engine's thread."""

    def __init__(self, series: ModelSeries, model: str) -> None:
        self._model = model
        self._restarts = series.restarts.labels(model)
        self._series = series
        self._engines: tuple[Engine, ...] = ()
        self._turns = threading.Lock()
        self._versions: dict[str, VersionMetrics] = {}
        self._sentences = {outcome: series.sentences.labels(model, outcome) for outcome in _OUTCOMES}
        self._source_codepoints = series.source_codepoints.labels(model)
        self._source_tokens = series.source_tokens.labels(model)
        self._target_tokens = series.target_tokens.labels(model)
        self._request_sentences = series.request_sentences.labels(model)
        self._queue_seconds = series.queue_seconds.labels(model)
        self._tokenize_seconds = series.tokenize_seconds.labels(model)
        self._detokenize_seconds = series.detokenize_seconds.labels(model)
        self._first_token_seconds = series.first_token_seconds.labels(model)
        self._output_token_seconds = series.output_token_seconds.labels(model)
        self._encode_seconds = series.encode_seconds.labels(model)
        self._step_seconds = series.step_seconds.labels(model)
        self._busy_seconds = series.busy_seconds.labels(model)
        self._step_batch_size = series.step_batch_size.labels(model)
        self._padding_ratio = series.padding_ratio.labels(model)
        self._admissions = series.admissions.labels(model)
        self._evictions = {reason: series.evictions.labels(model, reason.value) for reason in _EVICTED}
        self._cache_hits = series.cache_lookups.labels(model, "hit")
        self._cache_misses = series.cache_lookups.labels(model, "miss")

    @property
    def is_loaded(self) -> bool:
        return bool(self._engines)

    def version(self, version: str) -> VersionMetrics:
        """Return the metrics of one version. Thread-safe."""
        found = self._versions.get(version)
        return found or self._versions.setdefault(version, VersionMetrics(self._series, self._model, version))

    def answered(self, version: str, code: str, seconds: float) -> None:
        """Count a call that ended with status `code`, unless its version has been retired in the meantime."""
        if version in self._versions:
            self._versions[version].answered(code, seconds)

    def restarted(self) -> None:
        self._restarts.inc()

    def loaded(self, engine: Engine, version: str, seconds: float) -> None:
        """Add a loaded version, whose engine is queried whenever the metrics are read."""
        series, model = self._series, self._model
        self.version(version)
        self._engines = (*self._engines, engine)
        series.model_load_seconds.labels(model).set(seconds)
        series.kv_bytes_per_slot.labels(model).set(engine.bytes_per_slot)
        # Not 0 for the moment in which no version is left: queries divide by it.
        series.batches.labels(model).set_function(
            lambda: max((each.costs.num_workers for each in self._engines), default=1)
        )
        series.slots_max.labels(model).set_function(lambda: self._sum("max_slots"))
        series.queue_sequences.labels(model).set_function(lambda: self._sum("num_waiting"))
        series.queue_tokens.labels(model).set_function(lambda: self._sum("num_waiting_tokens"))
        series.estimated_wait.labels(model).set_function(lambda: self._most("wait_seconds"))
        series.turn_seconds.labels(model).set_function(lambda: self._most("turn_seconds"))
        series.sequences_running.labels(model).set_function(lambda: self._sum("num_running"))
        series.slots_running.labels(model).set_function(lambda: self._sum("slots_used"))
        series.kv_cache_utilization.labels(model).set_function(
            lambda: self._sum("slots_used") / max(self._sum("max_slots"), 1)
        )

    def retired(self, engine: Engine, version: str, *, is_replaced: bool) -> None:
        """Remove a version's stopped engine and, unless another engine has the same version, its series."""
        self._engines = tuple(each for each in self._engines if each is not engine)
        if not is_replaced:
            self._versions.pop(version, None)
            self._series.remove_version(self._model, version)

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

    def turn(self, stats: TurnStats) -> None:
        """Count one turn of the engine. Called on the threads of its workers."""
        with self._turns:
            self._turn(stats)

    def _turn(self, stats: TurnStats) -> None:
        self._busy_seconds.inc(stats.busy_seconds)
        if stats.num_encoded:
            self._admissions.inc(stats.num_encoded)
            self._encode_seconds.observe(stats.encode_seconds)
            self._source_tokens.inc(stats.encoded_tokens)
            self._padding_ratio.observe(1.0 - stats.encoded_tokens / max(stats.padded_tokens, 1))
        if stats.num_steps:
            self._step_seconds.observe_times(stats.run_seconds / stats.num_steps, stats.num_steps)
            self._step_batch_size.observe_times(stats.num_row_steps / stats.num_steps, stats.num_steps)
            self._target_tokens.inc(stats.num_generated)
        for seconds in stats.queue_seconds:
            self._queue_seconds.observe(seconds)
        for seconds in stats.first_token_seconds:
            self._first_token_seconds.observe(seconds)

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
        if num_steps > 0:
            self._output_token_seconds.observe((update.finished_seconds - sequence.first_token_seconds) / num_steps)
