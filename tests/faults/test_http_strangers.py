"""What clients without a key, or all clients of one host, can't take from others: bytes and connections."""

import json
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import grpc
import pytest

from benchmarks import http2_frames as http2
from tests.faults.bystanders import SmallCaller
from tests.faults.raw_connection import RawConnection
from tests.faults.test_http_attacks import ASKED, HOST, MIB, PIECE
from tests.grpc_calls import request_of, stub_of
from tests.key_files import BOB as KEY
from tests.key_files import write_keys
from tests.patience import patient
from tests.servers import TIMEOUT_SECONDS, InProcessServer, Serve, eventually, samples

HERE, THERE = "127.0.0.1", "127.0.0.2"  # two hosts, on Linux
NUM_MIB = 32  # of which 16 are for what has arrived
WITH_KEY = b"X-Api-Key: " + KEY.encode() + b"\r\n"
REQUESTS = (
    *(b"GET /health", b"GET /livez", b"GET /", b"GET /languages", b"GET /frontend/settings", b"GET /v1/openapi.json"),
    *(b"POST /v1/translate", b"POST /v2/translate", b"POST /translate", b"POST /v2/document", b"GET /v1/models"),
)  # some need no key
full = pytest.mark.full


def connect(server: InProcessServer, stack: ExitStack, host: str = HERE) -> socket.socket:
    address = (HERE, server.server.http_port)
    return stack.enter_context(socket.create_connection(address, TIMEOUT_SECONDS, source_address=(host, 0)))


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_keys(tmp_path_factory.mktemp("keys"), bob=KEY)


@pytest.fixture(scope="module")
def with_keys(share: Serve, keys: Path) -> InProcessServer:
    return share(http_port=0, max_bytes_in_flight_mib=NUM_MIB, api_keys=keys)


@pytest.fixture(scope="module")
def keyless(share: Serve) -> InProcessServer:
    return share(http_port=0, max_bytes_in_flight_mib=NUM_MIB)


def codes(server: InProcessServer, number: int, key: str = "", host: str = HERE) -> Counter[object]:
    """Return what becomes of small calls, half of them over HTTP from this host, half over gRPC."""
    found: Counter[object] = Counter()
    body = json.dumps(ASKED).encode()
    head = b"POST /v1/translate HTTP/1.1\r\n" + HOST + (WITH_KEY if key else b"") + b"Connection: close\r\n"
    for _ in range(number):
        with ExitStack() as stack:
            connection = connect(server, stack, host)
            connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            found[int(connection.recv(PIECE).split(b" ")[1])] += 1
    with stub_of(server.address) as stub:
        for _ in range(number):
            try:
                stub.Translate(request_of(["Hello"]), metadata=[("x-api-key", key)] if key else [], timeout=patient(30))
                found["OK"] += 1
            except grpc.RpcError as error:
                found[error.code().name] += 1
    return found


