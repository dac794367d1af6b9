"""A real front on an event loop of this process, over servers that can disappear and come back."""

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from service.config.server_config import ServerConfig
from service.faces.front import metrics, monitoring, operators
from service.faces.front.worker import WorkerEndpoint
from service.server.front import FrontPorts, run_front
from tests.servers import TIMEOUT_SECONDS, InProcessServer, LoopThread, http_get


class Relay:
    """A Unix socket in front of a port of loopback."""

    def __init__(self, loop: LoopThread, path: Path, port: int) -> None:
        self.path = path
        self._port = port
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = loop.run(asyncio.start_unix_server(self._connect, path))

    def close(self) -> None:
        """Refuse connections, and end those that are open."""
        self._loop.run(self._close())

    async def _close(self) -> None:
        self._server.close()
        self.path.unlink(missing_ok=True)
        for task in self._tasks:
            task.cancel()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        other: asyncio.StreamWriter | None = None
        try:
            from_server, other = await asyncio.open_connection("127.0.0.1", self._port)
            await asyncio.gather(self._copy(reader, other), self._copy(from_server, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            for each in (writer, other):
                if each is not None:
                    each.transport.abort()

    @staticmethod
    async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            sink.write(data)
        if sink.can_write_eof():
            sink.write_eof()


class Front:
    """A front with free ports over workers that are servers of this process."""

    def __init__(self, loop: LoopThread, folder: Path, config: ServerConfig, num_workers: int) -> None:
        self._loop = loop
        self._relays: dict[int, list[Relay]] = {}
        self.workers = [
            WorkerEndpoint(number, folder / f"worker-{number}.metrics", folder / f"worker-{number}.admin")
            for number in range(num_workers)
        ]
        self._stop = asyncio.Event()
        opened = loop.run(self._start(config, self.workers))
        self.metrics_port, self.admin_port = opened.metrics, opened.admin

    def appears(self, number: int, server: InProcessServer) -> None:
        """Let the server be worker `number`, in place of any before it."""
        self.disappears(number)
        worker, of = self.workers[number], server.server
        assert worker.admin is not None
        sockets = ((worker.metrics, of.metrics_port), (worker.admin, of.admin_port))
        self._relays[number] = [Relay(self._loop, path, port) for path, port in sockets]

    def disappears(self, number: int) -> None:
        """Let the worker end, as seen from the front."""
        for relay in self._relays.pop(number, ()):
            relay.close()

    def get(self, path: str, **headers: str) -> tuple[int, str, str]:
        """Request a path of the monitoring port; return status, content type and body of the response."""
        return http_get(f"http://127.0.0.1:{self.metrics_port}{path}", **headers)

    def close(self) -> None:
        for number in list(self._relays):
            self.disappears(number)
        self._loop.loop.call_soon_threadsafe(self._stop.set)
        self._loop.run(self._ended())

    async def _start(self, config: ServerConfig, workers: Sequence[WorkerEndpoint]) -> FrontPorts:
        opened: asyncio.Future[FrontPorts] = asyncio.get_running_loop().create_future()
        self._running = asyncio.ensure_future(run_front(config, workers, self._stop, opened.set_result))
        self._running.add_done_callback(lambda _: opened.cancel())  # if it could not open its ports
        return await opened

    async def _ended(self) -> None:
        await self._running


@contextlib.contextmanager
def front(loop: LoopThread, num_workers: int, config: ServerConfig) -> Iterator[Front]:
    with short_folder() as folder, pytest.MonkeyPatch.context() as patch:
        for module in (metrics, operators):
            patch.setattr(module, "READ_SECONDS", TIMEOUT_SECONDS)  # this machine may be busy
        patch.setattr(monitoring, "PROBE_SECONDS", TIMEOUT_SECONDS)
        running = Front(loop, folder, config, num_workers)
        try:
            yield running
        finally:
            running.close()


@contextlib.contextmanager
def short_folder() -> Iterator[Path]:
    """Make a folder for sockets, whose paths may have 107 bytes, fewer than those of pytest's folders."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
