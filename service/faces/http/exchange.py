"""One request over HTTP and its answer: reading of the body, and writing of the answer (RFC 9112 6 and 7)."""

import asyncio
import contextlib
import math
import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol

from service.calls.open_calls import PIECE_BYTES
from service.domain.errors import ServiceError
from service.faces.http.chunks import MAX_CHUNKS, ChunkReader
from service.faces.http.heads import CHUNKED, Head
from service.faces.http.refusals import HeadRefused, Refused

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_PHRASES = {int(status): status.phrase for status in HTTPStatus}
_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class ClientGone(Exception):
    """The client disconnected before its request was complete."""


class Wire(Protocol):
    """The methods of `Connection` that an exchange needs."""

    received: bytearray
    peer: tuple[str, int]

    async def wait_for_more(self) -> None: ...

    def use(self, exchange: "Exchange") -> None: ...

    def fail(self, failure: ServiceError) -> None:
        """Make reading of the body fail with this, now or at the next wait."""

    def trust(self) -> None: ...

    async def write(self, exchange: "Exchange", part: bytes) -> None: ...


class Exchange:
    """A request whose head has arrived. Its answer is sent once: as a whole, or begun and then ended."""

    def __init__(self, wire: Wire, head: Head) -> None:
        self.head = head
        self.is_last = head.is_last  # on its connection
        self.has_begun = self.has_ended = False  # the answer
        self.is_known = True  # who sends it; else only the beginning of the body is received
        self.answered_by_seconds = math.inf  # on the event loop's clock
        self.num_read = 0  # bytes of the body
        self._wire = wire
        self._chunks = ChunkReader() if head.body_bytes == CHUNKED else None
        self._left = max(head.body_bytes, 0)
        self._asks_first = head.headers.get("expect", "").lower() == "100-continue" and not head.is_http_1_0
        self._sends_chunks = False

    @property
    def peer(self) -> tuple[str, int]:
        return self._wire.peer

    @property
    def is_received(self) -> bool:
        return self._left == 0 if self._chunks is None else self._chunks.is_complete

    @property
    def num_unread(self) -> int | None:
        """Return how many bytes of the body are still to be read; `None` while that is unknown."""
        if self._chunks is None:
            return self._left
        return 0 if self._chunks.is_complete else None

    @property
    def has_arrived(self) -> bool:
        return self._chunks is None and self._left <= len(self._wire.received)

    async def read(self) -> bytes:
        """Return the next part of the body; empty at its end.

        Raise `ClientGone`, or a `ServiceError` if it is malformed or too slow, or the server stops.
        """
        while not (part := self._take()) and not self.is_received:
            if self._asks_first and not self._wire.received:
                self._asks_first = False
                await self._wire.write(self, _CONTINUE)
            await self._wire.wait_for_more()
        if self._chunks is not None and part:
            if not self.is_known and self._chunks.num_chunks > MAX_CHUNKS:
                raise HeadRefused(
                    HTTPStatus.BAD_REQUEST,
                    "the body has more than {number} chunks",
                    number=MAX_CHUNKS,
                    advice="send larger ones, and the API key in a header",
                )
            await asyncio.sleep(0)  # many small ones take long
        return part

    def know(self, *, is_known: bool) -> None:
        self.is_known = is_known
        self._wire.use(self)

    def trust(self) -> None:
        self._wire.trust()

    def fail(self, failure: ServiceError) -> None:
        """Give the body up: `read` raises this from now on."""
        self._wire.fail(failure)

    def skip(self) -> None:
        """Drop what has arrived of the body; raise `HeadRefused` if it is malformed."""
        self._take()

    def _take(self) -> bytes:
        received = self._wire.received
        if self._chunks is not None:
            part = self._chunks.take(received)
        else:
            part = bytes(received[: self._left])
            del received[: self._left]
            self._left -= len(part)
        self.num_read += len(part)
        self._wire.use(self)
        return part

    async def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a whole answer; Content-Length is added to its headers."""
        head = self._begin(status, headers, len(body))
        self.has_ended = True
        if self.head.method == "HEAD" or status in _WITHOUT_BODY:
            body = b""
        await self._wire.write(self, head + body[:PIECE_BYTES])
        for at in range(PIECE_BYTES, len(body), PIECE_BYTES):
            await self._wire.write(self, body[at : at + PIECE_BYTES])

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin an answer of unknown length; to HTTP/1.0 it ends with the connection."""
        self._sends_chunks = not self.head.is_http_1_0
        await self._wire.write(self, self._begin(status, headers, None))

    async def send_part(self, part: bytes) -> None:
        if part and self.head.method != "HEAD":
            await self._wire.write(self, b"%x\r\n%b\r\n" % (len(part), part) if self._sends_chunks else part)

    async def end(self, part: bytes = b"") -> None:
        await self.send_part(part)
        self.has_ended = True
        if self._sends_chunks and self.head.method != "HEAD":
            await self._wire.write(self, b"0\r\n\r\n")

    def _begin(self, status: int, headers: Mapping[str, str], num_bytes: int | None) -> bytes:
        assert not self.has_begun, "a request has one answer"
        self.has_begun = True
        if not self.is_received:
            with contextlib.suppress(Refused):  # then it ends the connection, too
                self.skip()
        self.is_last = self.is_last or not self.is_received or headers.get("Connection") == "close"
        about = {name.lower(): value for name, value in headers.items() if name != "Connection"}
        if num_bytes is None:
            about |= {"transfer-encoding": "chunked"} if self._sends_chunks else {}
        elif status not in _WITHOUT_BODY:
            about["content-length"] = str(num_bytes)
        if self.is_last:
            about["connection"] = "close"
        return _head(status, about)


def plain_answer(status: int, text: str) -> bytes:
    """Return a whole answer in plain text, after which the connection ends."""
    body = f"{text}\n".encode()
    about = {
        "content-type": "text/plain; charset=utf-8",
        "content-length": str(len(body)),
        "connection": "close",
    }
    return _head(status, about) + body


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {int(status)} {_PHRASES.get(int(status), '')}",
        "server: dragoman",
        f"date: {_date_of(int(time.time()))}",
    ]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    text = "\r\n".join(lines)
    if text.count("\r") != len(lines) - 1 or text.count("\n") != len(lines) - 1:
        raise ValueError("a header of the answer has a line end")
    return f"{text}\r\n\r\n".encode("latin-1")


@lru_cache(maxsize=1)
def _date_of(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
