"""A small HTTP listener in threads of its own: requests in, answers out; what they mean is others' business."""

import contextlib
import errno
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from service.process.ports import check_port, port_error

_LOG = logging.getLogger(__name__)

MAX_CONNECTIONS = 64  # each has a thread
READ_SECONDS = 10.0  # that a client may take to send its request

_STOP_SECONDS = 0.1  # that a stop may take to be noticed
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What was asked: `path` has no query, the names of `headers` are in lower case, and a HEAD is a GET."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What to answer; the length is told by itself."""

    status: HTTPStatus
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpListener:
    """Listens from construction on; answers from `start` to `stop`."""

    def __init__(
        self,
        host: str,
        port: int,
        purpose: str,
        flag: str,
        answer: Callable[[HttpRequest], HttpAnswer],
        max_body_bytes: int = 0,
    ) -> None:
        """Open the port; 0 takes any free one. `answer` is called from other threads, of which each request has one.

        `purpose` and `flag`, the setting of the port, are for messages. Larger bodies than `max_body_bytes` are
        refused.

        Raises:
            PortError: the port can't be listened on.
        """
        check_port(host, port, purpose, flag)
        try:
            self._http = _HttpServer(host, port, partial(_RequestHandler, answer, max_body_bytes))
        except OSError as error:
            raise port_error(host, port, purpose, flag, error) from error
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(_STOP_SECONDS,), name=purpose, daemon=True
        )

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._http.server_port

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering and close the port."""
        if self._thread.is_alive():
            self._http.shutdown()
        self._http.server_close()


class _HttpServer(ThreadingHTTPServer):
    """Of its connections, those that still send their request have to make room for new ones: so whoever opens many and
    says little keeps nobody out."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = MAX_CONNECTIONS

    def __init__(self, host: str, port: int, handler: Any) -> None:
        self._lock = threading.Lock()
        self._reading: dict[socket.socket, float] = {}  # since when, the oldest first
        self._answering: set[socket.socket] = set()
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        super().__init__((host, port), handler)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer's asks the name service who we are, which may take its time
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in _OUT_OF_RESOURCES:
                time.sleep(_STOP_SECONDS)  # the client goes on waiting, and we would go on asking
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Called with each new connection, and by one thread only."""
        with self._lock:
            is_full = len(self._reading) + len(self._answering) >= MAX_CONNECTIONS
            if is_full and self._reading:
                self._give_up(next(iter(self._reading)))
                is_full = False
            if not is_full:
                self._reading[request] = time.monotonic()
        if is_full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Called several times a second."""
        late_seconds = time.monotonic() - READ_SECONDS
        with self._lock:
            for connection in [each for each, since_seconds in self._reading.items() if since_seconds < late_seconds]:
                self._give_up(connection)

    def has_read(self, connection: socket.socket) -> None:
        """A whole request has arrived."""
        with self._lock:
            if self._reading.pop(connection, None) is not None:
                self._answering.add(connection)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._reading.pop(request, None)
            self._answering.discard(request)
        super().shutdown_request(request)

    def _give_up(self, connection: socket.socket) -> None:
        """Have its thread, which waits for bytes, find that there won't be any."""
        del self._reading[connection]
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is not worth its traceback on standard error."""
        _LOG.debug("a client went away", exc_info=True)


class _RequestHandler(BaseHTTPRequestHandler):
    server_version = "dragoman"
    sys_version = ""
    timeout = READ_SECONDS  # of silence, or for taking the answer
    server: _HttpServer

    def __init__(self, answer: Callable[[HttpRequest], HttpAnswer], max_body_bytes: int, *connection: Any) -> None:
        self._answer = answer
        self._max_body_bytes = max_body_bytes
        super().__init__(*connection)

    def do_GET(self) -> None:
        self._send(self._answered("GET", b""))

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        size = self.headers.get("Content-Length", "")
        if not (size.isascii() and size.isdigit()):
            return self._refuse(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing; say how long the body is")
        if len(size) > 12 or int(size) > self._max_body_bytes:
            return self._refuse(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has {size:.20} bytes; allowed is {self._max_body_bytes}"
            )
        body = self.rfile.read(int(size))
        if len(body) == int(size):  # else the client went away
            self._send(self._answered("POST", body))
        return None

    def _answered(self, method: str, body: bytes) -> HttpAnswer:
        self.server.has_read(self.connection)
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            return self._answer(HttpRequest(method, self.path.partition("?")[0], headers, body))
        except Exception:
            _LOG.exception("%s %s failed", method, self.path)
            return HttpAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, PLAIN, b"internal error; the server's log says more\n")

    def _send(self, answer: HttpAnswer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._send(HttpAnswer(status, PLAIN, f"{message}\n".encode()))
        with contextlib.suppress(OSError):  # closing on unread bytes would take the answer back
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(1.0)
            while self.connection.recv(65_536):
                pass

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Scrapes are not worth a line in the log."""
