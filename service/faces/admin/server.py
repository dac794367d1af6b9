"""The admin listener over HTTP: the status page, its data, and operators' actions."""

import asyncio
import json
import math
import re
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import service
from service.calls.failures import code_of
from service.domain.errors import DeadlineExceeded, Overloaded, ServiceError, Unavailable
from service.faces.admin.calls import AdminCalls, Document
from service.faces.admin.same_site import refusal
from service.faces.admin.status import build_page, errors_of, models_of, numbers_of
from service.faces.http.application import HttpAnswer, HttpRequest, application
from service.faces.http.listener import HttpListener
from service.models.loaded_model import LoadedModel
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors
from service.process.lifecycle import Phase

_MODEL_ACTION = re.compile("/api/models/([^/]+)/(load|unload)")
_READ_SECONDS = 10.0  # for read-only requests
_CHANGE_SECONDS = 600.0  # for loading, unloading and reloading, which continue after that
_LAST_SECONDS = 2.0  # for an answer that arrives at the deadline
_MAX_BODY_BYTES = 131_072  # can be parsed as JSON in a few milliseconds, which block everything else
_JSON = "application/json"
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# As google.api.http maps them.
_HTTP_STATUS = {
    "INVALID_ARGUMENT": HTTPStatus.BAD_REQUEST,
    "FAILED_PRECONDITION": HTTPStatus.BAD_REQUEST,
    "UNAUTHENTICATED": HTTPStatus.UNAUTHORIZED,
    "NOT_FOUND": HTTPStatus.NOT_FOUND,
    "RESOURCE_EXHAUSTED": HTTPStatus.TOO_MANY_REQUESTS,
    "UNIMPLEMENTED": HTTPStatus.NOT_IMPLEMENTED,
    "UNAVAILABLE": HTTPStatus.SERVICE_UNAVAILABLE,
    "DEADLINE_EXCEEDED": HTTPStatus.GATEWAY_TIMEOUT,
}


@dataclass(frozen=True, slots=True)
class ServerView:
    """The server's data for the page; the functions are called from other threads."""

    device: str
    is_explicit: bool  # models are loaded and unloaded only by calls
    phase: Callable[[], Phase]
    models: Callable[[], Sequence[LoadedModel]]


class AdminServer:
    """Answers requests on the listener's event loop; operations on models run on the server's."""

    def __init__(
        self,
        view: ServerView,
        calls: AdminCalls,
        metrics: Metrics,
        errors: RecentErrors,
        loop: asyncio.AbstractEventLoop,
        own_host: str,
        deadline_seconds: float,
    ) -> None:
        """Accept `own_host`, the configured one; give translations `deadline_seconds`."""
        self._view = view
        self._calls = calls
        self._metrics = metrics
        self._errors = errors
        self._loop = loop
        self._own_host = own_host
        self._deadline_seconds = deadline_seconds
        self._page = build_page()
        self._started_seconds = time.monotonic()

    async def answer(self, request: HttpRequest) -> HttpAnswer:
        """Answer one request; called on the listener's event loop."""
        if reason := refusal(request.method, request.headers, self._own_host):
            return _failure(HTTPStatus.FORBIDDEN, "PERMISSION_DENIED", reason)
        if request.method == "GET":
            return await self._get(request)
        return await self._post(request)

    async def _get(self, request: HttpRequest) -> HttpAnswer:
        if request.path == "/":
            headers = {**_HEADERS, "Content-Security-Policy": self._page.policy}
            return HttpAnswer(HTTPStatus.OK, "text/html; charset=utf-8", self._page.body, headers)
        if request.path == "/status.json":
            return await asyncio.to_thread(lambda: _json(self._status()))  # it takes the models' locks
        if request.path == "/api/models":
            return await self._awaited(self._calls.models(), _READ_SECONDS)
        return _not_here(request, "/, /status.json, /api/models")

    async def _post(self, request: HttpRequest) -> HttpAnswer:
        headers = request.headers
        if request.path == "/api/translate":
            work = self._calls.translate(request.body, headers)
            return await self._awaited(work, self._deadline_seconds + _LAST_SECONDS)
        if request.path == "/api/reload":
            return await self._awaited(self._calls.reload(headers), _CHANGE_SECONDS)
        if found := _MODEL_ACTION.fullmatch(request.path):
            name = unquote(found[1])
            act = self._calls.load if found[2] == "load" else self._calls.unload
            return await self._awaited(act(name, headers), _CHANGE_SECONDS)
        return _not_here(request, "/api/translate, /api/reload, /api/models/<name>/load, /api/models/<name>/unload")

    def _status(self) -> Document:
        return {
            "version": service.__version__,
            "device": self._view.device,
            "is_explicit": self._view.is_explicit,
            "phase": self._view.phase().value,
            "uptime_seconds": time.monotonic() - self._started_seconds,
            "time_seconds": time.time(),
            **numbers_of(self._metrics.samples()),
            "models": models_of(self._view.models()),
            "errors": errors_of(self._errors.latest()),
        }

    async def _awaited(self, work: Coroutine[Any, Any, Document], timeout_seconds: float) -> HttpAnswer:
        """Run `work` on the server's event loop, and answer with its outcome."""
        started = time.monotonic()
        future: Future[Document] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            async with asyncio.timeout(timeout_seconds):
                document = await asyncio.wrap_future(future)  # cancels it on a timeout; changes are shielded from that
        except TimeoutError:
            late = "the call took longer than {seconds:g} s; a change that was started continues"
            return _of_error(DeadlineExceeded(late, seconds=timeout_seconds))
        except asyncio.CancelledError:
            return _of_error(Unavailable("the server is stopping; the change may not have been made."))
        except ServiceError as error:
            return _of_error(error)
        milliseconds = (time.monotonic() - started) * 1000
        return _json(document, {"Server-Timing": f"total;dur={milliseconds:.1f}"})


def admin_listener(host: str, port: int, server: AdminServer, max_request_bytes: int) -> HttpListener:
    """Open the port for operators; 0 takes any free one. Bodies may have up to `max_request_bytes`, at most 128 KiB.

    Raises:
        PortError: the port can't be listened on.
    """
    max_body_bytes = min(max_request_bytes, _MAX_BODY_BYTES)
    return HttpListener(host, port, "the status page", "--admin-port", application(server.answer, max_body_bytes))


def _of_error(error: ServiceError) -> HttpAnswer:
    code = code_of(error)
    headers = {}
    if isinstance(error, Overloaded):
        headers["Retry-After"] = str(math.ceil(error.retry_after_seconds))
    return _failure(_HTTP_STATUS.get(code, HTTPStatus.INTERNAL_SERVER_ERROR), code, str(error), headers)


def _not_here(request: HttpRequest, there: str) -> HttpAnswer:
    message = f"{request.method} {request.path!r:.80} is not here; there are {there}."
    return _failure(HTTPStatus.NOT_FOUND, "NOT_FOUND", message)


def _failure(status: HTTPStatus, code: str, message: str, headers: dict[str, str] | None = None) -> HttpAnswer:
    return _json({"error": {"code": code, "message": message}}, headers, status)


def _json(document: Document, headers: dict[str, str] | None = None, status: HTTPStatus = HTTPStatus.OK) -> HttpAnswer:
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return HttpAnswer(status, _JSON, body, {**_HEADERS, **(headers or {})})
