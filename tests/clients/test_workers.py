"""`dragoman serve --workers 2` as a process and its workers: they start, serve, are replaced, and end as one server."""

import collections
import contextlib
import http.client
import json
import re
import shutil
import signal
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest

from dragoman_client import Client
from service.faces.grpc.pb.dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as pb_grpc
from service.process.ports import PortError, check_port
from tests.grpc_calls import refused as refused_call
from tests.grpc_calls import request_of, stub_of
from tests.patience import patient
from tests.servers import TIMEOUT_SECONDS, ServerProcess, distinct_texts, dragoman, eventually, free_port, samples

Start = Callable[..., ServerProcess]


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


def served(sockets: Path) -> list[list[str]]:
    """Return the names of the models that each worker serves; none of one that does not answer."""
    names = []
    for path in sockets.glob("*/worker-*.admin"):
        with contextlib.closing(ToSocket(path)) as connection, contextlib.suppress(OSError):
            connection.request("GET", "/status.json")
            names.append([model["name"] for model in json.loads(connection.getresponse().read())["models"]])
    return names


def call_each(process: ServerProcess) -> None:
    """Make calls over so many connections that each worker gets some."""
    for _ in range(16):
        with Client(process.address) as client:
            assert len(client.translate(distinct_texts(1), "en", "de")) == 1


def test_two_workers_serve_on_one_port_and_end_as_one_server(start: Start, sockets: Path, tiny_models: Path) -> None:
    """Their sockets are in a folder of the user, which goes with them, and no other server shares their port."""
    process = start()
    workers = workers_of(process)
    assert len(listening(process)) == 2
    call_each(process)
    (folder,) = sockets.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in folder.iterdir()} >= {"worker-0.metrics", "worker-1.admin"}
    code, line = refused("--port", str(process.port), "--models", str(tiny_models))
    assert code == 71
    assert "Address already in use" in line
    process.signal(signal.SIGTERM)
    assert process.wait() == (0, "", "")
    assert not [worker for worker in workers if worker.is_running()]
    assert not list(sockets.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full)])
def test_every_accepted_call_is_answered_though_all_processes_are_signalled(start: Start, number: int) -> None:
    process = start("--max-slots", "2", "--grace-seconds", "600")
    with ExitStack() as stack, ThreadPoolExecutor(16) as pool:
        clients = [stack.enter_context(Client(process.address)) for _ in range(16)]
        for client in clients:
            client.translate(distinct_texts(1), "en", "de")  # connects
        texts = [distinct_texts(12) for _ in clients]  # so many that all are under way at once
        calls = [pool.submit(client.translate, each, "en", "de") for client, each in zip(clients, texts, strict=True)]
        eventually(lambda: samples(process.get("/metrics")[2], "dragoman_inflight_requests") == [16.0])
        for each in [*workers_of(process), psutil.Process(process.process.pid)]:
            each.send_signal(number)
        assert [len(call.result(timeout=patient(60))) for call in calls] == [12] * 16
    assert process.wait() == (0, "", "")


def test_a_bundle_that_was_refused_ends_no_worker_that_replaces_another(
    start: Start, tiny_models: Path, tmp_path: Path
) -> None:
    models = tmp_path / "models"
    shutil.copytree(tiny_models, models)
    process = start("--models", str(models))
    shutil.copytree(models / "tiny" / "1", models / "tiny" / "2")
    (models / "tiny" / "2" / "encoder.onnx").write_bytes(b"damaged")
    process.signal(signal.SIGHUP)
    eventually(lambda: sum(samples(process.get("/metrics")[2], "dragoman_model_load_failures_total")) == 2)
    killed = workers_of(process)[0]
    killed.kill()
    eventually(lambda: killed.pid not in listening(process))
    eventually(lambda: len(listening(process)) == 2)
    call_each(process)


def test_workers_without_a_supervisor_answer_their_calls_and_end(start: Start) -> None:
    process = start()
    workers = workers_of(process)
    process.signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(workers, patient(30))
    assert not alive
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", process.port))
    assert "the supervisor has ended" in process.wait()[2]


def test_workers_without_a_supervisor_leave_the_port_to_another_and_finish_their_calls(
    start: Start, tiny_models: Path
) -> None:
    process = start("--drain-delay-seconds", "600", "--grace-seconds", "600", "--max-slots", "2")
    with ExitStack() as stack, ThreadPoolExecutor(8) as pool:
        clients = [stack.enter_context(Client(process.address)) for _ in range(8)]
        for client in clients:
            client.translate(distinct_texts(1), "en", "de")  # connects
        calls = [pool.submit(client.translate, distinct_texts(200), "en", "de") for client in clients]
        eventually(lambda: samples(process.get("/metrics")[2], "dragoman_inflight_requests") == [8.0])
        process.signal(signal.SIGKILL)
        eventually(lambda: _is_free(process.port))
        assert not all(call.done() for call in calls), "the calls were too short"
        successor = ServerProcess(tiny_models, port=process.port)
        stack.callback(successor.kill)
        with Client(successor.address) as client:
            assert len(client.translate(distinct_texts(1), "en", "de")) == 1
        assert [len(call.result(timeout=patient(60))) for call in calls] == [200] * 8


