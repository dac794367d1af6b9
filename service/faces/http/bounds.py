"""Limits on a port's connections, and on the time each takes to send its request and to receive the answer.

A request's head has a fixed time. A body and an answer have as much, and more for what has been moved, so that large
ones pass over slow networks, and who hardly moves anything is given up as early as who moves nothing.

Connections still sending their request are closed to make room for new ones, so idle connections can't block others.
"""

import asyncio
import contextlib
import socket
from dataclasses import dataclass

from service.faces.http.application import Application, Message, Receive, Scope, Send
from service.faces.http.refusals import BodyTooSlow

MAX_CONNECTIONS = 64  # of operators
READ_SECONDS = 10.0  # to send a request's head, since connecting or its first byte; and the least for all else
LEAST_BYTES_PER_SECOND = 32 * 2**10  # of a body, and of an answer
MOST_SECONDS = 600.0  # for either, whatever its size

_PIECE_BYTES = 64 * 2**10  # of an answer, that are waited for together
# That the system takes before they can be sent: by default megabytes, all of which would count as read.
_UNSENT_BYTES = 128 * 2**10

CONNECTION = "dragoman.connection"  # key of the `Connection` in an ASGI scope's state


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Of one port: how many connections may be open, how long each may wait for its next request if not READ_SECONDS,
    and whether a request is given up when its client is gone."""

    most: int = MAX_CONNECTIONS
    idle_seconds: float | None = None
    cancels: bool = False


class Connections:
    """The open connections of one port. For its event loop's thread only."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.all: set[Connection] = set()
        self.reading: dict[Connection, None] = {}  # those waiting for a request, oldest first

    def __len__(self) -> int:
        return len(self.all)


