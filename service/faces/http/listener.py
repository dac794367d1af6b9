"""HTTP on a port: uvicorn in a thread with its own event loop, which answers even if the server's loop is stuck."""

import asyncio
import logging
import socket
import threading
from functools import partial
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from service.faces.http.application import Application
from service.faces.http.bounds import CONNECTION, MAX_CONNECTIONS, READ_SECONDS, Connection, Connections, bounded
from service.process.ports import check_port, port_error

_LOG = logging.getLogger(__name__)

_MAX_HEAD_BYTES = 131_072  # of an incomplete request line and headers; `application` rejects half of it with a status
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
        self._connections = Connections()
        config = uvicorn.Config(
            bounded(app),
            http=partial(_Protocol, self._connections),  # type: ignore[arg-type]  # a factory works, too
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
            timeout_keep_alive=round(READ_SECONDS),
            timeout_graceful_shutdown=_LAST_ANSWER_SECONDS,
            h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
        )
        self._server = _Server(config)
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


class _Server(uvicorn.Server):
    """uvicorn's server, accepting one connection at a time.

    asyncio accepts as many at once as the backlog allows, and when out of descriptors it schedules as many new
    attempts, each of which then schedules as many again (Python 3.11).
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(MAX_CONNECTIONS)


class _Protocol(H11Protocol):
    """uvicorn's protocol with limits. Overrides only methods of `asyncio.Protocol`."""

    def __init__(self, connections: Connections, *, app_state: dict[str, Any], **given: Any) -> None:
        self._connection = Connection(connections)
        self._is_admitted = False
        super().__init__(app_state={**app_state, CONNECTION: self._connection}, **given)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._is_admitted = self._connection.open(transport)
        if self._is_admitted:
            super().connection_made(transport)
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            _LOG.debug("a client disconnected: %r", exc)
        self._connection.leave()
        if self._is_admitted:
            super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]  # as in asyncio
        """Keep the connection of a client that has sent its last request open until it is answered."""
        self._connection.reads_no_more()
        return not self._connection.is_reading


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
