"""/metrics, /readyz and /livez over HTTP, and what of it dashboards and autoscalers for Triton expect."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus

from service.faces.http.application import PLAIN, HttpAnswer, HttpRequest, application
from service.faces.http.listener import HttpListener
from service.models.loaded_model import LoadedModel
from service.models.statistics import Duration
from service.observe.metrics import Metrics
from service.observe.registry import ForeignMetric
from service.process.lifecycle import Phase

# An event loop silent for longer answers no calls either. Probes retry several times before they act.
MAX_SILENT_SECONDS = 10.0
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

    `phase` and `silent_seconds` (of the event loop) are called from other threads.

    Raises:
        PortError: the port can't be listened on.
    """

    async def answer(request: HttpRequest) -> HttpAnswer:
        if request.method != "GET":
            return HttpAnswer(HTTPStatus.METHOD_NOT_ALLOWED, PLAIN, b"only GET is possible here\n", {"Allow": "GET"})
        if request.path == "/metrics":
            # On a thread, so that probes are answered even while a metric blocks.
            body, content_type = await asyncio.to_thread(metrics.render, request.headers.get("accept", ""))
            return HttpAnswer(HTTPStatus.OK, content_type, body)
        now = phase()
        fine = {"/readyz": now.is_ready, "/livez": now.is_alive}.get(request.path)
        if fine is None:
            return HttpAnswer(HTTPStatus.NOT_FOUND, PLAIN, b"not here; try /metrics, /readyz or /livez\n")
        if (silent := silent_seconds()) > MAX_SILENT_SECONDS:
            told = f"stuck: the event loop has not run for {silent:.0f} s, and answers no calls\n"
            return HttpAnswer(HTTPStatus.SERVICE_UNAVAILABLE, PLAIN, told.encode())
        status = HTTPStatus.OK if fine else HTTPStatus.SERVICE_UNAVAILABLE
        return HttpAnswer(status, PLAIN, f"{now.value}\n".encode())

    return HttpListener(host, port, "metrics", "--metrics-port", application(answer))


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
