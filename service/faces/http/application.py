"""Applications of a port, each made from a function that maps a request to an answer; for callers: `calls.py`."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from service.calls.open_calls import Hold
from service.domain.errors import InvalidRequest
from service.faces.http.exchange import Exchange
from service.faces.http.heads import MAX_HEADERS, Head
from service.faces.http.open_connections import Application
from service.faces.http.refusals import BodyTooLarge, HeadRefused, Refused, UnknownMethod

_LOG = logging.getLogger(__name__)

PLAIN = "text/plain; charset=utf-8"

METHODS = ("GET", "HEAD", "POST")


@dataclass(frozen=True, slots=True)
class FormPart:
    """One field of a form; `filename` is `None` unless it is a file."""

    name: str
    filename: str | None
    content: bytes

    @property
    def text(self) -> str:
        """Return the content of a field that is no file; raise `InvalidRequest` if it is not UTF-8."""
        try:
            return self.content.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidRequest(
                "form field {name} is not UTF-8", name=self.name, advice="encode it as UTF-8"
            ) from None


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request.

    `path` is as sent, without the query; names of `headers` are in lower case; HEAD becomes GET. `parts` are the open
    ones of its route's path, decoded. A body of multipart/form-data is in `form`; then `body` is empty. `hold` counts
    the bytes of the body, where calls have a budget.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""
    query: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    form: Sequence[FormPart] = ()
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer; Content-Type and Content-Length are added. `status` may be one that is not in `HTTPStatus`."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[HttpRequest], Awaitable[HttpAnswer]]


def application(answer: Answer, max_body_bytes: int = 0) -> Application:
    """Return the application that answers each request by calling `answer`; larger bodies are rejected."""

    async def handle(exchange: Exchange) -> None:
        try:
            check_head(exchange.head, METHODS)
            request = await _read(exchange, max_body_bytes)
        except Refused as refused:
            await exchange.send(refused.status, {"Content-Type": PLAIN, "Connection": "close"}, f"{refused}\n".encode())
            return
        try:
            answered = await answer(request)
        except Exception:
            _LOG.exception("%s %s failed", request.method, request.path)
            body = b"internal error; see the server's log\n"
            answered = HttpAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, PLAIN, body)
        await send_answer(exchange, answered)

    return handle


def check_head(head: Head, methods: Sequence[str]) -> None:
    """Raise `Refused` for a method not in `methods`, or too many headers."""
    if head.method not in methods:
        raise UnknownMethod(head.method, methods)
    if head.num_headers > MAX_HEADERS:
        raise HeadRefused(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the request has {number} headers",
            number=head.num_headers,
            allowed=f"{MAX_HEADERS}",
            advice="send fewer",
        )


async def _read(exchange: Exchange, max_body_bytes: int) -> HttpRequest:
    head = exchange.head
    if "content-length" not in head.headers and head.method == "POST":
        raise HeadRefused(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing", advice="give the length of the body")
    body = await read_body(exchange, max_body_bytes)
    return HttpRequest(method_of(head), head.path, head.headers, body, head.query)


def method_of(head: Head) -> str:
    """Return a request's method; HEAD is answered like GET, without the body."""
    return "GET" if head.method == "HEAD" else head.method


async def read_body(exchange: Exchange, max_body_bytes: int, arrives: Callable[[int], None] | None = None) -> bytes:
    """Return a request's body; `arrives` is called with the size of each part, and may raise.

    Raise `BodyTooLarge` above `max_body_bytes`, `ClientGone` if the client disconnects.
    """
    size = exchange.head.body_bytes
    if size > max_body_bytes:
        raise BodyTooLarge(str(size), max_body_bytes)
    body = bytearray()
    while part := await exchange.read():
        if arrives is not None:
            arrives(len(part))
        if len(body) + len(part) > max_body_bytes:
            raise BodyTooLarge(f"more than {max_body_bytes}", max_body_bytes)
        if not body and exchange.is_received:
            return part  # as most are
        body += part
    return bytes(body)


async def send_answer(exchange: Exchange, answer: HttpAnswer) -> None:
    about = {} if answer.status == HTTPStatus.NO_CONTENT else {"Content-Type": answer.content_type}
    await exchange.send(answer.status, {**about, **answer.headers}, answer.body)
