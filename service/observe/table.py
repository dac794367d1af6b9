"""Every Prometheus metric of the server: one table. Names are permanent.

Times are in seconds, lengths in tokens. Labels are bounded: `model` only from the models on disk, `method` only from
the served methods, each of one `kind`, a `CallKind`; `code` is the name of a gRPC status, `reason` is from
`ServiceError.reason` or `FinishReason`.

A model's series cover all its loaded versions: counters continue when one version replaces another, gauges are sums.
They are removed when no version is left; those with the label `version` when theirs is retired.
"""

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    """The kind of a metric, in the words of Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name without prefix, its help, its labels, and of a histogram the upper bounds of its buckets."""

    kind: Kind
    name: str
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def full_name(self) -> str:
        """Return the name as Prometheus sees it; that of a counter is without `_total`."""
        return f"dragoman_{self.name}"


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

_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
_CALL = ("method", "kind")
_KEY = ("key",)
_PROTOCOL = ("protocol",)
_MODEL = ("model",)
_VERSION = ("model", "version")

OF_SERVER = (
    # Calls, as seen by the caller
    Metric(_C, "requests", "Finished calls.", (*_CALL, "code")),
    Metric(
        _H,
        "request_duration_seconds",
        "Time from a call's arrival to its last byte.",
        (*_CALL, "code"),
        REQUEST_BUCKETS,
    ),
    Metric(_G, "inflight_requests", "Calls that were accepted and not yet answered."),
    Metric(_G, "bytes_in_flight", "Bytes of calls' messages and answers, including those that may still arrive."),
    Metric(_G, "bytes_in_flight_max", "Maximum bytes of calls' messages and answers."),
    Metric(_C, "rejected", "Rejected calls, by reason.", (*_CALL, "reason")),
    # Callers, by name of their key
    Metric(_C, "key_requests", "Accepted calls, by the caller's key.", _KEY),
    Metric(_C, "key_refused", "Calls rejected by a quota, by the caller's key.", _KEY),
    Metric(_C, "key_tokens", "Tokens that models read and wrote, by the caller's key, as quotas count them.", _KEY),
    Metric(_C, "key_source_characters", "Characters of answered texts, by the caller's key.", _KEY),
    Metric(_C, "key_source_tokens", "Tokens of answered texts, by the caller's key.", _KEY),
    Metric(_C, "key_output_tokens", "Tokens of the translations of answered texts, by the caller's key.", _KEY),
    # `sha256` has the first digits of the hash: of two keys of one name, it tells which is still in use
    Metric(_G, "key_last_used_seconds", "Unix time of a key's last call; 0: none so far.", (*_KEY, "sha256")),
    # The server
    Metric(_G, "ready", "1 while the server is ready for calls."),
    Metric(_G, "draining", "1 while the server is stopping."),
    Metric(_G, "event_loop_tasks", "Tasks on the event loop, such as calls in progress."),
    Metric(_G, "connections", "Open connections of callers.", _PROTOCOL),
    Metric(_G, "connections_max", "Maximum open connections of callers.", _PROTOCOL),
    Metric(_C, "connections_refused", "Connections closed because there were too many.", _PROTOCOL),
    Metric(_H, "event_loop_lag_seconds", "How late a timer of the event loop fires.", (), REQUEST_BUCKETS),
    Metric(_G, "event_loop_silence_seconds", "Time since the event loop last ran; it should run every second."),
    Metric(
        _G,
        "memory_bytes",
        "Resident memory; each process counts its share of shared pages, so values of several processes add up.",
    ),
    Metric(_G, "memory_limit_bytes", "Memory limit of the container; infinite without one."),
    Metric(
        _G, "build_info", "Always 1; the labels describe the server.", ("version", "onnxruntime_version", "provider")
    ),
    Metric(
        _G,
        "model_info",
        "Always 1; the labels describe a served model.",
        ("model", "version", "precision", "checkpoint_sha256", "kernels"),
    ),
    Metric(_C, "reloads", "Reloads of the models on disk, by outcome.", ("outcome",)),
    Metric(_C, "model_load_failures", "Bundles that failed to load.", _MODEL),
    Metric(_G, "cache_bytes", "Approximate memory of cached translations."),
    Metric(_G, "cache_max_bytes", "Maximum memory for cached translations; 0: no cache."),
)
# Only of a server with TLS: 0 would look long expired.
TLS_NOT_AFTER = Metric(_G, "tls_certificate_not_after_seconds", "End of the TLS certificate's validity, in Unix time.")
OF_MODELS = (
    # Texts of finished calls
    Metric(_C, "sentences", "Sequences, by outcome: ok, failed, cancelled.", ("model", "outcome")),
    Metric(_C, "source_codepoints", "Characters of translated texts.", _MODEL),
    Metric(_C, "source_tokens", "Tokens that were encoded.", _MODEL),
    Metric(_C, "target_tokens", "Tokens that were generated.", _MODEL),
    Metric(_H, "request_sentences", "Sequences per call.", _MODEL, SIZE_BUCKETS),
    # The same of each version, to compare one with another
    Metric(_C, "model_requests", "Finished calls of a model.", (*_VERSION, "code")),
    Metric(_H, "model_request_duration_seconds", "Time from arrival to end, by model.", _VERSION, REQUEST_BUCKETS),
    Metric(_C, "finish", "Finished sequences, by finish reason.", (*_VERSION, "reason")),
    Metric(_C, "segment_flags", "Segments whose translation should be reviewed, by reason.", (*_VERSION, "flag")),
    Metric(_H, "source_length_tokens", "Source tokens per sequence.", _VERSION, SIZE_BUCKETS),
    Metric(_H, "target_length_tokens", "Tokens of the best hypothesis per sequence.", _VERSION, SIZE_BUCKETS),
    # Phases of a call
    Metric(_H, "queue_seconds", "Wait for a free slot, per sequence.", _MODEL, REQUEST_BUCKETS),
    Metric(_H, "tokenize_seconds", "Time to tokenize a call's texts.", _MODEL, STEP_BUCKETS),
    Metric(_H, "detokenize_seconds", "Time to detokenize a call's texts.", _MODEL, STEP_BUCKETS),
    Metric(
        _H,
        "time_to_first_token_seconds",
        "Time from a sequence's arrival to its first token.",
        _MODEL,
        REQUEST_BUCKETS,
    ),
    Metric(
        _H,
        "time_per_output_token_seconds",
        "Mean time between a sequence's tokens after the first.",
        _MODEL,
        STEP_BUCKETS,
    ),
    # The engine
    Metric(_H, "encode_seconds", "Duration of an encoder run.", _MODEL, REQUEST_BUCKETS),
    Metric(_H, "decode_step_seconds", "Duration of a decoder step.", _MODEL, STEP_BUCKETS),
    Metric(
        _C,
        "engine_busy_seconds",
        "Time spent encoding and decoding, and on the work around it, summed over concurrent batches.",
        _MODEL,
    ),
    Metric(_G, "engine_batches", "Concurrent batches, the maximum of busy seconds per second.", _MODEL),
    Metric(_H, "step_batch_size", "Rows per decoder step.", _MODEL, SIZE_BUCKETS),
    Metric(_H, "encode_padding_ratio", "Share of padding in an encoder run.", _MODEL, RATIO_BUCKETS),
    Metric(_G, "model_load_seconds", "Time to load a model, from checksums to warm-up.", _MODEL),
    Metric(_G, "queue_sequences", "Sequences waiting for a free slot.", _MODEL),
    Metric(_G, "queue_tokens", "Source tokens of waiting sequences.", _MODEL),
    Metric(
        _G,
        "estimated_wait_seconds",
        "How long a call that arrives now would wait for a slot if all callers took turns.",
        _MODEL,
    ),
    Metric(_C, "engine_restarts", "Engines that failed and were restarted.", _MODEL),
    Metric(_C, "admissions", "Sequences that got slots.", _MODEL),
    Metric(_C, "evictions", "Sequences removed while running, by reason: cancelled, deadline.", ("model", "reason")),
    Metric(_G, "engine_turn_seconds", "Duration of the engine's current turn so far; 0 when idle.", _MODEL),
    Metric(
        _G,
        "kv_cache_bytes_per_slot",
        "Memory reserved for one slot's keys and values at its maximum length.",
        _MODEL,
    ),
    Metric(_C, "cache_lookups", "Segments looked up in the translation cache: hit, miss.", ("model", "outcome")),
    Metric(_G, "sequences_running", "Sequences that are being decoded.", _MODEL),
    Metric(_G, "slots_running", "Slots in use.", _MODEL),
    Metric(_G, "slots_max", "Slots in total.", _MODEL),
    Metric(_G, "kv_cache_utilization_ratio", "Share of slots in use, 0 to 1.", _MODEL),
)
