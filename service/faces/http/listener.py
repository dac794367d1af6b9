"""HTTP on a port: accepts connections, and counts each from then on, before any handshake.

For operators on a thread with its own event loop, which answers even if the server's is stuck; for callers on the
server's.
"""

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from service.domain.call import host_of_address
from service.faces.http.connection import LINGER_SECONDS, READ_SECONDS, Connection
from service.faces.http.open_connections import MAX_CONNECTIONS, Application, ConnectionLimits, OpenConnections
from service.process.ports import check_port, port_error

_LOG = logging.getLogger(__name__)

_STOP_SECONDS = 5 * LINGER_SECONDS


class CallListener:
    """Listens once constructed; answers on the running event loop from `start` to `stop`."""

    def __init__(
        self,
        listening: socket.socket,
        app: Application,
        limits: ConnectionLimits,
        tls: ssl.SSLContext | None = None,
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        """Call `refused` for each connection that is closed because there are too many."""
        self.port: int = listening.getsockname()[1]
        self._socket = listening
        self._socket.setblocking(False)
        self._socket.listen(socket.SOMAXCONN)
        self._connections = OpenConnections(limits, app, refused)
        self._tls = tls
        self._connecting: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None

    @property
    def num_connections(self) -> int:
        return len(self._connections)

    def start(self) -> None:
        asyncio.get_running_loop().add_reader(self._socket, self._accept)

    async def stop(self) -> None:
        """Close the port, and stop once the requests that have arrived are answered: after a second at most."""
        if self._socket.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._socket)
        if self._retry is not None:
            self._retry.cancel()
        self.close()
        await self._connections.stop(LINGER_SECONDS)

    def close(self) -> None:
        self._socket.close()

    def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(16):  # in one iteration of the event loop
            try:
                connected, address = self._socket.accept()
            except (BlockingIOError, ConnectionError):  # there is none, or not any more
                return
            except OSError as error:
                _LOG.debug("accepting failed: %r", error)
                loop.remove_reader(self._socket)
                self._retry = loop.call_later(0.1, self.start)  # it is unknown when a descriptor will be free
                return
            connected.setblocking(False)
            connection = Connection(self._connections, connected, (host_of_address(address[0]), address[1]))
            if not self._connections.admit(connection):
                connection.abort()
                connected.close()
                continue
            task = loop.create_task(self._connect(connection, connected))
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: Connection, connected: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        seconds = READ_SECONDS if self._tls is not None else None
        try:
            await loop.connect_accepted_socket(
                lambda: connection, connected, ssl=self._tls, ssl_handshake_timeout=seconds
            )
        except OSError as error:  # `ssl.SSLError` is one: no TLS, another certificate, or too slow
            _LOG.debug("a client did not connect: %r", error)
            connection.abort()


class HttpListener:
    """Listens once constructed; answers from `start` to `stop`."""

    def __init__(self, host: str, port: int, purpose: str, flag: str, app: Application) -> None:
        """Open the port, or raise `PortError`; 0 takes any free one.

        `app` is called on this listener's event loop. `purpose`, and `flag`, the port's setting, are for error
        messages.
        """
        check_port(host, port, purpose, flag)
        try:
            listening = _listening_socket(host, port)
        except OSError as error:
            raise port_error(host, port, purpose, flag, error) from error
        self._listener = CallListener(listening, app, ConnectionLimits())
        self.port = self._listener.port
        self._running: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),), name=purpose, daemon=True)

    @property
    def num_connections(self) -> int:
        return self._listener.num_connections

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Close the port, and block until the requests that have arrived are answered: a second at most."""
        if self._thread.is_alive():
            loop, stopping = self._running.result(_STOP_SECONDS)
            loop.call_soon_threadsafe(stopping.set)
            self._thread.join(_STOP_SECONDS)
        self._listener.close()

    async def _serve(self) -> None:
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(_log_quietly)
        self._listener.start()
        self._running.set_result((loop, stopping))
        await stopping.wait()
        await self._listener.stop()


def _listening_socket(host: str, port: int) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family, backlog=MAX_CONNECTIONS)


def _log_quietly(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log errors that strangers can cause, such as broken connections, only for debugging."""
    _LOG.debug("%s", context["message"], exc_info=context.get("exception"))
