"""`dragoman serve --workers 2` as a process and its workers: they start, serve, are replaced, and end as one server."""

import contextlib
import http.client
import re
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from dragoman_client import Client
from tests.patience import patient
from tests.servers import TIMEOUT_SECONDS, ServerProcess, distinct_texts, dragoman, eventually, free_port, samples

Start = Callable[..., ServerProcess]


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A folder for temporary files with a short name, as those of sockets may have 107 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def start(tiny_models: Path, sockets: Path) -> Iterator[Start]:
    processes: list[ServerProcess] = []
    variables = {"TMPDIR": str(sockets)}

    def run(*arguments: str) -> ServerProcess:
        flags = ("--workers", "2", "--max-slots", "8", *arguments)
        processes.append(ServerProcess(tiny_models, *flags, variables=variables))
        return processes[-1]

    yield run
    for process in processes:
        children = psutil.Process(process.process.pid).children() if process.process.poll() is None else []
        process.kill()
        psutil.wait_procs(children, patient(30))


def workers_of(process: ServerProcess) -> list[psutil.Process]:
    return psutil.Process(process.process.pid).children()


def listening(process: ServerProcess) -> set[int]:
    """Return the pids of the workers that listen on the gRPC port."""
    found = set()
    for worker in workers_of(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            for each in worker.net_connections("tcp"):
                if each.status == psutil.CONN_LISTEN and each.laddr[1] == process.port:
                    found.add(worker.pid)
    return found


class ToSocket(http.client.HTTPConnection):
    """HTTP to a socket in the file system."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_SECONDS)
        self.sock.connect(str(self._path))


def in_flight(sockets: Path) -> float:
    """Return how many calls all workers are answering."""
    total = 0.0
    for path in sockets.glob("*/worker-*.metrics"):
        with contextlib.closing(ToSocket(path)) as connection:
            connection.request("GET", "/metrics")
            total += sum(samples(connection.getresponse().read().decode(), "dragoman_inflight_requests"))
    return total


def call_each(process: ServerProcess) -> None:
    """Make calls over so many connections that each worker gets some."""
    for _ in range(16):
        with Client(process.address) as client:
            assert len(client.translate(distinct_texts(1), "en", "de")) == 1


def test_two_workers_serve_on_one_port_and_end_as_one_server(start: Start) -> None:
    process = start()
    workers = workers_of(process)
    assert len(listening(process)) == 2
    call_each(process)
    process.signal(signal.SIGTERM)
    assert process.wait() == (0, "", "")
    assert not [worker for worker in workers if worker.is_running()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_every_accepted_call_is_answered_though_all_processes_are_signalled(
    start: Start, sockets: Path, number: int
) -> None:
    process = start("--max-slots", "2", "--grace-seconds", "600")
    with ExitStack() as stack, ThreadPoolExecutor(16) as pool:
        clients = [stack.enter_context(Client(process.address)) for _ in range(16)]
        for client in clients:
            client.translate(distinct_texts(1), "en", "de")  # connects
        texts = [distinct_texts(2) for _ in clients]
        calls = [pool.submit(client.translate, each, "en", "de") for client, each in zip(clients, texts, strict=True)]
        eventually(lambda: in_flight(sockets) == 16.0)
        for each in [*workers_of(process), psutil.Process(process.process.pid)]:
            each.send_signal(number)
        assert [len(call.result(timeout=patient(60))) for call in calls] == [2] * 16
    assert process.wait() == (0, "", "")


def test_a_worker_that_dies_is_replaced_and_the_others_serve_on(start: Start) -> None:
    process = start()
    killed = workers_of(process)[0]
    killed.kill()
    eventually(lambda: killed.pid not in listening(process))
    call_each(process)
    eventually(lambda: len(listening(process)) == 2)
    call_each(process)
    process.signal(signal.SIGTERM)
    code, _, errors = process.wait()
    assert code == 0
    (line,) = errors.splitlines()
    assert re.search(r"(worker-\d) was ended by signal 9; \1 is restarted in 0\.5 s process=supervisor$", line)


def test_workers_without_a_supervisor_answer_their_calls_and_end(start: Start) -> None:
    process = start()
    workers = workers_of(process)
    process.signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(workers, patient(30))
    assert not alive
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", process.port))
    assert "the supervisor has ended" in process.wait()[2]


def test_a_second_signal_ends_all_at_once(start: Start) -> None:
    process = start("--drain-delay-seconds", "600")
    workers = workers_of(process)
    process.signal(signal.SIGTERM)
    process.signal(signal.SIGINT)
    code, _, errors = process.wait()
    assert code in (128 + signal.SIGINT, 128 + signal.SIGTERM)  # the kernel may deliver them in either order
    assert "exiting immediately" in errors
    assert not [worker for worker in workers if worker.is_running()]


def refused(*arguments: Any) -> tuple[int, str]:
    run = dragoman("serve", "--workers", "2", "--metrics-port", str(free_port()), "--admin-port", "-1", *arguments)
    assert run.stdout == b""
    (line,) = run.stderr.decode().splitlines()
    return run.returncode, line


def test_what_can_not_be_served_is_told_once(tmp_path: Path, tiny_models: Path) -> None:
    code, line = refused("--port", str(free_port()), "--models", str(tmp_path))
    assert code == 78
    assert line.startswith(f"dragoman: {tmp_path}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, line = refused("--port", str(port), "--models", str(tiny_models))
    assert code == 71
    assert line.startswith(f"dragoman: can't listen on 127.0.0.1:{port} for gRPC: Address already in use.")


def test_a_second_server_does_not_share_the_port(start: Start, tiny_models: Path) -> None:
    process = start()
    code, line = refused("--port", str(process.port), "--models", str(tiny_models))
    assert code == 71
    assert "Address already in use" in line


def test_sockets_are_in_a_folder_of_the_user_and_removed(start: Start, sockets: Path) -> None:
    process = start()
    (folder,) = sockets.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in folder.iterdir()} >= {"worker-0.metrics", "worker-1.admin"}
    process.signal(signal.SIGTERM)
    assert process.wait()[0] == 0
    assert not list(sockets.iterdir())
