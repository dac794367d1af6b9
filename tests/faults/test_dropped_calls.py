"""A key's callers who begin calls and drop them, beside a small caller with another key."""

import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator

import grpc
import psutil
import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.faults.bystanders import SmallCaller
from tests.faults.proofs import Proved
from tests.grpc_calls import request_of
from tests.key_files import ALICE, BOB, write_keys
from tests.servers import REPOSITORY, TIMEOUT_SECONDS, ServerProcess, eventually

NUM_THREADS = 24
SENTENCE = "Where is the train station, and when does the next train to the sea leave from there? "
SIZES = (500, 3_000, 4_000, 15_000, 30_000, 60_000)  # characters
MOST_SECONDS = 0.2  # until a call is dropped

METADATA = (("x-api-key", ALICE),)

# Begins a call with a text, and drops it after so many seconds.
Drop = Callable[[ServerProcess, pb_grpc.TranslationServiceStub, str, float], None]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    keys = write_keys(tmp_path_factory.mktemp("keys"), alice=ALICE, bob=BOB)
    with ServerProcess(REPOSITORY / "models", "--api-keys", str(keys), has_http=True) as running:
        yield running


def drop_stream(_: ServerProcess, stub: pb_grpc.TranslationServiceStub, text: str, seconds: float) -> None:
    call = stub.TranslateStream(request_of([text]), metadata=METADATA)
    time.sleep(seconds)
    call.cancel()


def drop_unary(_: ServerProcess, stub: pb_grpc.TranslationServiceStub, text: str, seconds: float) -> None:
    call = stub.Translate.future(request_of([text]), metadata=METADATA)
    time.sleep(seconds)
    call.cancel()


def let_expire(_: ServerProcess, stub: pb_grpc.TranslationServiceStub, text: str, seconds: float) -> None:
    stub.Translate.future(request_of([text]), metadata=METADATA, timeout=seconds).exception(TIMEOUT_SECONDS)


def drop_connection(server: ServerProcess, _: pb_grpc.TranslationServiceStub, text: str, seconds: float) -> None:
    body = json.dumps({"texts": [text], "source_language_code": "en", "target_language_code": "de"})
    head = f"POST /v1/translate/stream HTTP/1.1\r\nHost: x\r\nX-Api-Key: {ALICE}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.http_port), TIMEOUT_SECONDS) as connection:
        connection.sendall(f"{head}{body}".encode())
        time.sleep(seconds)


class Droppers:
    """Threads that begin calls and drop them until they are stopped."""

    def __init__(self, server: ServerProcess, drop: Drop) -> None:
        self.num_dropped = 0
        self._errors: list[BaseException] = []
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._drop_all, args=(server, drop, number)) for number in range(NUM_THREADS)
        ]

    def __enter__(self) -> "Droppers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(TIMEOUT_SECONDS)
        assert not self._errors, self._errors[0]

    def _drop_all(self, server: ServerProcess, drop: Drop, seed: int) -> None:
        chance = random.Random(seed)
        options = [("grpc.use_local_subchannel_pool", 1)]
        try:
            with grpc.insecure_channel(server.address, options=options) as channel:
                stub = pb_grpc.TranslationServiceStub(channel)
                while not self._is_over.is_set():
                    text = SENTENCE * (chance.choice(SIZES) // len(SENTENCE))
                    drop(server, stub, text, chance.uniform(0.0, MOST_SECONDS))
                    self.num_dropped += 1
        except BaseException as error:
            self._errors.append(error)


def cpu_seconds_of(server: ServerProcess, seconds: float) -> float:
    """Return the CPU time that a server takes within the next so many seconds."""
    process = psutil.Process(server.process.pid)
    before = process.cpu_times()
    time.sleep(seconds)
    after = process.cpu_times()
    return after.user + after.system - before.user - before.system


def num_calls(server: ServerProcess, key: str) -> float:
    name = f'dragoman_key_requests_total{{key="{key}"}} '
    return sum(float(line.removeprefix(name)) for line in server.get("/metrics")[2].splitlines() if name in line)


@pytest.mark.parametrize(
    ("count", "is_full"),
    [(200, False), pytest.param(5_000, True, marks=[pytest.mark.full, pytest.mark.timeout(600)])],
    ids=["short", "full"],
)
@pytest.mark.parametrize("drop", [drop_stream, drop_unary, let_expire, drop_connection])
def test_dropped_calls_keep_nobody_elses_waiting(
    server: ServerProcess, drop: Drop, count: int, proved: Proved, *, is_full: bool
) -> None:
    """Before the fix, threads that woke for each other's turns kept the interpreter from the event loop."""
    before = num_calls(server, "alice")
    with SmallCaller(server.address, BOB) as caller, Droppers(server, drop) as droppers:
        eventually(lambda: droppers.num_dropped >= count, 300.0)
        caller.stop()
    assert num_calls(server, "alice") > before + count / 4, "the server has not begun them"
    eventually(lambda: cpu_seconds_of(server, 0.2) < 0.1)  # nothing goes on after its call
    p99_ms, worst_ms = 1000 * caller.p99_seconds(), 1000 * caller.seconds[-1]
    print(f"{count} calls dropped beside {len(caller.seconds)}: p99 {p99_ms:.0f} ms, worst {worst_ms:.0f} ms")
    if is_full:
        assert p99_ms < 100
        assert worst_ms < 200
    proved("attacks", cases=count, p99_ms=round(p99_ms), worst_ms=round(worst_ms))