class Connection:
    """One connection: waits for a request, processes it, sends the answer, and waits again."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._allowed_seconds = self._due_seconds = 0.0  # the time without what is moved, and its end
        self._num_moved = 0
        self._reader: asyncio.Task[object] | None = None  # waits for more of a body
        self._is_late = self._has_body = False
        self._task: asyncio.Task[object] | None = None
        self._is_last = False
        self._is_idle = self._has_answered = False
        self._has_room = asyncio.Event()  # to write more
        self._has_room.set()

    @property
    def is_open(self) -> bool:
        """Return whether the connection is open."""
        return self._transport is not None

    @property
    def is_reading(self) -> bool:
        """Return whether no complete request is waiting for its answer."""
        return self in self._connections.reading

    def open(self, transport: asyncio.Transport) -> bool:
        """Begin, replacing another connection if needed; return False if all others are being answered."""
        if len(self._connections.all) >= self._connections.limits.most:
            if not self._connections.reading:
                return False
            next(iter(self._connections.reading))._give_up()
        self._transport = transport
        _limit_unsent(transport)
        self._connections.all.add(self)
        self.reads()
        return True

    def reads(self) -> None:
        """Wait for the first byte of a request."""
        self._task = None
        if self._transport is not None:
            if self._is_last:
                self._transport.close()
            self._connections.reading[self] = None
            self._is_idle = self._has_answered
            self._is_late = self._has_body = False
            idle_seconds = self._connections.limits.idle_seconds if self._has_answered else None
            self._within(idle_seconds or READ_SECONDS)

    def receives(self) -> None:
        """Receive a part of a request."""
        if self._is_idle:
            self._is_idle = False
            self._within(READ_SECONDS)

    async def body(self, receive: Receive) -> Message:
        """Receive the next part of a request's body.

        Raises:
            BodyTooSlow: it takes too long.
        """
        self._reader = task = asyncio.current_task()
        try:
            message = await receive()
        except asyncio.CancelledError:
            if task is None or not self._is_late or task.uncancel():
                raise
            raise self._too_slow() from None
        finally:
            self._reader = None
        if message["type"] == "http.request":
            if not message.get("more_body", False):
                self.works()
            else:
                if not self._has_body:
                    self._has_body = True
                    self._within(READ_SECONDS)
                self._num_moved += len(message.get("body", b""))
        return message

    def works(self) -> None:
        """Handle a request that has arrived completely; handling it has deadlines of its own."""
        if self._transport is not None:
            self._connections.reading.pop(self, None)
            self._task = asyncio.current_task() if self._connections.limits.cancels else None
            self._within(None)

    def sends(self) -> None:
        """Send the answer, or a part of it."""
        self._has_answered = True
        if self._transport is not None:
            self._connections.reading.pop(self, None)
            self._within(READ_SECONDS)

    def fills(self, *, is_full: bool) -> None:
        """Note whether the client reads the answer more slowly than it is sent."""
        if is_full:
            self._has_room.clear()
        else:
            self._has_room.set()

    async def sent(self, num_bytes: int = 0) -> None:
        """Wait until the client has read most of these bytes, and of those before."""
        await self._has_room.wait()
        self._num_moved += num_bytes

    def reads_no_more(self) -> None:
        """Close once the requests that have arrived are answered; the client sends no more."""
        self._is_last = True

    def leave(self) -> None:
        """Forget the connection, which is closed."""
        self._within(None)
        self._has_room.set()
        if self._task is not None:
            self._task.cancel()
        self._transport = None
        self._connections.all.discard(self)
        self._connections.reading.pop(self, None)

    def _within(self, seconds: float | None) -> None:
        """Give up after so many seconds, and those that the bytes moved until then may take."""
        self._num_moved = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if seconds is not None:
            loop = asyncio.get_running_loop()
            self._allowed_seconds, self._due_seconds = seconds, loop.time() + seconds
            self._deadline = loop.call_at(self._due_seconds, self._is_due)

    def _is_due(self) -> None:
        loop = asyncio.get_running_loop()
        more_seconds = min(self._num_moved / LEAST_BYTES_PER_SECOND, MOST_SECONDS - self._allowed_seconds)
        due_seconds = self._due_seconds + more_seconds
        if self._num_moved and due_seconds > loop.time():
            self._deadline = loop.call_at(due_seconds, self._is_due)
        elif self._reader is not None and not self._is_late:
            self._is_late = True
            self._deadline = loop.call_later(READ_SECONDS, self._is_due)  # to tell the client
            self._reader.cancel()
        else:
            self._give_up()

    def _too_slow(self) -> BodyTooSlow:
        began_seconds = self._due_seconds - self._allowed_seconds
        allowed = (
            f"{READ_SECONDS:g} s and 1 s more for each {LEAST_BYTES_PER_SECOND} bytes, up to {MOST_SECONDS:g} s in all"
        )
        return BodyTooSlow(self._num_moved, asyncio.get_running_loop().time() - began_seconds, allowed)

    def _give_up(self) -> None:
        transport = self._transport
        self.leave()
        if transport is not None:
            transport.abort()


def _limit_unsent(transport: asyncio.Transport) -> None:
    connected = transport.get_extra_info("socket")
    if hasattr(socket, "TCP_NOTSENT_LOWAT") and connected is not None and connected.family != socket.AF_UNIX:
        with contextlib.suppress(OSError):  # it is closed, or the system has no such option for it
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)


def bounded(app: Application) -> Application:
    """Return an ASGI application that reports a request's progress to its `Connection`."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        connection: Connection = scope["state"][CONNECTION]
        has_begun = False

        async def receive_in_time() -> Message:
            return await (receive() if has_begun else connection.body(receive))

        async def send_in_time(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            connection.sends()
            body: bytes = message.get("body", b"")
            if len(body) > _PIECE_BYTES:
                for at in range(0, len(body) - _PIECE_BYTES, _PIECE_BYTES):
                    await send({**message, "body": body[at : at + _PIECE_BYTES], "more_body": True})
                    await connection.sent(_PIECE_BYTES)
                    if not connection.is_open:
                        return
                message = {**message, "body": body[at + _PIECE_BYTES :]}
            await send(message)
            await connection.sent()
            if message.get("more_body", message["type"] == "http.response.start"):
                connection.works()  # on the next part

        try:
            await app(scope, receive_in_time, send_in_time)
        finally:
            connection.reads()

    return handle