def _is_free(port: int) -> bool:
    with contextlib.suppress(PortError):
        check_port("127.0.0.1", port, "gRPC", "--port")
        return True
    return False


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


def test_what_one_worker_is_called_to_load_all_serve(start: Start, sockets: Path) -> None:
    process = start("--model-control", "explicit")
    with grpc.insecure_channel(process.address) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        assert served(sockets) == [[], []]
        stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="tiny"), timeout=TIMEOUT_SECONDS)
        assert served(sockets) == [["tiny"], ["tiny"]]
        for worker in workers_of(process):  # none but a new one listens at the end
            if worker.pid in listening(process):
                worker.kill()
                eventually(lambda: len(listening(process)) == 2)
                eventually(lambda: served(sockets) == [["tiny"], ["tiny"]])
    with grpc.insecure_channel(process.address) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        error = refused_call(stub.RepositoryModelLoad, pb.RepositoryModelLoadRequest(model_name="none"))
        assert error.code() is grpc.StatusCode.NOT_FOUND
        assert "there is no model 'none' on disk" in error.details()
        stub.RepositoryModelUnload(pb.RepositoryModelUnloadRequest(model_name="tiny"), timeout=TIMEOUT_SECONDS)
    assert served(sockets) == [[], []]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_lost_under_load_loses_no_call_of_the_documented_client(start: Start, number: signal.Signals) -> None:
    """One that was killed, or that hangs until the supervisor kills it."""
    process = start("--num-threads", "2")
    stop, failures, done = threading.Event(), list[Exception](), collections.Counter[int]()

    def call(number: int) -> None:
        with Client(process.address) as client:
            while not stop.wait(0.05):  # so that half a minute of it takes little CPU
                try:
                    assert len(client.translate(distinct_texts(2), "en", "de")) == 2
                    done[number] += 1
                except Exception as error:
                    failures.append(error)

    def call_plainly(stub: TranslationServiceStub) -> str:
        try:
            stub.Translate(request_of(distinct_texts(200)), timeout=patient(120))
        except grpc.RpcError as error:
            return str(error.code())
        return "OK"

    with ThreadPoolExecutor(16) as pool, ExitStack() as stack:  # in this order, so that callers end if a test fails
        stack.callback(stop.set)
        callers = [pool.submit(call, number) for number in range(4)]
        # A connection for each, so that both workers have some.
        stubs = [stack.enter_context(stub_of(process.address, use_local_subchannel_pool=1)) for _ in range(8)]
        plain = [pool.submit(call_plainly, stub) for stub in stubs]
        eventually(lambda: samples(process.get("/metrics")[2], "dragoman_inflight_requests")[0] >= 10)
        (killed,) = [each for each in workers_of(process) if each.pid == min(listening(process))]
        killed.send_signal(number)
        if number is signal.SIGSTOP:
            eventually(lambda: _told(process) == (200, ["no answer", "serving"], ["ready", "silent"]))
        eventually(lambda: killed.pid not in listening(process))
        codes = collections.Counter(each.result(patient(130)) for each in plain)
        eventually(lambda: len(listening(process)) == 2)  # its capacity is back
        before = collections.Counter(done)
        eventually(lambda: all(done[number] > before[number] for number in range(4)))
        stop.set()
        for caller in callers:
            caller.result(patient(60))
        eventually(lambda: samples(process.get("/metrics")[2], "dragoman_worker_restarts_total") == [1.0])
    assert failures == []
    assert set(codes) <= {"OK", "StatusCode.UNAVAILABLE"}
    process.signal(signal.SIGTERM)
    code, _, errors = process.wait()
    assert code == 0
    hangs = re.findall(r"worker-\d hangs: it has not run for \d+ s; killing it", errors)
    assert len(hangs) == (number == signal.SIGSTOP)


def _told(process: ServerProcess) -> tuple[int, list[str], list[str]]:
    """Return the status of `/readyz`, what it says of each worker, and the states of workers in the metrics."""
    code, _, said = process.get("/readyz")
    states = re.findall(r'^dragoman_workers\{state="(\w+)"\} [1-9]', process.get("/metrics")[2], re.MULTILINE)
    return code, sorted(line.partition(": ")[2] for line in said.splitlines()[1:]), sorted(states)
