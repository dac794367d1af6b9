"""Answers /metrics, /readyz and /livez over HTTP, from a thread of its own."""

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from service.lifecycle import Phase
from service.metrics import Metrics
from service.ports import check_port, port_error

_PLAIN = "text/plain; charset=utf-8"


class MonitoringServer:
    """Listens from construction on; answers from `start` to `stop`."""

    def __init__(self, host: str, port: int, metrics: Metrics, phase: Callable[[], Phase]) -> None:
        """Open the port; 0 takes any free one. `phase` is called from other threads.

        Raises:
            PortError: the port can't be listened on.
        """
        check_port(host, port, "metrics", "--metrics-port")
        try:
            self._http = _HttpServer((host, port), metrics, phase)
        except OSError as error:
            raise port_error(host, port, "metrics", "--metrics-port", error) from error
        self._thread = threading.Thread(target=self._http.serve_forever, name="monitoring", daemon=True)

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
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], metrics: Metrics, phase: Callable[[], Phase]) -> None:
        self.metrics = metrics
        self.phase = phase
        super().__init__(address, _RequestHandler)


class _RequestHandler(BaseHTTPRequestHandler):
    server: _HttpServer
    server_version = "dragoman"
    sys_version = ""
    timeout = 10.0  # seconds that an idle or slow client may hold a thread

    def do_GET(self) -> None:
        status, content_type, body = self._answer()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815

    def _answer(self) -> tuple[HTTPStatus, str, bytes]:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            body, content_type = self.server.metrics.render(self.headers.get("Accept", ""))
            return HTTPStatus.OK, content_type, body
        phase = self.server.phase()
        fine = {"/readyz": phase.is_ready, "/livez": phase.is_alive}.get(path)
        if fine is None:
            return HTTPStatus.NOT_FOUND, _PLAIN, b"not here; try /metrics, /readyz or /livez\n"
        status = HTTPStatus.OK if fine else HTTPStatus.SERVICE_UNAVAILABLE
        return status, _PLAIN, f"{phase.value}\n".encode()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Scrapes are not worth a line in the log."""
