"""What the dashboard shows: each panel as what it asks Prometheus and how that is shown."""

from dataclasses import dataclass

INSTALLATION = 'job="dragoman",namespace=~"$namespace",deployment=~"$deployment",pool=~"$pool"'
SERVERS = f'{INSTALLATION},instance=~"$instance"'
_MODELS = f'{SERVERS},model=~"$model"'
_WINDOW = "[$__rate_interval]"

_GREEN, _YELLOW, _RED = "green", "#EAB839", "red"
Steps = tuple[tuple[float | None, str], ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """`queries` are pairs of an expression and its legend; `steps` are values from which another colour is shown.

    Of several queries in a `stat`, the steps are for the last.
    """

    title: str
    description: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    width: int = 8  # of 24
    steps: Steps = ((None, _GREEN),)
    highest: float | None = None
    stacked: bool = False
    alert: str = ""  # the alert whose runbook helps here


def _rate(metric: str, by: str, where: str = _MODELS) -> str:
    return f"sum by ({by}) (rate(dragoman_{metric}{{{where}}}{_WINDOW}))"


_CUT_SHORT = _rate("finish_total", "model, version", f'{_MODELS},reason=~"length|ratio|repetition"')
_ENDED = _rate("finish_total", "model, version", f'{_MODELS},reason!~"cancelled|deadline"')


_BUSY = f"rate(dragoman_engine_busy_seconds_total{{{_MODELS}}}{_WINDOW}) / dragoman_engine_batches{{{_MODELS}}}"


def _quantile(share: float, metric: str, where: str = _MODELS) -> str:
    return f"histogram_quantile({share:g}, sum by (le) (rate(dragoman_{metric}_bucket{{{where}}}{_WINDOW})))"


def _quantiles(metric: str, where: str = _MODELS) -> tuple[tuple[str, str], ...]:
    return tuple((_quantile(share, metric, where), f"p{share * 100:g}") for share in (0.5, 0.95, 0.99))


def _mean(metric: str) -> str:
    return f"{_rate(f'{metric}_sum', 'model')} / {_rate(f'{metric}_count', 'model')}"


def _by_model(gauge: str) -> str:
    return f"sum by (model) (dragoman_{gauge}{{{_MODELS}}})"


def _over_range(calls: str) -> str:
    return f"sum(sum_over_time(dragoman:calls_{calls}:rate5m{{{INSTALLATION}}}[$__range]))"


def _over_objective(calls: str, share: str) -> str:
    """Return how many times the objective allows a share of calls: the pace at which the budget is spent."""
    return f"{share} / scalar(dragoman:objective:{calls}_ratio)"


def _pace(calls: str) -> tuple[tuple[str, str], ...]:
    """Of several methods and Deployments, the worst."""
    ratio = f"dragoman:calls_{calls}:ratio_rate"
    return tuple(
        (_over_objective(calls, f"max({ratio}{window}{{{INSTALLATION}}})"), window)
        for window in ("5m", "30m", "1h", "6h")
    )


def _pace_by_method(calls: str) -> tuple[tuple[str, str], ...]:
    worst = f"max by (deployment, method) (dragoman:calls_{calls}:ratio_rate1h{{{INSTALLATION}}})"
    joined = f'label_join({worst}, "of", " ", "deployment", "method")'  # outside of Kubernetes there is no Deployment
    return ((_over_objective(calls, joined), "{{of}}"),)


_OK = f'{SERVERS},code="OK"'
_FAILED = f"{_over_range('failed')} / ({_over_range('failed')} + {_over_range('ok')})"
_SLOW = f"{_over_range('slow')} / {_over_range('timed')}"

ROWS: dict[str, tuple[Panel, ...]] = {
    "Now": (
        Panel(
            "Servers ready",
            "Servers that accept calls, not counting those that are loading or draining.",
            "none",
            ((f"sum(dragoman_ready{{{SERVERS}}})", "ready"),),
            "stat",
            width=4,
            steps=((None, _RED), (1, _GREEN)),
            alert="DragomanNoServerReady",
        ),
        Panel(
            "Availability",
            "Share of calls in the time shown that the server did not fail, and the part of the error budget used.",
            "percentunit",
            ((f"1 - {_FAILED}", "available"), (_over_objective("failed", f"({_FAILED})"), "budget used")),
            "stat",
            width=4,
            steps=((None, _GREEN), (1, _RED)),
            alert="DragomanFailuresSlow",
        ),
        Panel(
            "Calls on time",
            "Share of calls in the time shown that were fast enough, without streams and documents, and the part of "
            "the error budget used.",
            "percentunit",
            ((f"1 - {_SLOW}", "on time"), (_over_objective("slow", f"({_SLOW})"), "budget used")),
            "stat",
            width=4,
            steps=((None, _GREEN), (1, _RED)),
            alert="DragomanSlowCallsSlow",
        ),
        Panel(
            "Calls",
            "Finished calls per second.",
            "reqps",
            ((f"sum(rate(dragoman_requests_total{{{SERVERS}}}{_WINDOW}))", "calls"),),
            "stat",
            width=4,
        ),
        Panel(
            "Tokens",
            "Target tokens generated per second.",
            "short",
            ((f"sum(rate(dragoman_target_tokens_total{{{_MODELS}}}{_WINDOW}))", "tokens/s"),),
            "stat",
            width=4,
        ),
        Panel(
            "Call duration, p99",
            "99th percentile, from arrival to last byte; OK calls only.",
            "s",
            ((_quantile(0.99, "request_duration_seconds", _OK), "p99"),),
            "stat",
            width=4,
            alert="DragomanSlowCalls",
        ),
    ),
    "Traffic": (
        Panel(
            "Calls by method",
            "Finished calls per second, with any status.",
            "reqps",
            ((_rate("requests_total", "method", SERVERS), "{{method}}"),),
            stacked=True,
        ),
        Panel(
            "Sentences by outcome",
            "Sequences that ended per second. None should fail.",
            "short",
            ((_rate("sentences_total", "outcome"), "{{outcome}}"),),
            stacked=True,
            alert="DragomanSequencesFail",
        ),
        Panel(
            "Calls in flight",
            "Calls accepted but not yet answered.",
            "short",
            ((f"sum by (instance) (dragoman_inflight_requests{{{SERVERS}}})", "{{instance}}"),),
        ),
    ),
    "Latency": (
        Panel(
            "Call duration",
            "From arrival to last byte; OK calls only.",
            "s",
            _quantiles("request_duration_seconds", _OK),
            alert="DragomanSlowCallsFast",
        ),
        Panel(
            "Call durations",
            "Calls by duration. Two bands mean two kinds of callers, or of servers.",
            "s",
            ((f"sum by (le) (increase(dragoman_request_duration_seconds_bucket{{{_OK}}}{_WINDOW}))", "{{le}}"),),
            "heatmap",
        ),
        Panel(
            "Time to first token",
            "From a sentence's arrival to its first token: the wait for a slot, and encoding.",
            "s",
            _quantiles("time_to_first_token_seconds"),
            alert="DragomanQueueWaitHigh",
        ),
        Panel(
            "Time per output token",
            "Between a sentence's later tokens: a decoder step with all overhead.",
            "s",
            _quantiles("time_per_output_token_seconds"),
        ),
        Panel(
            "Tokenization",
            "p99 of tokenizing and of detokenizing one call; the caller waits for both.",
            "s",
            ((_quantile(0.99, "tokenize_seconds"), "tokenize"), (_quantile(0.99, "detokenize_seconds"), "detokenize")),
        ),
        Panel(
            "Wait for a slot",
            "From arrival to a slot, per sentence. An alert fires if p95 stays above the line.",
            "s",
            _quantiles("queue_seconds"),
            steps=((None, _GREEN), (0.2, _RED)),
            alert="DragomanQueueWaitHigh",
        ),
    ),
    "Saturation": (
        Panel(
            "Busy",
            "Share of time that engines work, about load over capacity. Aim for 0.65 over all models.",
            "percentunit",
            (
                (f"avg by (model) ({_BUSY})", "{{model}}"),
                (f"avg(sum by (namespace, deployment, instance) ({_BUSY}))", "all models"),
            ),
            highest=1,
            steps=((None, _GREEN), (0.65, _YELLOW), (0.85, _RED)),
            alert="DragomanBusy",
        ),
        Panel(
            "Slots in use",
            "Share of slots in use, and so of the memory for keys and values.",
            "percentunit",
            ((f"avg by (model) (dragoman_kv_cache_utilization_ratio{{{_MODELS}}})", "{{model}}"),),
            highest=1,
            steps=((None, _GREEN), (0.9, _YELLOW)),
            alert="DragomanSlotsFull",
        ),
        Panel(
            "Sentences waiting",
            "Sentences waiting for a slot. At --max-waiting, further calls are rejected.",
            "short",
            ((_by_model("queue_sequences"), "{{model}}"),),
            alert="DragomanQueueWaitHigh",
        ),
        Panel(
            "Tokens waiting",
            "Source tokens of the waiting sentences.",
            "short",
            ((_by_model("queue_tokens"), "{{model}}"),),
            alert="DragomanQueueWaitHigh",
        ),
        Panel(
            "Estimated wait",
            "How long a new call would wait, as the busiest server estimates.",
            "s",
            ((f"max by (model) (dragoman_estimated_wait_seconds{{{_MODELS}}})", "{{model}}"),),
            steps=((None, _GREEN), (0.2, _RED)),
            alert="DragomanEstimatedWaitHigh",
        ),
        Panel(
            "CPU",
            "CPUs in use. --num-threads sets how many threads the engine has.",
            "short",
            ((f"sum by (instance) (rate(process_cpu_seconds_total{{{SERVERS}}}{_WINDOW}))", "{{instance}}"),),
        ),
        Panel(
            "Event loop lag",
            "p90 of how late timers fire: calls wait as long before the server looks at them.",
            "s",
            (
                (
                    "histogram_quantile(0.9, " + _rate("event_loop_lag_seconds_bucket", "le, instance", SERVERS) + ")",
                    "{{instance}}",
                ),
            ),
            steps=((None, _GREEN), (0.05, _RED)),
            alert="DragomanEventLoopLate",
        ),
        Panel(
            "Connections",
            "Share of the limit in use. At the limit, gRPC closes new connections, HTTP an idle one for each.",
            "percentunit",
            (
                (
                    f"max by (instance, protocol) (dragoman_connections{{{SERVERS}}}"
                    f" / dragoman_connections_max{{{SERVERS}}})",
                    "{{protocol}} of {{instance}}",
                ),
            ),
            highest=1,
            steps=((None, _GREEN), (0.8, _RED)),
            alert="DragomanConnectionsFull",
        ),
        Panel(
            "Memory",
            "Share of the memory limit of each server's container in use. 0 outside a container.",
            "percentunit",
            (
                (
                    f"sum by (instance) (dragoman_memory_bytes{{{SERVERS}}}"
                    f" / dragoman_memory_limit_bytes{{{SERVERS}}})",
                    "{{instance}}",
                ),
            ),
            highest=1,
            steps=((None, _GREEN), (0.9, _RED)),
            alert="DragomanMemoryHigh",
        ),
        Panel(
            "Memory in bytes",
            "As a container's limit counts it: memory that a server's processes share counts once.",
            "bytes",
            ((f"sum by (instance) (dragoman_memory_bytes{{{SERVERS}}})", "{{instance}}"),),
            alert="DragomanMemoryHigh",
        ),
    ),
    "Engine": (
        Panel(
            "Decoder step", "One step of the decoder for all rows of a worker.", "s", _quantiles("decode_step_seconds")
        ),
        Panel(
            "Encoder run",
            "One run of the encoder over new sentences, between steps.",
            "s",
            _quantiles("encode_seconds"),
        ),
        Panel(
            "Rows per step",
            "Average number of rows per decoder step: what continuous batching achieves.",
            "short",
            ((_mean("step_batch_size"), "{{model}}"),),
        ),
        Panel(
            "Padding",
            "Average share of padding in an encoder run: wasted work.",
            "percentunit",
            ((_mean("encode_padding_ratio"), "{{model}}"),),
            highest=1,
        ),
        Panel(
            "Turn under way",
            "Duration so far of the engine's current turn, normally milliseconds. Above the line it is stuck.",
            "s",
            ((f"max by (instance, model) (dragoman_engine_turn_seconds{{{_MODELS}}})", "{{model}} on {{instance}}"),),
            steps=((None, _GREEN), (30, _RED)),
            alert="DragomanEngineStuck",
        ),
        Panel(
            "Cache hits",
            "Segments per second answered from the cache, without decoding.",
            "short",
            ((_rate("cache_lookups_total", "outcome", f'{_MODELS},outcome="hit"'), "cache {{outcome}}"),),
            stacked=True,
        ),
    ),
    "Models": (
        Panel(
            "Tokens generated",
            "Target tokens generated per second, by model.",
            "short",
            ((_rate("target_tokens_total", "model"), "{{model}}"),),
            stacked=True,
            alert="DragomanNoProgress",
        ),
        Panel(
            "Tokens read",
            "Source tokens encoded per second, by model.",
            "short",
            ((_rate("source_tokens_total", "model"), "{{model}}"),),
            stacked=True,
        ),
        Panel(
            "Sentence lengths",
            "p95 of source and target tokens per sentence.",
            "short",
            ((_quantile(0.95, "source_length_tokens"), "source"), (_quantile(0.95, "target_length_tokens"), "target")),
        ),
        Panel(
            "Served",
            "Versions served. Replicas differ during a rollout, or if one could not load its bundle.",
            "short",
            ((f"count by (model, version, precision, checkpoint_sha256) (dragoman_model_info{{{_MODELS}}})", ""),),
            "table",
        ),
        Panel(
            "Load time",
            "From checksums to the end of the warm-up, for the version loaded last.",
            "s",
            ((f"max by (model) (dragoman_model_load_seconds{{{_MODELS}}})", "{{model}}"),),
        ),
        Panel(
            "Reloads and refused bundles",
            "Reloads by outcome, and bundles that were damaged or failed their self-test, per interval.",
            "short",
            (
                (f"sum by (outcome) (increase(dragoman_reloads_total{{{SERVERS}}}{_WINDOW}))", "{{outcome}}"),
                (
                    f"sum by (model) (increase(dragoman_model_load_failures_total{{{_MODELS}}}{_WINDOW}))",
                    "{{model}} refused",
                ),
            ),
            alert="DragomanModelLoadFails",
        ),
    ),
    "Versions": (
        Panel(
            "Calls by version",
            "Finished calls per second of each version of a model, with any status.",
            "reqps",
            ((_rate("model_requests_total", "model, version"), "{{model}} {{version}}"),),
            stacked=True,
        ),
        Panel(
            "Call duration by version",
            "95th percentile, from arrival to end. The canary gate compares versions by it.",
            "s",
            (
                (
                    "histogram_quantile(0.95, "
                    + _rate("model_request_duration_seconds_bucket", "le, model, version")
                    + ")",
                    "{{model}} {{version}}",
                ),
            ),
        ),
        Panel(
            "Cut short by version",
            "Share of outputs ended by a limit, not by their last token. Cancelled ones are left out.",
            "percentunit",
            (
                (
                    f"({_CUT_SHORT} or 0 * {_ENDED}) / {_ENDED}",  # 0, where none has been cut short yet
                    "{{model}} {{version}}",
                ),
            ),
            highest=1.0,
        ),
    ),
    "Objectives": (
        Panel(
            "Failures over objective",
            "Burn rate: the share of failed calls over the share allowed; the worst API and pool. At the line: a page.",
            "short",
            _pace("failed"),
            width=6,
            steps=((None, _GREEN), (14.4, _RED)),
            alert="DragomanFailuresFast",
        ),
        Panel(
            "Failures by API and pool",
            "Burn rate over the last hour, by method and Deployment.",
            "short",
            _pace_by_method("failed"),
            width=6,
            steps=((None, _GREEN), (14.4, _RED)),
            alert="DragomanFailuresFast",
        ),
        Panel(
            "Slow calls over objective",
            "Burn rate: the share of slow calls over the share allowed; the worst API and pool. At the line: a page.",
            "short",
            _pace("slow"),
            width=6,
            steps=((None, _GREEN), (14.4, _RED)),
            alert="DragomanSlowCallsFast",
        ),
        Panel(
            "Slow calls by API and pool",
            "Burn rate over the last hour, by method and Deployment.",
            "short",
            _pace_by_method("slow"),
            width=6,
            steps=((None, _GREEN), (14.4, _RED)),
            alert="DragomanSlowCallsFast",
        ),
    ),
    "Errors": (
        Panel(
            "Calls that are not OK",
            "By gRPC status. INVALID_ARGUMENT and CANCELLED are caused by callers, INTERNAL by the server.",
            "reqps",
            ((_rate("requests_total", "code", f'{SERVERS},code!="OK"'), "{{code}}"),),
            stacked=True,
            alert="DragomanFailures",
        ),
        Panel(
            "Rejected calls",
            "Calls rejected before any work was done, by reason.",
            "reqps",
            ((_rate("rejected_total", "reason", SERVERS), "{{reason}}"),),
            stacked=True,
            alert="DragomanFailuresFast",
        ),
        Panel(
            "Why sentences ended",
            "stop is normal; length, ratio and repetition mean that a translation was cut short.",
            "short",
            ((_rate("finish_total", "reason"), "{{reason}}"),),
            stacked=True,
            alert="DragomanOutputCutShort",
        ),
        Panel(
            "Flagged segments",
            "Segments per second whose translation was returned with a warning.",
            "short",
            ((_rate("segment_flags_total", "flag"), "{{flag}}"),),
            stacked=True,
        ),
        Panel(
            "Evicted while running",
            "Sentences per second that lost their slots because the caller left or the deadline passed.",
            "short",
            ((_rate("evictions_total", "reason"), "{{reason}}"),),
            stacked=True,
        ),
        Panel(
            "Calls by key",
            "Calls per second of the ten busiest keys.",
            "reqps",
            ((f"topk(10, {_rate('key_requests_total', 'key', SERVERS)})", "{{key}}"),),
        ),
        Panel(
            "Certificate",
            "Time left until the server's certificate expires.",
            "s",
            (
                (
                    f"min by (instance) (dragoman_tls_certificate_not_after_seconds{{{SERVERS}}} - time())",
                    "{{instance}}",
                ),
            ),
            steps=((None, _RED), (2 * 86400, _YELLOW), (14 * 86400, _GREEN)),
            alert="DragomanCertificateExpiresSoon",
        ),
    ),
    "Usage": (
        Panel(
            "Characters by key",
            "Characters of answered texts per second, as billed; the ten keys with the most.",
            "short",
            ((f"topk(10, {_rate('key_source_characters_total', 'key', SERVERS)})", "{{key}}"),),
            width=12,
        ),
        Panel(
            "Characters per CPU second",
            "Over the last hour. The price of a CPU second divided by this is the price of a character.",
            "short",
            (
                (
                    f"dragoman:source_codepoints:per_cpu_second1h{{{INSTALLATION}}}",
                    "characters",
                ),
            ),
            width=12,
        ),
    ),
}
