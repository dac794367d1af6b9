"""The open connections of one port: how many there may be, and which makes room for another one."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain, islice
from typing import Protocol

from service.faces.http.exchange import Exchange
from service.faces.http.heads import MAX_HEAD_BYTES

MAX_CONNECTIONS = 64  # of operators

Application = Callable[[Exchange], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """One port's connections: how many, the wait for the next request, and whether a request ends with its client."""

    most: int = MAX_CONNECTIONS
    idle_seconds: float | None = None
    cancels: bool = False


class State(Enum):
    """The state of a connection."""

    CONNECTING = auto()  # with TLS, until the handshake is done
    WAITING = auto()  # for a request
    HEAD = auto()  # is arriving
    BODY = auto()  # is arriving
    WORKING = auto()  # on the answer
    ANSWERING = auto()  # while the client takes it more slowly than it is sent
    DISCARDING = auto()  # what arrives after the last answer
    CLOSING = auto()  # once the client has taken the answer
    CLOSED = auto()


class Connection(Protocol):
    """The parts of a connection that this module uses."""

    state: State
    peer: tuple[str, int]
    is_trusted: bool  # a good key came with one of its requests

    def stop(self) -> None: ...

    def abort(self) -> None: ...


_MAKES_ROOM = (State.CONNECTING, State.WAITING, State.HEAD, State.BODY)


class _Host:
    """The connections of a host that are not trusted: how many, and those that make room, the oldest first."""

    __slots__ = ("making_room", "number")

    def __init__(self) -> None:
        self.number = 0
        self.making_room: dict[Connection, None] = {}


class OpenConnections:
    """The open connections of one port. For its event loop's thread only.

    A good key in a request makes a connection trusted. For a new one, an untrusted one of the host with most of these
    is closed; if there is none, a trusted one that waits for a request. Of several, the longest idle one is.
    """

    def __init__(self, limits: ConnectionLimits, app: Application, refused: Callable[[], None]) -> None:
        """Call `refused` for each connection that is closed because there are too many."""
        self.limits = limits
        self.app = app
        self.is_stopping = False
        self._refused = refused
        # Whatever arrives passes through here: the loop reads nothing else before it has been copied.
        self.scratch = memoryview(bytearray(MAX_HEAD_BYTES))
        self._ended = asyncio.Event()  # any of them
        self._all: set[Connection] = set()
        self._hosts: dict[str, _Host] = {}
        self._hosts_with: defaultdict[int, dict[str, None]] = defaultdict(dict)  # so many connections
        self._trusted_waiting: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self._all)

    def admit(self, connection: Connection) -> bool:
        """Count a connection, instead of another one if needed; return False if none makes room."""
        if len(self._all) >= self.limits.most:
            self._refused()
            other = next(self._making_room(), None)
            if other is None:
                return False
            other.abort()
        self._all.add(connection)
        self._change(connection.peer[0], 1)
        self.enter(connection, connection.state)
        return True

    def enter(self, connection: Connection, state: State) -> None:
        if connection.is_trusted:
            group, makes_room = self._trusted_waiting, state is State.WAITING
        else:
            group, makes_room = self._hosts[connection.peer[0]].making_room, state in _MAKES_ROOM
        if makes_room:
            group.setdefault(connection)
        else:
            group.pop(connection, None)

    def trust(self, connection: Connection) -> None:
        if connection in self._all:
            self._forget(connection)
            connection.is_trusted = True

    def remove(self, connection: Connection) -> None:
        if connection in self._all:
            self._all.remove(connection)
            self._forget(connection)
            self._ended.set()

    def _forget(self, connection: Connection) -> None:
        if connection.is_trusted:
            self._trusted_waiting.pop(connection, None)
        else:
            host = connection.peer[0]
            self._hosts[host].making_room.pop(connection, None)
            self._change(host, -1)

    def _change(self, host: str, change: int) -> None:
        record = self._hosts.setdefault(host, _Host())
        if record.number:
            with_as_many = self._hosts_with[record.number]
            del with_as_many[host]
            if not with_as_many:
                del self._hosts_with[record.number]
        record.number += change
        if record.number:
            self._hosts_with[record.number][host] = None
        else:
            del self._hosts[host]

    def _making_room(self) -> Iterator[Connection]:
        by_number = (self._hosts_with[number] for number in sorted(self._hosts_with, reverse=True))
        for host in islice(chain.from_iterable(by_number), 100):
            yield from self._hosts[host].making_room
        yield from self._trusted_waiting

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
