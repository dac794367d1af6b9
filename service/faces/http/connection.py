"""One connection of HTTP/1.1 (RFC 9112), from its acceptance to its end: one request at a time.

What arrives is kept as bytes, `MAX_HEAD_BYTES` at most; then nothing more is read until some of it has been used. So
what a client sends ahead costs no more than that, be it a head, a body that nobody reads, or further requests.

The states; from each, `abort` or the end of the transport leads to CLOSED:

    CONNECTING -> WAITING -> HEAD -> BODY -> WORKING -> DISCARDING -> CLOSING -> CLOSED
    WORKING -> ANSWERING -> WORKING    while the client takes an answer more slowly than it is sent
    WORKING -> WAITING                 for the next request

HEAD is left out if the whole head arrives at once, BODY if the whole body has, DISCARDING if nothing more can arrive.
"""

import asyncio
import contextlib
import logging
import math
import re
import socket
from http import HTTPStatus

from service.calls.open_calls import PIECE_BYTES
from service.domain.errors import ServiceError, Unavailable
from service.faces.http.exchange import ClientGone, Exchange, plain_answer
from service.faces.http.heads import MAX_HEAD_BYTES, find_end, num_requests, parse_head
from service.faces.http.open_connections import OpenConnections, State
from service.faces.http.refusals import BodyTooSlow, Refused
from service.process.event_loop import Deadline

_LOG = logging.getLogger(__name__)

READ_SECONDS = 10.0  # to connect, to send a head, and to move each `PIECE_BYTES` of a body or of an answer
MOST_SECONDS = 600.0  # for a body or an answer, whatever its size
LINGER_SECONDS = 1.0  # for what a client still sends after the last answer, and for answers at a stop

_MAX_WAITING = 16  # requests, behind the one that is being answered
_EMPTY_LINES = re.compile(rb"(?:\r\n)*+")


