"""/metrics, /readyz and /livez over HTTP, and what dashboards and autoscalers for Triton expect of /metrics."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from types import MappingProxyType

from service.config.server_config import is_loopback
from service.faces.http.application import PLAIN, HttpAnswer, HttpRequest, application
from service.faces.http.listener import HttpListener
from service.faces.http.same_site import has_own_host
from service.models.loaded_model import Duration, LoadedModel
from service.observe.metrics import Metrics
from service.observe.registry import ForeignMetric
from service.process.lifecycle import HUNG_SECONDS, Phase

_TEXTS = {
    "nv_inference_request_success": "Calls that succeeded.",
    "nv_inference_request_failure": "Calls that failed or were cancelled.",
    "nv_inference_count": "Texts of calls that succeeded.",
    "nv_inference_exec_count": "Runs of the decoder.",
    "nv_inference_request_duration_us": "Time of calls that succeeded.",
    "nv_inference_queue_duration_us": "Time until the first of a call's texts got a slot.",
    "nv_inference_compute_input_duration_us": "Time of tokenizing.",
    "nv_inference_compute_infer_duration_us": "Time of decoding.",
    "nv_inference_compute_output_duration_us": "Time of detokenizing.",
    "nv_inference_pending_request_count": "Texts that wait for a free slot.",
}
_GAUGES = {"nv_inference_pending_request_count"}


def monitoring_listener(
    host: str, port: int, metrics: Metrics, phase: Callable[[], Phase], silent_seconds: Callable[[], float]
) -> HttpListener:
    """Open the port for scrapers and probes; 0 takes any free one.

    `phase` and `silent_seconds` (of the event loop) are called from other threads. A listener for this machine only is
    asked by an address, localhost or `host`: a page whose own name resolves to it reads nothing. Others have names of
    which the server knows nothing.

    Raises:
        PortError: the port can't be listened on.
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
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is possible here", {"Allow": "GET"})
        match request.path:
            case "/metrics":
                # On a thread, so that probes are answered even while a metric blocks.
                body, content_type = await asyncio.to_thread(metrics.render, request.headers.get("accept", ""))
                return HttpAnswer(HTTPStatus.OK, content_type, body)
            case "/readyz":
                return probed(lambda now: now.is_ready)
            case "/livez":
                return probed(lambda now: now.is_alive)
        return _plain(HTTPStatus.NOT_FOUND, "not here; try /metrics, /readyz or /livez")

    return HttpListener(host, port, "metrics", "--metrics-port", application(answer))


def _plain(status: HTTPStatus, text: str, headers: Mapping[str, str] = MappingProxyType({})) -> HttpAnswer:
    return HttpAnswer(status, PLAIN, f"{text}\n".encode(), headers)


def triton_metrics(models: Iterable[LoadedModel]) -> Iterator[ForeignMetric]:
    """Yield the models' statistics since they were loaded; times are sums in microseconds."""
    values = [({"model": model.name, "version": model.version or "1"}, _values(model)) for model in models]
    for name, text in _TEXTS.items():
        yield ForeignMetric(name, text, name in _GAUGES, [(labels, value[name]) for labels, value in values])


def _values(model: LoadedModel) -> dict[str, float]:
    statistics = model.statistics
    return {
        "nv_inference_request_success": statistics.succeeded.count,
        "nv_inference_request_failure": statistics.failed.count,
        "nv_inference_count": statistics.num_texts,
        "nv_inference_exec_count": sum(step.count for step in statistics.step_seconds().values()),
        "nv_inference_request_duration_us": _microseconds(statistics.succeeded),
        "nv_inference_queue_duration_us": _microseconds(statistics.queue),
        "nv_inference_compute_input_duration_us": _microseconds(statistics.tokenize),
        "nv_inference_compute_infer_duration_us": _microseconds(statistics.decode),
        "nv_inference_compute_output_duration_us": _microseconds(statistics.detokenize),
        "nv_inference_pending_request_count": model.engine.snapshot().num_waiting,
    }


def _microseconds(took: Duration) -> int:
    return round(took.seconds * 1e6)
