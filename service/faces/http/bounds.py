"""Limits on a port's connections, and on the time each takes to send its request and to receive the answer.

Connections still sending their request are closed to make room for new ones, so idle connections can't block others.
"""

import asyncio
from dataclasses import dataclass

from service.faces.http.application import Application, Message, Receive, Scope, Send

MAX_CONNECTIONS = 64  # of operators
READ_SECONDS = 10.0  # to send a request, since connecting or its first byte; and to receive the answer

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
        self._task: asyncio.Task[object] | None = None
        self._is_last = False
        self._is_idle = self._has_answered = False
        self._has_room = asyncio.Event()  # to write more
        self._has_room.set()

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
            idle_seconds = self._connections.limits.idle_seconds if self._has_answered else None
            self._within(idle_seconds or READ_SECONDS)

    def receives(self) -> None:
        """Receive a part of a request."""
        if self._is_idle:
            self._is_idle = False
            self._within(READ_SECONDS)

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

    async def sent(self) -> None:
        """Wait until the client has read most of the answer."""
        await self._has_room.wait()

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
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if seconds is not None:
            self._deadline = asyncio.get_running_loop().call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        transport = self._transport
        self.leave()
        if transport is not None:
            transport.abort()


def bounded(app: Application) -> Application:
    """Return an ASGI application that reports a request's progress to its `Connection`."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        connection: Connection = scope["state"][CONNECTION]
        has_begun = False

        async def receive_all() -> Message:
            message = await receive()
            if not has_begun and message["type"] == "http.request" and not message.get("more_body", False):
                connection.works()
            return message

        async def send_in_time(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            connection.sends()
            await send(message)
            await connection.sent()
            if message.get("more_body", message["type"] == "http.response.start"):
                connection.works()  # on the next part

        try:
            await app(scope, receive_all, send_in_time)
        finally:
            connection.reads()

    return handle