class Connection(asyncio.BufferedProtocol):
    """Takes requests one after the other, and lets the port's application answer each in a task of its own."""

    def __init__(self, connections: OpenConnections, connected: socket.socket, peer: tuple[str, int]) -> None:
        self.state = State.CONNECTING
        self.received = bytearray()  # and not used
        self.peer = peer
        self.is_trusted = False  # a good key came with one of its requests
        self._connections = connections
        self._socket = connected
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._task: asyncio.Task[None] | None = None  # answers it
        self._num_searched = 0  # bytes of an incomplete head
        self._more: asyncio.Future[None] | None = None  # of a body
        self._failure: ServiceError | ClientGone | None = None  # of reading it
        self._room: asyncio.Future[None] | None = None  # for more of the answer
        self._is_full = self._is_paused = self._is_last = False
        self._num_moved = 0  # bytes of the current piece of a body
        self._deadline = Deadline(self._is_due)
        self._deadline.set(READ_SECONDS)

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # uvloop's is not derived from asyncio's
        if self.state is State.CLOSED:  # it made room for another one meanwhile
            self.abort()
            return
        _limit_unsent(transport)
        self._enter(State.WAITING, READ_SECONDS)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for what arrives; it has room, else reading is paused."""
        return self._connections.scratch[: max(MAX_HEAD_BYTES - self._num_kept, 1)]

    def buffer_updated(self, nbytes: int) -> None:
        if self.state is State.DISCARDING:
            return
        self.received += self._connections.scratch[:nbytes]
        if self._exchange is None:
            self._begin_next()
        elif self.state is State.BODY:
            self._count(nbytes)
            _wake(self._more)
        self._limit_waiting()
        self._regulate()

    def eof_received(self) -> bool:
        """Return whether to stay open.

        A caller that sends no more is taken as gone, as by nginx: whether it would still read can't be known, and its
        call takes slots from others. Operators' requests are answered.
        """
        self._is_last = True
        return self.state in (State.WORKING, State.ANSWERING) and not self._connections.limits.cancels

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and give up the request if nobody else needs its result."""
        if exc is not None:
            _LOG.debug("a client disconnected: %r", exc)
        self._leave()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        _wake(self._room)

    # Called by the exchange.

    async def wait_for_more(self) -> None:
        """Wait for more of the body; raise `ClientGone`, or a `ServiceError` if it is too slow or the server stops."""
        if self._failure is not None:
            raise self._failure
        self._more = self._loop.create_future()
        try:
            await self._more
        finally:
            self._more = None

    def fail(self, failure: ServiceError | ClientGone) -> None:
        """Make reading of the body fail with this, now or at the next wait."""
        self._failure = self._failure or failure
        if self._more is not None and not self._more.done():
            self._more.set_exception(self._failure)

    def use(self, exchange: Exchange) -> None:
        """Continue after received bytes were used, or may be used now."""
        if exchange.is_received and self.state is State.BODY:
            self._enter(State.WORKING)
            self._limit_waiting()  # which could not be told from the body before
        self._regulate()

    def trust(self) -> None:
        if not self.is_trusted:
            self._connections.trust(self)

    async def write(self, exchange: Exchange, part: bytes) -> None:
        """Send a part of an answer, and wait until the client has taken most of what was sent so far."""
        if self._transport is None or self.state is State.CLOSED:
            return
        self._transport.write(part)
        if self._is_full:
            now = self._loop.time()
            exchange.answered_by_seconds = min(exchange.answered_by_seconds, now + MOST_SECONDS)
            self._enter(State.ANSWERING, READ_SECONDS, exchange.answered_by_seconds - now)
            self._room = self._loop.create_future()
            await self._room
            self._enter(State.WORKING)

    # Requests, one after the other.

    def _begin_next(self) -> None:
        if self.received.startswith(b"\r\n") and (empty := _EMPTY_LINES.match(self.received)):  # RFC 9112 2.2
            del self.received[: empty.end()]
            self._num_searched = 0
        if not self.received:
            return
        try:
            end = find_end(self.received, self._num_searched)
            if not end:
                self._num_searched = len(self.received)
                if self.state is State.WAITING:
                    self._enter(State.HEAD, READ_SECONDS)
                return
            head = parse_head(bytes(self.received[:end]))
        except Refused as refused:
            self._refuse(refused)
            return
        del self.received[:end]
        self._num_searched = 0
        self._exchange = exchange = Exchange(self, head)
        if exchange.has_arrived:
            self._enter(State.WORKING)
        else:
            self._num_moved = 0
            self._enter(State.BODY, READ_SECONDS, MOST_SECONDS)
        self._task = self._loop.create_task(self._run(exchange))

    async def _run(self, exchange: Exchange) -> None:
        try:
            await self._connections.app(exchange)
        except ClientGone:
            pass
        except Exception:
            _LOG.exception("a request failed")
        finally:
            self._task = None
        self._end(exchange)

    def _end(self, exchange: Exchange) -> None:
        if self._transport is None or self.state is State.CLOSED:
            return
        if exchange.has_begun and not exchange.has_ended:  # the client must see that the answer is cut off
            self.abort()
            return
        if not exchange.has_begun:
            self._transport.write(
                plain_answer(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; see the server's log")
            )
            exchange.is_last = True
        if not exchange.is_last and not self._is_last and not self._connections.is_stopping:
            self._exchange = None
            self._enter(State.WAITING, self._connections.limits.idle_seconds or READ_SECONDS)
            self._begin_next()
            self._limit_waiting()
            self._regulate()
        else:
            self._close()

    def _limit_waiting(self) -> None:
        """Close at once if too many requests have arrived behind the one that is being answered."""
        begin = self._exchange.num_unread if self._exchange is not None else None
        if begin is None or begin >= len(self.received):
            return
        if num_requests(self.received, begin, _MAX_WAITING) > _MAX_WAITING:
            self.abort()

    def _refuse(self, refused: Refused) -> None:
        assert self._transport is not None, "nothing arrives without a transport"
        self._transport.write(plain_answer(refused.status, str(refused)))
        self._close()

    # The end, and times.

    def stop(self) -> None:
        """Close at once, unless a request has arrived; then when it is answered."""
        if self.state in (State.CONNECTING, State.WAITING, State.HEAD, State.DISCARDING):
            self.abort()
        else:
            self.fail(Unavailable("the server is stopping", advice="send it again, another server may answer"))

    def abort(self) -> None:
        """Close at once, whatever has been sent. Idempotent."""
        self._leave()
        if self._transport is not None:
            self._transport.abort()
        else:
            with contextlib.suppress(OSError):  # the handshake has just ended it
                self._socket.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        """Close once the answer is taken; read what still comes, as closing with unread bytes would lose the answer."""
        if self._transport is None:
            return
        if self.received or self._exchange is None or not self._exchange.is_received:
            self._enter(State.DISCARDING, LINGER_SECONDS)
            self._exchange = None
            self.received.clear()
            self._regulate()
            if self._transport.can_write_eof():
                self._transport.write_eof()
        else:
            self._enter(State.CLOSING, READ_SECONDS)
            self._transport.close()

    def _leave(self) -> None:
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self._connections.remove(self)
        self.received = bytearray()  # not when the garbage collector finds connection and exchange
        self._exchange = None
        self._deadline.cancel()
        _wake(self._room)
        self.fail(ClientGone())
        if self._more is None and self._task is not None and self._connections.limits.cancels:
            self._task.cancel()

    @property
    def _num_kept(self) -> int:
        """Return the bytes that count: including those of a body until its sender is known."""
        exchange = self._exchange
        return len(self.received) + (exchange.num_read if exchange is not None and not exchange.is_known else 0)

    def _regulate(self) -> None:
        """Read only while there is room for what arrives."""
        is_full = self._num_kept >= MAX_HEAD_BYTES
        if is_full is self._is_paused or self._transport is None or self._transport.is_closing():
            return
        self._is_paused = is_full
        if is_full:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _count(self, num_bytes: int) -> None:
        """Allow a body more time for each piece of it that has arrived."""
        self._num_moved += num_bytes
        if self._num_moved >= PIECE_BYTES:
            self._num_moved = 0
            self._deadline.prolong(READ_SECONDS)

    def _enter(self, state: State, seconds: float = math.inf, most_seconds: float = math.inf) -> None:
        """Change the state, which may last for `seconds`, prolonged up to `most_seconds`."""
        if self.state is not State.CLOSED:
            self.state = state
            self._connections.enter(self, state)
            self._deadline.set(seconds, most_seconds)

    def _is_due(self) -> None:
        if self.state is State.BODY:  # whether somebody waits for more of it, or is about to
            self._enter(State.WORKING)  # on an answer that says so
            self.fail(self._too_slow())
        elif self.state is State.DISCARDING and self._transport is not None:
            self._enter(State.CLOSING, READ_SECONDS)
            self._transport.close()
        else:
            self.abort()

    def _too_slow(self) -> BodyTooSlow:
        num_bytes = len(self.received) + (self._exchange.num_read if self._exchange is not None else 0)
        allowed = f"{READ_SECONDS:g} s for each {PIECE_BYTES} bytes, and {MOST_SECONDS:g} s in all"
        return BodyTooSlow(num_bytes, allowed)


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def _limit_unsent(transport: asyncio.BaseTransport) -> None:
    connected = transport.get_extra_info("socket")
    if hasattr(socket, "TCP_NOTSENT_LOWAT") and connected is not None:
        with contextlib.suppress(OSError):  # it is closed, or the system has no such option for it
            # By default the system takes megabytes before they can be sent: all would count as taken by the client.
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 2 * PIECE_BYTES)
