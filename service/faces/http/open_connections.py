"""The open connections of one port: how many there may be, and which makes room for another one."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from service.faces.http.exchange import Exchange
from service.faces.http.heads import MAX_HEAD_BYTES

if TYPE_CHECKING:
    from service.faces.http.connection import Connection

MAX_CONNECTIONS = 64  # of operators

Application = Callable[[Exchange], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Of one port: how many connections may be open, how long each may wait for its next request if not READ_SECONDS,
    and whether a request is given up when its client is gone."""

    most: int = MAX_CONNECTIONS
    idle_seconds: float | None = None
    cancels: bool = False


class State(Enum):
    """What a connection is doing."""

    CONNECTING = auto()  # with TLS, until the handshake is done
    WAITING = auto()  # for a request
    HEAD = auto()  # is arriving
    BODY = auto()  # is arriving
    WORKING = auto()  # on the answer
    ANSWERING = auto()  # while the client takes it more slowly than it is sent
    DISCARDING = auto()  # what arrives after the last answer
    CLOSING = auto()  # once the client has taken the answer
    CLOSED = auto()


_MAKES_ROOM = (State.CONNECTING, State.WAITING, State.HEAD, State.BODY)


class OpenConnections:
    """The open connections of one port. For its event loop's thread only."""

    def __init__(self, limits: ConnectionLimits, app: Application) -> None:
        self.limits = limits
        self.app = app
        self.is_stopping = False
        # Whatever arrives passes through here: the loop reads nothing else before it has been copied.
        self.scratch = memoryview(bytearray(MAX_HEAD_BYTES))
        self._ended = asyncio.Event()  # any of them
        self._all: dict[Connection, None] = {}  # first the one that has waited longest since its last request

    def __len__(self) -> int:
        return len(self._all)

    def admit(self, connection: "Connection") -> bool:
        """Count a connection, instead of another one if needed; return False if all others are being answered."""
        if len(self._all) >= self.limits.most:
            other = next((each for each in self._all if each.state in _MAKES_ROOM), None)
            if other is None:
                return False
            other.abort()
        self._all[connection] = None
        return True

    def move_to_end(self, connection: "Connection") -> None:
        """Make a connection the last to be replaced."""
        self._all[connection] = self._all.pop(connection)

    def remove(self, connection: "Connection") -> None:
        """Forget a connection. Idempotent."""
        self._all.pop(connection, None)
        self._ended.set()

    async def stop(self, seconds: float) -> None:
        """Close all once the requests that have arrived are answered, but not later than in so many seconds."""
        self.is_stopping = True
        for connection in list(self._all):
            connection.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._all:
                    self._ended.clear()
                    await self._ended.wait()
        for connection in list(self._all):
            connection.abort()
