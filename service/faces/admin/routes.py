"""The admin listener: which path is what, the pages, and the protection against other pages; for whatever answers."""

import re
from typing import Protocol
from urllib.parse import unquote

from service.calls.open_calls import PIECE_BYTES
from service.faces.admin.answers import HEADERS, failure
from service.faces.admin.pages import operators_page, status_page
from service.faces.admin.same_site import refusal
from service.faces.http.application import Answer, HttpAnswer, HttpRequest, application
from service.faces.http.listener import HttpListener

_MODEL_ACTION = re.compile("/api/models/([^/]+)/(load|unload)")
_MAX_BODY_BYTES = 2 * PIECE_BYTES  # can be parsed as JSON in a few milliseconds, which block everything else
_PATHS = {
    "GET": "/, /status, /status.json, /api/models",
    "POST": "/api/translate, /api/reload, /api/models/<name>/load, /api/models/<name>/unload",
}


class Operators(Protocol):
    """What answers operators. Called on the listener's event loop, with requests of this server's own pages only."""

    async def status(self) -> HttpAnswer:
        """Return the data of the status page."""

    async def models(self) -> HttpAnswer:
        """Return the state of each version on disk or in memory."""

    async def translate(self, request: HttpRequest) -> HttpAnswer:
        """Translate the texts of the request's body."""

    async def reload(self, request: HttpRequest) -> HttpAnswer:
        """Look at the models on disk again."""

    async def load(self, name: str, request: HttpRequest) -> HttpAnswer:
        """Load a model."""

    async def unload(self, name: str, request: HttpRequest) -> HttpAnswer:
        """Unload a model."""


def admin_listener(host: str, port: int, answer: Answer, max_request_bytes: int) -> HttpListener:
    """Open the port for operators; 0 takes any free one. Bodies may have up to `max_request_bytes`, at most 128 KiB.

    `answer` is `routed` by the same host.

    Raises:
        PortError: the port can't be listened on.
    """
    max_body_bytes = min(max_request_bytes, _MAX_BODY_BYTES)
    return HttpListener(host, port, "the status page", "--admin-port", application(answer, max_body_bytes))


def routed(operators: Operators, own_host: str) -> Answer:
    """Return what answers each request that other web pages can't have sent; `own_host` is the listener's."""
    pages = {"/": operators_page().answer(HEADERS), "/status": status_page().answer(HEADERS)}

    async def answer(request: HttpRequest) -> HttpAnswer:
        if reason := refusal(request.method, request.headers, own_host):
            return failure("PERMISSION_DENIED", reason)
        match request.method, request.path:
            case "GET", "/" | "/status":
                return pages[request.path]
            case "GET", "/status.json":
                return await operators.status()
            case "GET", "/api/models":
                return await operators.models()
            case "POST", "/api/translate":
                return await operators.translate(request)
            case "POST", "/api/reload":
                return await operators.reload(request)
        if request.method == "POST" and (found := _MODEL_ACTION.fullmatch(request.path)):
            act = operators.load if found[2] == "load" else operators.unload
            return await act(unquote(found[1]), request)
        message = f"{request.method} {request.path!r:.80} is not here; there are {_PATHS[request.method]}."
        return failure("NOT_FOUND", message)

    return answer
