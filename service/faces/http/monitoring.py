"""/metrics, /readyz and /livez over HTTP."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from service.faces.http.application import PLAIN, HttpAnswer, HttpRequest, application
from service.faces.http.listener import HttpListener
from service.observe.metrics import Metrics
from service.process.lifecycle import Phase

# An event loop silent for longer answers no calls either. Probes retry several times before they act.
MAX_SILENT_SECONDS = 10.0


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
