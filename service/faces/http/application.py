"""ASGI application from a function that maps a request to an answer: limits the size of bodies, and handles HEAD.

There are few paths and no templates, so this is bare ASGI: a framework would add an async library, routing and 0.1 s
of imports. `HttpListener` takes any ASGI application.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

_LOG = logging.getLogger(__name__)

PLAIN = "text/plain; charset=utf-8"

_METHODS = ("GET", "HEAD", "POST")
_MAX_TARGET_BYTES = _MAX_HEADERS_BYTES = 65_536
_MAX_HEADERS = 100
_DISCARD_SECONDS = 1.0  # for reading the rest of a rejected body: closing with unread bytes would lose the answer

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. `path` is as sent, without the query; names of `headers` are in lower case; HEAD becomes GET."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer; Content-Type and Content-Length are added to its headers."""

    status: HTTPStatus
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[HttpRequest], Awaitable[HttpAnswer]]


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.answer = HttpAnswer(status, PLAIN, f"{message}\n".encode(), {"Connection": "close"})


class _ClientGone(Exception):
    pass


def application(answer: Answer, max_body_bytes: int = 0) -> Application:
    """Return the ASGI application that answers each request by calling `answer`; larger bodies are rejected."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            _check_head(scope)
            request = await _read(scope, receive, max_body_bytes)
        except _ClientGone:
            return
        except _Refused as refused:
            await _send(send, refused.answer, ends=False)
            await _discard(receive)
            await send({"type": "http.response.body"})
            return
        try:
            answered = await answer(request)
        except Exception:
            _LOG.exception("%s %s failed", request.method, request.path)
            body = b"internal error; see the server's log\n"
            answered = HttpAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, PLAIN, body)
        await _send(send, answered)

    return handle


def _check_head(scope: Scope) -> None:
    if scope["method"] not in _METHODS:
        raise _Refused(HTTPStatus.NOT_IMPLEMENTED, f"{scope['method']:.20} is not possible; GET, HEAD and POST are")
    if len(scope["raw_path"]) + len(scope["query_string"]) > _MAX_TARGET_BYTES:
        raise _Refused(HTTPStatus.REQUEST_URI_TOO_LONG, f"the path is too long; allowed are {_MAX_TARGET_BYTES} bytes")
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    sizes = [len(name) + len(value) for name, value in headers]
    if len(sizes) > _MAX_HEADERS or sum(sizes) > _MAX_HEADERS_BYTES:
        raise _Refused(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"{len(sizes)} headers of {sum(sizes)} bytes; allowed are {_MAX_HEADERS} of {_MAX_HEADERS_BYTES} in all",
        )


def on_loop(answer: Answer, loop: asyncio.AbstractEventLoop) -> Answer:
    """Return what answers with `answer` on another event loop, instead of the listener's."""

    async def on_other(request: HttpRequest) -> HttpAnswer:
        async def answered() -> HttpAnswer:
            return await answer(request)

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answered(), loop))

    return on_other


async def _read(scope: Scope, receive: Receive, max_body_bytes: int) -> HttpRequest:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    size = headers.get("content-length")
    if size is None and scope["method"] == "POST":
        raise _Refused(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing; give the length of the body")
    if int(size or 0) > max_body_bytes:
        raise _too_large(size, max_body_bytes)
    body = bytearray()
    is_whole = False
    while not is_whole:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientGone
        body += message.get("body", b"")
        if len(body) > max_body_bytes:
            raise _too_large(f"more than {max_body_bytes}", max_body_bytes)
        is_whole = not message.get("more_body", False)
    method = "GET" if scope["method"] == "HEAD" else scope["method"]
    return HttpRequest(method, scope["raw_path"].decode("latin-1"), headers, bytes(body))


def _too_large(size: object, max_body_bytes: int) -> _Refused:
    message = f"the body has {size} bytes; allowed is {max_body_bytes}"
    return _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)


async def _send(send: Send, answer: HttpAnswer, *, ends: bool = True) -> None:
    headers = {"Content-Type": answer.content_type, "Content-Length": str(len(answer.body)), **answer.headers}
    lines = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status.value, "headers": lines})
    await send({"type": "http.response.body", "body": answer.body, "more_body": not ends})


async def _discard(receive: Receive) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            while (await receive()).get("more_body", False):
                pass
