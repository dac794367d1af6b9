"""ASGI application from a function that maps a request to an answer: limits the size of bodies, and handles HEAD.

This is bare ASGI: a framework would add an async library, layers on every call's way and 0.1 s of imports.
`HttpListener` takes any ASGI application; `calls.py` has the one of callers.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from service.faces.http.refusals import BodyTooLarge, HeadRefused, Refused, UnknownMethod

_LOG = logging.getLogger(__name__)

PLAIN = "text/plain; charset=utf-8"

METHODS = ("GET", "HEAD", "POST")
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
    """A request. `path` is as sent, without the query; names of `headers` are in lower case; HEAD becomes GET.

    `parts` are those of the path that its route leaves open, decoded.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""
    query: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer; Content-Type and Content-Length are added to its headers, unless it can have no body.

    `status` may be one that is not in `HTTPStatus`.
    """

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[HttpRequest], Awaitable[HttpAnswer]]


class ClientGone(Exception):
    """The client disconnected before its request was complete."""


def application(answer: Answer, max_body_bytes: int = 0) -> Application:
    """Return the ASGI application that answers each request by calling `answer`; larger bodies are rejected."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            check_head(scope, METHODS)
            request = await _read(scope, receive, max_body_bytes)
        except ClientGone:
            return
        except Refused as refused:
            answer_of_refusal = HttpAnswer(refused.status, PLAIN, f"{refused}\n".encode(), {"Connection": "close"})
            await end_with(answer_of_refusal, receive, send)
            return
        try:
            answered = await answer(request)
        except Exception:
            _LOG.exception("%s %s failed", request.method, request.path)
            body = b"internal error; see the server's log\n"
            answered = HttpAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, PLAIN, body)
        await send_answer(send, answered)

    return handle


def check_head(scope: Scope, methods: Sequence[str]) -> None:
    """Check the size of a request's path and headers, and that its method is one of `methods`.

    Raises:
        Refused: it is too large, or the method another one.
    """
    if scope["method"] not in methods:
        raise UnknownMethod(scope["method"], methods)
    size = len(scope["raw_path"]) + len(scope["query_string"])
    if size > _MAX_TARGET_BYTES:
        raise HeadRefused(
            HTTPStatus.REQUEST_URI_TOO_LONG,
            "the path and the query have {size} bytes",
            size=size,
            allowed=f"{_MAX_TARGET_BYTES}",
            advice="send what is long in a body",
        )
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    sizes = [len(name) + len(value) for name, value in headers]
    if len(sizes) > _MAX_HEADERS or sum(sizes) > _MAX_HEADERS_BYTES:
        raise HeadRefused(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the request has {number} headers of {size} bytes",
            number=len(sizes),
            size=sum(sizes),
            allowed=f"{_MAX_HEADERS} of {_MAX_HEADERS_BYTES} in all",
            advice="send fewer or shorter ones",
        )


def on_loop(answer: Answer, loop: asyncio.AbstractEventLoop) -> Answer:
    """Return what answers with `answer` on another event loop, instead of the listener's."""

    async def on_other(request: HttpRequest) -> HttpAnswer:
        async def answered() -> HttpAnswer:
            return await answer(request)

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answered(), loop))

    return on_other


async def _read(scope: Scope, receive: Receive, max_body_bytes: int) -> HttpRequest:
    headers = headers_of(scope)
    if "content-length" not in headers and scope["method"] == "POST":
        raise HeadRefused(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing", advice="give the length of the body")
    body = await read_body(headers, receive, max_body_bytes)
    return HttpRequest(method_of(scope), scope["raw_path"].decode("latin-1"), headers, body)


def method_of(scope: Scope) -> str:
    """Return a request's method; HEAD is answered as GET is, and uvicorn leaves the body out."""
    method: str = scope["method"]
    return "GET" if method == "HEAD" else method


def headers_of(scope: Scope) -> dict[str, str]:
    """Return a request's headers; of those with the same name, the last."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


async def read_body(
    headers: Mapping[str, str], receive: Receive, max_body_bytes: int, arrives: Callable[[int], None] | None = None
) -> bytes:
    """Return a request's body. `arrives` is called with the size of each part, and may raise.

    Raises:
        BodyTooLarge: it has more than `max_body_bytes`.
        ClientGone: the client disconnected.
    """
    size = headers.get("content-length")
    if int(size or 0) > max_body_bytes:
        raise BodyTooLarge(str(size), max_body_bytes)
    body = bytearray()
    is_whole = False
    while not is_whole:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        part: bytes = message.get("body", b"")
        if arrives is not None:
            arrives(len(part))
        is_whole = not message.get("more_body", False)
        if len(body) + len(part) > max_body_bytes:
            raise BodyTooLarge(f"more than {max_body_bytes}", max_body_bytes)
        if is_whole and not body:
            return part  # as most are
        body += part
    return bytes(body)


async def end_with(answer: HttpAnswer, receive: Receive, send: Send) -> None:
    """Answer a request whose body was not read, or not to its end."""
    await send_answer(send, answer, ends=False)
    await _discard(receive)
    await send({"type": "http.response.body"})


async def send_answer(send: Send, answer: HttpAnswer, *, ends: bool = True) -> None:
    """Send an answer; unless it `ends`, more of the body may follow."""
    about = {"Content-Type": answer.content_type, "Content-Length": str(len(answer.body))}
    headers = {**({} if answer.status == HTTPStatus.NO_CONTENT else about), **answer.headers}
    await send_head(send, answer.status, headers)
    await send({"type": "http.response.body", "body": answer.body, "more_body": not ends})


async def send_head(send: Send, status: int, headers: Mapping[str, str]) -> None:
    """Begin an answer; its body follows."""
    lines = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": int(status), "headers": lines})


async def _discard(receive: Receive) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            while (await receive()).get("more_body", False):
                pass
