"""A key's callers who begin calls and drop them, beside a small caller with another key."""

import json
import random
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import grpc
import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.callers import Callers
from tests.faults.bystanders import SmallCaller, cpu_seconds
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


def dropping(server: ServerProcess, drops: Sequence[Drop], seed: int, stack: ExitStack) -> Callable[[], None]:
    """Return what begins a call on a connection of its own and drops it, in one of these ways."""
    chance, options = random.Random(seed), [("grpc.use_local_subchannel_pool", 1)]
    stub = pb_grpc.TranslationServiceStub(stack.enter_context(grpc.insecure_channel(server.address, options=options)))

    def begin_and_drop() -> None:
        text = SENTENCE * (chance.choice(SIZES) // len(SENTENCE))
        chance.choice(drops)(server, stub, text, chance.uniform(0.0, MOST_SECONDS))

    return begin_and_drop


def cpu_seconds_of(server: ServerProcess, seconds: float) -> float:
    """Return the CPU time that a server takes within the next so many seconds."""
    before = cpu_seconds(server)
    time.sleep(seconds)
    return cpu_seconds(server) - before


def num_calls(server: ServerProcess, key: str) -> float:
    name = f'dragoman_key_requests_total{{key="{key}"}} '
    return sum(float(line.removeprefix(name)) for line in server.get("/metrics")[2].splitlines() if name in line)


DROPS = (drop_stream, drop_unary, let_expire, drop_connection)
LONG = (pytest.mark.full, pytest.mark.timeout(600))


@pytest.mark.parametrize(
    ("drops", "count", "is_full"),
    [(DROPS, 300, False), *(pytest.param([each], 5_000, True, marks=LONG, id=each.__name__) for each in DROPS)],
)
def test_dropped_calls_keep_nobody_elses_waiting(
    server: ServerProcess, drops: Sequence[Drop], count: int, *, is_full: bool
) -> None:
    """Before the fix, threads that woke for each other's turns kept the interpreter from the event loop."""
    before = num_calls(server, "alice")
    with SmallCaller(server.address, BOB) as caller, ExitStack() as stack:
        calls = [dropping(server, drops, seed, stack) for seed in range(NUM_THREADS)]
        with Callers(*calls, pause_seconds=0.0) as droppers:
            eventually(lambda: bool(droppers.failures) or droppers.num_answers >= count, 300.0)
        assert not droppers.failures, droppers.failures[0]
        caller.stop()
    assert num_calls(server, "alice") > before + count / 4, "the server has not begun them"
    eventually(lambda: cpu_seconds_of(server, 0.2) < 0.1)  # nothing goes on after its call
    p99_ms, worst_ms = 1000 * caller.p99_seconds(), 1000 * caller.seconds[-1]
    print(f"{count} calls dropped beside {len(caller.seconds)}: p99 {p99_ms:.0f} ms, worst {worst_ms:.0f} ms")
    if is_full:
        assert p99_ms < 100
        assert worst_ms < 200