def sizes(number: int) -> Iterator[int]:
    """Yield sizes of messages, the large ones first: where there is no room for these, there may be for small ones."""
    for size in (2**20, 2**18, 2**16, 2**10):
        yield from [size] * (number // 4)


def in_flight(server: InProcessServer) -> float:
    return samples(server.get("/metrics")[2], "dragoman_bytes_in_flight")[0]


@pytest.mark.parametrize(
    ("number", "num_calls"), [(400, 10), pytest.param(1000, 200, marks=[full, pytest.mark.timeout(900)])]
)
def test_heads_without_a_key_take_nothing_of_what_all_share(
    with_keys: InProcessServer, number: int, num_calls: int
) -> None:
    """227 connections that announced 1 MiB each had all calls with a good key rejected."""
    with SmallCaller(with_keys.address, KEY) as caller, ExitStack() as stack:
        for index, size in enumerate(sizes(number)):
            line = REQUESTS[index % len(REQUESTS)]
            length = b"Content-Length: %d" % size if index % 5 else b"Transfer-Encoding: chunked"
            connect(with_keys, stack).sendall(line + b" HTTP/1.1\r\n" + HOST + length + b"\r\n\r\n")
        found = codes(with_keys, num_calls, KEY)
        caller.stop()
        eventually(lambda: in_flight(with_keys) == 0)
    assert found == {200: num_calls, "OK": num_calls}
    print(f"p99 {caller.p99_seconds():.3f} s, worst {caller.seconds[-1]:.3f} s of {len(caller.seconds)}")
    assert num_calls == 10 or (caller.p99_seconds() < 0.1 and caller.seconds[-1] < 0.2)


@pytest.mark.parametrize(
    ("number", "num_calls"), [(160, 10), pytest.param(800, 100, marks=[full, pytest.mark.timeout(900)])]
)
@pytest.mark.parametrize("host", [HERE, THERE])
def test_a_host_takes_a_share_and_its_next_call_has_room(
    keyless: InProcessServer, host: str, number: int, num_calls: int
) -> None:
    """Without keys: what has arrived in part, and nobody goes on with, keeps out neither others nor its own host."""
    head = b"POST /v1/translate HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n"
    eventually(lambda: in_flight(keyless) == 0)
    with ExitStack() as stack:
        for size in sizes(number):
            connection = connect(keyless, stack, host)
            connection.settimeout(patient(0.2))
            with suppress(OSError):  # it has made room
                connection.sendall(head % size + b"x" * (size - 1))
        assert MIB < in_flight(keyless) <= 8 * MIB
        found = codes(keyless, num_calls) + codes(keyless, num_calls, host=THERE)
    assert found == {200: 2 * num_calls, "OK": 2 * num_calls}


def test_streams_without_a_key_leave_room_for_who_has_one(with_keys: InProcessServer) -> None:
    """Each watch of a probe counts, as it takes memory: those of all strangers together at most half."""
    with RawConnection(with_keys.server.port) as raw:
        raw.greeted()
        for stream in range(1, 1800, 2):
            raw.send(http2.call(stream, "/grpc.health.v1.Health/Watch"))
            raw.send(http2.data(stream, struct.pack(">BI", 0, 0), ends=True))
        eventually(lambda: in_flight(with_keys) > 7 * MIB)
        assert codes(with_keys, 10, KEY) == {200: 10, "OK": 10}
        assert in_flight(with_keys) <= 8 * MIB + PIECE


class Upload:
    """A call whose body arrives in parts."""

    def __init__(self, server: InProcessServer, stack: ExitStack, about: bytes) -> None:
        self._connection = connect(server, stack)
        self._body = json.dumps(ASKED).encode() + b" " * 900_000
        head = b"POST /v1/translate HTTP/1.1\r\n" + HOST + about + b"Connection: close\r\nExpect: 100-continue\r\n"
        self._connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(self._body))
        assert self._connection.recv(1024).startswith(b"HTTP/1.1 100 ")

    def go_on(self) -> None:
        self._connection.sendall(self._body[:20_000])
        self._body = self._body[20_000:]

    def status(self) -> bytes:
        self._connection.sendall(self._body)
        return self._connection.recv(PIECE).split(b" ")[1]


@pytest.mark.parametrize("has_key", [True, False])
@pytest.mark.parametrize("rounds", [2, pytest.param(40, marks=[full, pytest.mark.timeout(900)])])
def test_connections_of_strangers_end_no_upload(serve: Serve, keys: Path, rounds: int, *, has_key: bool) -> None:
    """24 of 26 uploads with a good key were ended by connections that sent nothing, from any host."""
    about = WITH_KEY if has_key else b""
    get = b"GET /v1/models HTTP/1.1\r\n" + HOST + about + b"\r\n"
    server = serve(http_port=0, max_connections=64, api_keys=keys if has_key else None)
    for host in (HERE, THERE) if has_key else (THERE,):
        with ExitStack() as stack:
            idle = connect(server, stack)
            idle.sendall(get)
            assert idle.recv(PIECE).startswith(b"HTTP/1.1 200 ")
            uploads = [Upload(server, stack, about) for _ in range(20)]
            for _ in range(rounds):
                with ExitStack() as silent:
                    for _ in range(200):
                        with suppress(ConnectionError):
                            connect(server, silent, host)
                for upload in uploads:
                    upload.go_on()
            idle.sendall(get)
            assert idle.recv(PIECE).startswith(b"HTTP/1.1 200 ")
            with ThreadPoolExecutor(4) as pool:
                statuses = Counter(pool.map(Upload.status, uploads))
        assert statuses == {b"200": 20}
