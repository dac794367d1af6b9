"""The operators' port: the pages, the data of the status page, and actions; protected against other web pages."""

import asyncio
import os
import re
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import service
from service.calls.failures import code_of
from service.calls.open_calls import PIECE_BYTES
from service.config.server_config import ServerConfig
from service.domain.errors import DeadlineExceeded, ServiceError, Unavailable
from service.faces.admin.calls import AdminCalls, Document
from service.faces.admin.status import errors_of, models_of, numbers_of
from service.faces.http import answers
from service.faces.http.application import HttpAnswer, HttpRequest, application
from service.faces.http.listener import HttpListener
from service.faces.http.same_site import has_own_host, has_own_origin
from service.faces.page.document import HEADERS, Page, built, read
from service.faces.page.translation import Calls, Limits, TranslationPage
from service.models.loaded_model import LoadedModel
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors
from service.process.lifecycle import HUNG_SECONDS, LAST_SECONDS, Phase

_HEADERS = {"Cache-Control": "no-store", **HEADERS}
_MAX_BODY_BYTES = 2 * PIECE_BYTES  # are parsed as JSON in a few milliseconds, which block everything else
_CHANGE_SECONDS = 600.0  # for loading, unloading and reloading, which continue after that
_MODEL_ACTION = re.compile("/api/models/([^/]+)/(load|unload)")
_PATHS = {
    "GET": "/, /status, /status.json, /api/models",
    "POST": "/api/translate, /api/reload, /api/models/<name>/load, /api/models/<name>/unload",
}
_FOLDER = Path(__file__).parent / "page"
_TABS = (("./", "Translate"), ("status", "Status"))


class AdminServer:
    """Answers operators, on the event loop of its listener; their calls run on the server's."""

    def __init__(
        self,
        config: ServerConfig,
        calls: AdminCalls,
        phase: Callable[[], Phase],
        models: Callable[[], Sequence[LoadedModel]],
        metrics: Metrics,
        errors: RecentErrors,
    ) -> None:
        """Take the calls of this event loop; `phase` and `models` are called from other threads."""
        self._config = config
        self._calls = calls
        self._phase = phase
        self._models = models
        self._metrics = metrics
        self._errors = errors
        self._loop = asyncio.get_running_loop()
        self._max_body_bytes = min(config.max_request_bytes, _MAX_BODY_BYTES)
        self._page = operators_page(Limits(config.max_characters, self._max_body_bytes))
        self._status_page = status_page().answer(_HEADERS)
        self._started_seconds = time.monotonic()

    def listener(self) -> HttpListener:
        """Open the port, or raise `PortError`; bodies are limited like other calls' messages, to at most 128 KiB."""
        config = self._config
        app = application(self.answer, self._max_body_bytes)
        return HttpListener(config.admin_host, config.admin_port, "the status page", "--admin-port", app)

    async def answer(self, request: HttpRequest) -> HttpAnswer:
        if reason := refusal(request.method, request.headers, self._config.admin_host):
            return failure("PERMISSION_DENIED", reason)
        headers = request.headers
        match request.method, request.path:
            case "GET", "/":
                return self._page.answer(request.query, headers)
            case "GET", "/status":
                return self._status_page
            case "GET", "/status.json":
                return await asyncio.to_thread(lambda: in_json(self._status()))  # it takes the models' locks
            case "GET", "/api/models":
                return await self._awaited(self._calls.models(), HUNG_SECONDS)
            case "POST", "/api/translate":
                seconds = self._config.default_deadline_seconds + LAST_SECONDS
                return await self._awaited(self._calls.translate(request.body, headers), seconds)
            case "POST", "/api/reload":
                return await self._awaited(self._calls.reload(headers), _CHANGE_SECONDS)
        if request.method == "POST" and (found := _MODEL_ACTION.fullmatch(request.path)):
            change = self._calls.load if found[2] == "load" else self._calls.unload
            return await self._awaited(change(unquote(found[1]), headers), _CHANGE_SECONDS)
        message = f"{request.method} {request.path!r:.80} is unknown; allowed: {_PATHS[request.method]}."
        return failure("NOT_FOUND", message)

    def _status(self) -> Document:
        return {
            "version": service.__version__,
            "device": self._config.device,
            "is_explicit": self._config.is_explicit,
            "phase": self._phase().value,
            "pid": os.getpid(),
            "uptime_seconds": time.monotonic() - self._started_seconds,
            "time_seconds": time.time(),
            **numbers_of(self._metrics.samples()),
            "models": models_of(self._models()),
            "errors": errors_of(self._errors.latest()),
        }

    async def _awaited(self, work: Coroutine[Any, Any, Document], timeout_seconds: float) -> HttpAnswer:
        started = time.monotonic()
        future: Future[Document] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            async with asyncio.timeout(timeout_seconds):
                document = await asyncio.wrap_future(future)  # cancels it on a timeout; changes are shielded from that
        except TimeoutError:
            late = "the call took longer than {seconds:g} s; a change that was started continues"
            return of_error(DeadlineExceeded(late, seconds=timeout_seconds))
        except asyncio.CancelledError:
            return of_error(Unavailable("the server is stopping; the change may not have been made."))
        except ServiceError as error:
            return of_error(error)
        milliseconds = (time.monotonic() - started) * 1000
        return in_json(document, {"Server-Timing": f"total;dur={milliseconds:.1f}"})


def refusal(method: str, headers: Mapping[str, str], own_host: str) -> str:
    """Return why a request is rejected, in one line; empty if it is allowed.

    Header names are in lower case. Beyond `faces.http.same_site`: a page can't send JSON to another site without a
    preflight, never answered here.
    """
    if not has_own_host(headers, own_host):
        given = headers["host"]
        return f"Host is {given!r:.80}; allowed: addresses, names without a dot and that of --admin-host."
    if method == "GET":
        return ""
    if not has_own_origin(headers):
        return f"Origin is {headers.get('origin', '')!r:.80}; only this server's own status page may do this."
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        return f"Content-Type is {content_type!r:.80}; expected application/json."
    return ""


def of_error(error: ServiceError) -> HttpAnswer:
    return failure(code_of(error), str(error), answers.retry_headers(error))


def failure(code: str, message: str, headers: Mapping[str, str] = MappingProxyType({})) -> HttpAnswer:
    """Return an error: the name of a status, which determines HTTP's, and a message."""
    return in_json({"error": {"code": code, "message": message}}, headers, answers.status_of(code))


def in_json(
    document: Document, headers: Mapping[str, str] = MappingProxyType({}), status: HTTPStatus = HTTPStatus.OK
) -> HttpAnswer:
    return answers.in_json(document, {**_HEADERS, **headers}, status)


def operators_page(limits: Limits) -> TranslationPage:
    return TranslationPage(Calls.OPERATORS, _navigation("Translate"), limits, _HEADERS)


def status_page() -> Page:
    return built(
        _read("status.html"),
        [read("theme.css"), _read("uPlot.min.css"), _read("status.css")],
        [_read("uPlot.iife.min.js"), _read("status.js")],
        {
            "licence": f"<!--\nCharts are drawn by uPlot.\n\n{_read('uPlot.LICENSE')}\n-->",
            "navigation": _navigation("Status"),
        },
    )


def _navigation(current: str) -> str:
    marks = {name: ' aria-current="page"' if name == current else "" for _, name in _TABS}
    links = (f'<a href="{path}"{marks[name]}>{name}</a>' for path, name in _TABS)
    return f'<nav aria-label="Pages">{"".join(links)}</nav>'


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
