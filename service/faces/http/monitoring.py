"""/metrics, /readyz and /livez over HTTP, and what dashboards and autoscalers for Triton expect of /metrics."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from types import MappingProxyType

from service.config.server_config import is_loopback
from service.faces.http.application import PLAIN, HttpAnswer, HttpRequest, application
from service.faces.http.listener import HttpListener
from service.faces.http.same_site import has_own_host
from service.models.loaded_model import Duration, InferenceStatistics, LoadedModel
from service.observe.metrics import Metrics
from service.observe.registry import ForeignMetric
from service.process.lifecycle import HUNG_SECONDS, Phase

# Each metric with its help, and how it is read of a model. Times are sums in microseconds.
_COUNTERS: Mapping[str, tuple[str, Callable[[InferenceStatistics], float]]] = {
    "request_success": ("Calls that succeeded.", lambda now: now.succeeded.count),
    "request_failure": ("Calls that failed or were cancelled.", lambda now: now.failed.count),
    "count": ("Texts of calls that succeeded.", lambda now: now.num_texts),
    "exec_count": ("Runs of the decoder.", lambda now: sum(step.count for step in now.step_seconds().values())),
    "request_duration_us": ("Time of calls that succeeded.", lambda now: _microseconds(now.succeeded)),
    "queue_duration_us": ("Time until the first of a call's texts got a slot.", lambda now: _microseconds(now.queue)),
    "compute_input_duration_us": ("Time of tokenizing.", lambda now: _microseconds(now.tokenize)),
    "compute_infer_duration_us": ("Time of decoding.", lambda now: _microseconds(now.decode)),
    "compute_output_duration_us": ("Time of detokenizing.", lambda now: _microseconds(now.detokenize)),
}


def monitoring_listener(
    host: str, port: int, metrics: Metrics, phase: Callable[[], Phase], silent_seconds: Callable[[], float]
) -> HttpListener:
    """Open the port for scrapers and probes, or raise `PortError`; 0 takes any free one.

    `phase` and `silent_seconds` (of the event loop) are called from other threads. A listener for this machine only
    answers to an address, localhost or `host`, so that a page whose own name resolves to it reads nothing. Others have
    names that the server does not know.
    """
    checks_host = is_loopback(host)

    def probed(is_fine: Callable[[Phase], bool]) -> HttpAnswer:
        if (silent := silent_seconds()) > HUNG_SECONDS:  # probes retry several times before they act
            text = f"stuck: the event loop has not run for {silent:.0f} s, and answers no calls"
            return _plain(HTTPStatus.SERVICE_UNAVAILABLE, text)
        now = phase()
        return _plain(HTTPStatus.OK if is_fine(now) else HTTPStatus.SERVICE_UNAVAILABLE, now.value)

    async def answer(request: HttpRequest) -> HttpAnswer:
        if checks_host and not has_own_host(request.headers, host):
            return _plain(HTTPStatus.FORBIDDEN, "Host must be an address, localhost or the host of --metrics-host")
        if request.method != "GET":
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED, "use GET", {"Allow": "GET"})
        match request.path:
            case "/metrics":
                # On a thread, so that probes are answered even while a metric blocks.
                body, content_type = await asyncio.to_thread(metrics.render, request.headers.get("accept", ""))
                return HttpAnswer(HTTPStatus.OK, content_type, body)
            case "/readyz":
                return probed(lambda now: now.is_ready)
            case "/livez":
                return probed(lambda now: now.is_alive)
        return _plain(HTTPStatus.NOT_FOUND, "unknown path; use /metrics, /readyz or /livez")

    return HttpListener(host, port, "metrics", "--metrics-port", application(answer))


def _plain(status: HTTPStatus, text: str, headers: Mapping[str, str] = MappingProxyType({})) -> HttpAnswer:
    return HttpAnswer(status, PLAIN, f"{text}\n".encode(), headers)


def triton_metrics(models: Iterable[LoadedModel]) -> Iterator[ForeignMetric]:
    known = [({"model": model.name, "version": model.version or "1"}, model) for model in models]
    for name, (text, read) in _COUNTERS.items():
        values = [(labels, read(model.statistics)) for labels, model in known]
        yield ForeignMetric(f"nv_inference_{name}", text, False, values)
    waiting = [(labels, float(model.engine.snapshot().num_waiting)) for labels, model in known]
    yield ForeignMetric("nv_inference_pending_request_count", "Texts that wait for a free slot.", True, waiting)


def _microseconds(took: Duration) -> int:
    return round(took.seconds * 1e6)
