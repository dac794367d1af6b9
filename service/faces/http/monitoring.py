"""/metrics, /readyz and /livez over HTTP."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

from service.config.server_config import is_loopback
from service.faces.http.application import PLAIN, Answer, HttpAnswer, HttpRequest, application
from service.faces.http.listener import HttpListener
from service.faces.http.same_site import has_own_host
from service.observe.metrics import Metrics
from service.process.lifecycle import HUNG_SECONDS, Phase

Page = Callable[[str], Awaitable[HttpAnswer]]  # of a request's `Accept`


def monitoring(pages: Mapping[str, Page], host: str) -> Answer:
    """Return what answers scrapers and probes with these pages, by path, on a listener of this `host`.

    One for this machine only is asked by an address, localhost or `host`: a page whose own name resolves to it reads
    nothing. Others have names of which the server knows nothing.
    """
    checks_host = is_loopback(host)

    async def answer(request: HttpRequest) -> HttpAnswer:
        if checks_host and not has_own_host(request.headers, host):
            return HttpAnswer(
                HTTPStatus.FORBIDDEN, PLAIN, b"Host must be an address, localhost or the host of --metrics-host\n"
            )
        if request.method != "GET":
            return HttpAnswer(HTTPStatus.METHOD_NOT_ALLOWED, PLAIN, b"only GET is possible here\n", {"Allow": "GET"})
        page = pages.get(request.path)
        if page is None:
            return HttpAnswer(HTTPStatus.NOT_FOUND, PLAIN, b"not here; try /metrics, /readyz or /livez\n")
        return await page(request.headers.get("accept", ""))

    return answer


def probed(text: str, *, fine: bool) -> HttpAnswer:
    """Return the answer to a probe."""
    return HttpAnswer(HTTPStatus.OK if fine else HTTPStatus.SERVICE_UNAVAILABLE, PLAIN, f"{text}\n".encode())


def monitoring_listener(
    host: str, port: int, metrics: Metrics, phase: Callable[[], Phase], silent_seconds: Callable[[], float]
) -> HttpListener:
    """Open the port for scrapers and probes; 0 takes any free one.

    `phase` and `silent_seconds` (of the event loop) are called from other threads.

    Raises:
        PortError: the port can't be listened on.
    """

    async def text(accept: str) -> HttpAnswer:
        # On a thread, so that probes are answered even while a metric blocks.
        body, content_type = await asyncio.to_thread(metrics.render, accept)
        return HttpAnswer(HTTPStatus.OK, content_type, body)

    def probe(is_fine: Callable[[Phase], bool]) -> Page:
        async def answer(_: str) -> HttpAnswer:
            if (silent := silent_seconds()) > HUNG_SECONDS:  # probes retry several times before they act
                return probed(f"stuck: the event loop has not run for {silent:.0f} s, and answers no calls", fine=False)
            now = phase()
            return probed(now.value, fine=is_fine(now))

        return answer

    pages: dict[str, Page] = {
        "/metrics": text,
        "/readyz": probe(lambda now: now.is_ready),
        "/livez": probe(lambda now: now.is_alive),
    }
    return HttpListener(host, port, "metrics", "--metrics-port", application(monitoring(pages, host)))
