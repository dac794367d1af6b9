"""HTTP on a port, by uvicorn.

For operators in a thread with its own event loop, which answers even if the server's loop is stuck. For callers on the
server's own loop, where no call waits for another thread.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.faces.http.application import Application
from service.faces.http.bounds import (
    CONNECTION,
    MAX_CONNECTIONS,
    READ_SECONDS,
    Connection,
    ConnectionLimits,
    Connections,
    bounded,
)
from service.process.ports import check_port, port_error

_LOG = logging.getLogger(__name__)

_MAX_HEAD_BYTES = 131_072  # of an incomplete request line and headers; `application` rejects half of it with a status
_HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_MOST_WAITING = 1024  # connections, to be accepted
_LAST_ANSWER_SECONDS = 1  # at a stop
_STOP_SECONDS = 5.0

UNIX = "unix:"  # begins the address of a socket in the file system


class HttpListener:
    """Listens once constructed; answers from `start` to `stop`."""

    def __init__(self, host: str, port: int, purpose: str, flag: str, app: Application) -> None:
        """Open the port; 0 takes any free one. `host` may be unix: and a path instead, for a socket in the file system.

        `app` is an ASGI application, called on this listener's event loop.

        `purpose`, and `flag`, the port's setting, are for error messages.

        Raises:
            PortError: the port can't be listened on.
        """
        if not host.startswith(UNIX):
            check_port(host, port, purpose, flag)
        try:
            self._socket = _listening_socket(host, port)
        except OSError as error:
            raise port_error(host, port, purpose, flag, error) from error
        self.port: int = 0 if host.startswith(UNIX) else self._socket.getsockname()[1]
        self._connections = Connections(ConnectionLimits())
        self._server = _server_of(app, partial(_H11, self._connections), self._connections.limits)
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),), name=purpose, daemon=True)

    @property
    def num_connections(self) -> int:
        """Return how many connections are open."""
        return len(self._connections)

    def start(self) -> None:
        """Start answering."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port, and stop once the requests that have arrived are answered: after a second at most.

        Blocks until then.
        """
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)
        self._socket.close()

    async def _serve(self) -> None:
        asyncio.get_running_loop().set_exception_handler(_log_quietly)
        await self._server.serve(sockets=[self._socket])


class CallListener:
    """Listens once constructed; answers on the running event loop from `start` to `stop`."""

    def __init__(
        self, listening: socket.socket, app: Application, limits: ConnectionLimits, tls: ssl.SSLContext | None = None
    ) -> None:
        """Take a bound socket; with `tls`, speak HTTPS only."""
        self._socket = listening
        self.port: int = listening.getsockname()[1]
        self._connections = Connections(limits)
        self._server = _server_of(app, partial(_HttpTools, self._connections), limits, tls)
        self._serving: asyncio.Task[None] | None = None

    @property
    def num_connections(self) -> int:
        """Return how many connections are open."""
        return len(self._connections)

    def start(self) -> None:
        """Start answering."""
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))

    async def stop(self) -> None:
        """Close the port, and stop once the requests that have arrived are answered: after a second at most."""
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving
        self._socket.close()


def _server_of(
    app: Application, protocol: Any, limits: ConnectionLimits, tls: ssl.SSLContext | None = None
) -> "_Server":
    config = uvicorn.Config(
        bounded(app),
        http=protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level=logging.CRITICAL,  # `app` logs its own errors; all others are caused by strangers' input
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=[("Server", "dragoman")],
        backlog=1,
        timeout_keep_alive=round(limits.idle_seconds or READ_SECONDS),
        timeout_graceful_shutdown=_LAST_ANSWER_SECONDS,
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
    )
    return _Server(config, limits.most, tls)


class _Server(uvicorn.Server):
    """uvicorn's server, accepting one connection at a time, with signals left to the process.

    asyncio accepts as many at once as the backlog allows, and when out of descriptors it schedules as many new
    attempts, each of which then schedules as many again (Python 3.11).
    """

    def __init__(self, config: uvicorn.Config, most: int, tls: ssl.SSLContext | None) -> None:
        super().__init__(config)
        self._most = most
        self._tls = tls

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.ssl = self._tls
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(min(self._most, _MOST_WAITING))


class _Limited:
    """A protocol of uvicorn's with limits. Overrides only methods of `asyncio.Protocol`."""

    def __init__(self, connections: Connections, *, app_state: dict[str, Any], **given: Any) -> None:
        self._connection = Connection(connections)
        self._is_admitted = False
        super().__init__(app_state={**app_state, CONNECTION: self._connection}, **given)  # type: ignore[call-arg]

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._is_admitted = self._connection.open(transport)
        if self._is_admitted:
            super().connection_made(transport)  # type: ignore[misc]
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            _LOG.debug("a client disconnected: %r", exc)
        self._connection.leave()
        if self._is_admitted:
            super().connection_lost(exc)  # type: ignore[misc]

    def pause_writing(self) -> None:
        self._connection.fills(is_full=True)
        super().pause_writing()  # type: ignore[misc]

    def resume_writing(self) -> None:
        self._connection.fills(is_full=False)
        super().resume_writing()  # type: ignore[misc]


class _H11(_Limited, H11Protocol):  # type: ignore[misc]
    def eof_received(self) -> bool:  # type: ignore[override]  # as in asyncio
        """Keep the connection of a client that has sent its last request open until it is answered."""
        self._connection.reads_no_more()
        return not self._connection.is_reading


class _HttpTools(_Limited, HttpToolsProtocol):  # type: ignore[misc]
    """llhttp, in C: a tenth of h11's time. Unlike h11 it sets no limit to a request's head.

    A client that sends no more is gone, as for nginx: whether it would still read can't be known, and its call takes
    slots from others.
    """

    def __init__(self, connections: Connections, **given: Any) -> None:
        super().__init__(connections, **given)
        self._head_bytes = 0

    def data_received(self, data: bytes) -> None:
        if self._connection.is_reading:
            self._connection.receives()
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > _MAX_HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(_HEAD_TOO_LARGE)
            self.transport.close()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._head_bytes = 0

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)


def _listening_socket(host: str, port: int) -> socket.socket:
    if host.startswith(UNIX):
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(host.removeprefix(UNIX))
        listening.listen(MAX_CONNECTIONS)
        return listening
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family, backlog=MAX_CONNECTIONS)


def _log_quietly(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Keep errors that strangers can cause out of the log: broken connections, and too many of them."""
    _LOG.debug("%s", context["message"], exc_info=context.get("exception"))
