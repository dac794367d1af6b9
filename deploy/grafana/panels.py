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
    """`queries` are pairs of an expression and its legend; `steps` are values from which another colour is shown."""

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
            "Servers that want calls. Those that are loading or being stopped are not counted.",
            "none",
            ((f"sum(dragoman_ready{{{SERVERS}}})", "ready"),),
            "stat",
            width=4,
            steps=((None, _RED), (1, _GREEN)),
            alert="DragomanNoServerReady",
        ),
        Panel(
            "Availability",
            "Share of calls, in the time shown, that did not fail by our fault, and the used part of the budget.",
            "percentunit",
            ((f"1 - {_FAILED}", "available"), (_over_objective("failed", f"({_FAILED})"), "budget used")),
            "stat",
            width=4,
            steps=((None, _GREEN), (1, _RED)),
            alert="DragomanFailuresSlow",
        ),
        Panel(
            "Calls in time",
            "Share of calls, in the time shown, that were not slow; no streams or documents. And the used share of the "
            "slow ones that are allowed.",
            "percentunit",
            ((f"1 - {_SLOW}", "in time"), (_over_objective("slow", f"({_SLOW})"), "budget used")),
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
            "Tokens generated per second: the work that is done.",
            "short",
            ((f"sum(rate(dragoman_target_tokens_total{{{_MODELS}}}{_WINDOW}))", "tokens/s"),),
            "stat",
            width=4,
        ),
        Panel(
            "Call duration, p99",
            "One call in a hundred takes longer; those that ended OK, arrival to last byte.",
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
            "Finished calls per second, whatever came of them.",
            "reqps",
            ((_rate("requests_total", "method", SERVERS), "{{method}}"),),
            stacked=True,
        ),
        Panel(
            "Sentences by outcome",
            "Sequences that ended per second. Failed ones should not exist.",
            "short",
            ((_rate("sentences_total", "outcome"), "{{outcome}}"),),
            stacked=True,
            alert="DragomanSequencesFail",
        ),
        Panel(
            "Calls in flight",
            "Calls that were accepted and not yet answered.",
            "short",
            ((f"sum by (instance) (dragoman_inflight_requests{{{SERVERS}}})", "{{instance}}"),),
        ),
    ),
    "Latency": (
        Panel(
            "Call duration",
            "Arrival to last byte, of calls that ended OK.",
            "s",
            _quantiles("request_duration_seconds", _OK),
            alert="DragomanSlowCallsFast",
        ),
        Panel(
            "Call durations",
            "How many calls took how long: two bands are two kinds of callers, or of servers.",
            "s",
            ((f"sum by (le) (increase(dragoman_request_duration_seconds_bucket{{{_OK}}}{_WINDOW}))", "{{le}}"),),
            "heatmap",
        ),
        Panel(
            "Time to first token",
            "Arrival of a sentence to its first token: its wait for a slot, and its encoding.",
            "s",
            _quantiles("time_to_first_token_seconds"),
            alert="DragomanQueueWaitHigh",
        ),
        Panel(
            "Time per output token",
            "Between a sentence's later tokens: what a step takes, with everything around it.",
            "s",
            _quantiles("time_per_output_token_seconds"),
        ),
        Panel(
            "Text work",
            "p99 of tokenizing and detokenizing one call, which the caller waits for, too.",
            "s",
            ((_quantile(0.99, "tokenize_seconds"), "tokenize"), (_quantile(0.99, "detokenize_seconds"), "detokenize")),
        ),
        Panel(
            "Wait for a slot",
            "From arrival to admission, per sentence. An alert follows when p95 stays over 0.5 s.",
            "s",
            _quantiles("queue_seconds"),
            steps=((None, _GREEN), (0.5, _RED)),
            alert="DragomanQueueWaitHigh",
        ),
    ),
    "Saturation": (
        Panel(
            "Busy",
            "Share of time in which engines work: about load over capacity. All models together should be at 0.65.",
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
            "Share of slots, so of memory for keys and values, that is taken. Full while others wait is too little.",
            "percentunit",
            ((f"avg by (model) (dragoman_kv_cache_utilization_ratio{{{_MODELS}}})", "{{model}}"),),
            highest=1,
            steps=((None, _GREEN), (0.9, _YELLOW)),
            alert="DragomanSlotsFull",
        ),
        Panel(
            "Sentences waiting",
            "Sentences that wait for a slot. Calls are refused when --max-waiting are.",
            "short",
            ((_by_model("queue_sequences"), "{{model}}"),),
            alert="DragomanQueueWaitHigh",
        ),
        Panel(
            "Tokens waiting",
            "Source tokens of the sentences that wait.",
            "short",
            ((_by_model("queue_tokens"), "{{model}}"),),
            alert="DragomanQueueWaitHigh",
        ),
        Panel(
            "Estimated wait",
            "What a newcomer would wait now, by the server's own estimate; the worst server.",
            "s",
            ((f"max by (model) (dragoman_estimated_wait_seconds{{{_MODELS}}})", "{{model}}"),),
            steps=((None, _GREEN), (10, _RED)),
            alert="DragomanEstimatedWaitHigh",
        ),
        Panel(
            "CPU",
            "CPUs in use. The engine has as many threads as --num-threads.",
            "short",
            ((f"sum by (instance) (rate(process_cpu_seconds_total{{{SERVERS}}}{_WINDOW}))", "{{instance}}"),),
        ),
        Panel(
            "Event loop lag",
            "p90 of how late a timer fires, so of how long a call waits before the server looks at it.",
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
            "Share of the connections that a server may have. Full, gRPC closes newcomers, and HTTP one for each.",
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
            "Share of what each server's container may use. Outside of one there is no limit: 0.",
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
            "As a container's limit counts it: what the processes of a server share counts once.",
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
            "Encoder run", "One run of the encoder over newcomers, between steps.", "s", _quantiles("encode_seconds")
        ),
        Panel(
            "Rows per step",
            "How many rows one decoder step advanced, on average: what continuous batching makes of the load.",
            "short",
            ((_mean("step_batch_size"), "{{model}}"),),
        ),
        Panel(
            "Padding",
            "Share of padding in an encoder run, on average: work for nothing.",
            "percentunit",
            ((_mean("encode_padding_ratio"), "{{model}}"),),
            highest=1,
        ),
        Panel(
            "Turn under way",
            "How long the engine's present turn has taken: normally milliseconds. After 30 s it is stuck.",
            "s",
            ((f"max by (instance, model) (dragoman_engine_turn_seconds{{{_MODELS}}})", "{{model}} on {{instance}}"),),
            steps=((None, _GREEN), (30, _RED)),
            alert="DragomanEngineStuck",
        ),
        Panel(
            "Work saved",
            "Answers per second from the cache, without decoding.",
            "short",
            ((_rate("cache_lookups_total", "outcome", f'{_MODELS},outcome="hit"'), "cache {{outcome}}"),),
            stacked=True,
        ),
    ),
    "Models": (
        Panel(
            "Tokens generated",
            "Per second and model.",
            "short",
            ((_rate("target_tokens_total", "model"), "{{model}}"),),
            stacked=True,
            alert="DragomanNoProgress",
        ),
        Panel(
            "Tokens read",
            "Source tokens encoded per second and model.",
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
            "Versions in service. Replicas differ during a rollout, or because one could not load its bundle.",
            "short",
            ((f"count by (model, version, precision, checkpoint_sha256) (dragoman_model_info{{{_MODELS}}})", ""),),
            "table",
        ),
        Panel(
            "Load time",
            "From checksums to warmed up, for the version loaded last.",
            "s",
            ((f"max by (model) (dragoman_model_load_seconds{{{_MODELS}}})", "{{model}}"),),
        ),
        Panel(
            "Reloads and refused bundles",
            "Looks at the models on disk, and bundles that were damaged or failed their self-test, in the interval.",
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
            "Finished calls per second of each version of a model, whatever came of them.",
            "reqps",
            ((_rate("model_requests_total", "model, version"), "{{model}} {{version}}"),),
            stacked=True,
        ),
        Panel(
            "Call duration by version",
            "95th percentile, from arrival to end. The gate of a canary compares it.",
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
            "Share of outputs that ended for another reason than their end. Cancelled ones are not counted.",
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
            "How many times as many calls fail by our fault as may; the worst API and pool. At the line: a page.",
            "short",
            _pace("failed"),
            width=6,
            steps=((None, _GREEN), (14.4, _RED)),
            alert="DragomanFailuresFast",
        ),
        Panel(
            "Failures by API and pool",
            "The same over the last hour, each method of each Deployment.",
            "short",
            _pace_by_method("failed"),
            width=6,
            steps=((None, _GREEN), (14.4, _RED)),
            alert="DragomanFailures",
        ),
        Panel(
            "Slow calls over objective",
            "How many times as many calls are slow as may be; the worst API and pool. At the line: a page.",
            "short",
            _pace("slow"),
            width=6,
            steps=((None, _GREEN), (14.4, _RED)),
            alert="DragomanSlowCallsFast",
        ),
        Panel(
            "Slow calls by API and pool",
            "The same over the last hour, each method of each Deployment.",
            "short",
            _pace_by_method("slow"),
            width=6,
            steps=((None, _GREEN), (14.4, _RED)),
            alert="DragomanSlowCalls",
        ),
    ),
    "Errors": (
        Panel(
            "Calls that are not OK",
            "By gRPC status. INVALID_ARGUMENT and CANCELLED are the callers' doing; INTERNAL is ours.",
            "reqps",
            ((_rate("requests_total", "code", f'{SERVERS},code!="OK"'), "{{code}}"),),
            stacked=True,
            alert="DragomanFailures",
        ),
        Panel(
            "Refused, by reason",
            "Calls that were refused before any work was done.",
            "reqps",
            ((_rate("rejected_total", "reason", SERVERS), "{{reason}}"),),
            stacked=True,
            alert="DragomanFailuresFast",
        ),
        Panel(
            "Why sentences ended",
            "stop is normal. length, ratio and repetition are translations cut short.",
            "short",
            ((_rate("finish_total", "reason"), "{{reason}}"),),
            stacked=True,
            alert="DragomanOutputCutShort",
        ),
        Panel(
            "Flagged segments",
            "Segments per second whose translation carries a warning for the caller.",
            "short",
            ((_rate("segment_flags_total", "flag"), "{{flag}}"),),
            stacked=True,
        ),
        Panel(
            "Taken out while running",
            "Sentences per second that lost their slots because the caller left or the time was up.",
            "short",
            ((_rate("evictions_total", "reason"), "{{reason}}"),),
            stacked=True,
        ),
        Panel(
            "Calls by key",
            "Per second, the ten busiest keys.",
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
            "Per second, of answered texts, as bills count them; the ten keys with the most.",
            "short",
            ((f"topk(10, {_rate('key_source_characters_total', 'key', SERVERS)})", "{{key}}"),),
            width=12,
        ),
        Panel(
            "Characters per CPU second",
            "Over an hour. A CPU's price per second, divided by this, is the price of a character.",
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
