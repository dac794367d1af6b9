"""The HTTP listener: what it passes on, what it rejects itself, and its robustness against any client."""

import asyncio
import contextlib
import errno
import http.client
import random
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

import pytest

from service.faces.http import connection as http_connection
from service.faces.http.application import PLAIN, HttpAnswer, HttpRequest, application
from service.faces.http.exchange import Exchange
from service.faces.http.listener import HttpListener
from service.faces.http.open_connections import MAX_CONNECTIONS
from service.faces.http.refusals import BodyTooSlow
from service.process.ports import PortError
from tests.patience import patient
from tests.servers import TIMEOUT_SECONDS, eventually

Address = tuple[str, int]


async def echo(request: HttpRequest) -> HttpAnswer:
    if request.path == "/broken":
        raise ValueError("a fault of ours")
    said = f"{request.method} {request.path} {request.headers.get('x-word')} {request.body.decode()}"
    return HttpAnswer(HTTPStatus.OK, PLAIN, said.encode(), {"X-More": "1"})


@pytest.fixture
def host() -> str:
    return "127.0.0.1"


@pytest.fixture
def address(host: str) -> Iterator[Address]:
    listener = HttpListener(host, 0, "tests", "--test-port", application(echo, max_body_bytes=10))
    listener.start()
    yield host, listener.port
    listener.stop()


def ask(address: Address, method: str, path: str, body: bytes = b"", word: str = "") -> tuple[int, str]:
    connection = http.client.HTTPConnection(*address, timeout=TIMEOUT_SECONDS)
    try:
        connection.request(method, path, body or None, {"X-Word": word})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_what_is_asked_arrives(address: Address) -> None:
    assert ask(address, "GET", "/a?query=1", word="w") == (200, "GET /a w ")
    assert ask(address, "POST", "/b", b"1234567890") == (200, "POST /b  1234567890")
    assert ask(address, "HEAD", "/a") == (200, "")


def test_too_much_is_refused(address: Address) -> None:
    assert ask(address, "POST", "/", b"12345678901") == (413, "the body has 11 bytes; allowed: 10. Send less.\n")
    assert ask(address, "POST", "/", b"x" * 1_000_000)[0] == 413
    assert raw(address, "POST / HTTP/1.1\r\nHost: a\r\n\r\n").startswith(b"HTTP/1.1 411 ")
    chunks = "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    assert raw(address, f"POST / HTTP/1.1\r\nHost: a\r\n{chunks}").startswith(b"HTTP/1.1 411 ")
    for length in ("1e3", "²", "9" * 5000):
        head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"
        assert raw(address, head).startswith(b"HTTP/1.1 400 ")
    head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {'9' * 18}\r\n\r\n"
    assert raw(address, head).startswith(b"HTTP/1.1 413 ")
    assert ask(address, "PUT", "/", b"1")[0] == 501


def raw(address: Address, text: str) -> bytes:
    with socket.create_connection(address, TIMEOUT_SECONDS) as client:
        client.sendall(text.encode("latin-1"))
        client.shutdown(socket.SHUT_WR)
        return client.recv(65_536)


def test_a_body_that_is_too_slow_is_told_so_also_while_nobody_waits_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a byte of it arrives in the same turn of the event loop."""
    monkeypatch.setattr(http_connection, "READ_SECONDS", 0.1)

    failed, fail = threading.Event(), http_connection.Connection.fail

    def noticed(self: http_connection.Connection, failure: Any) -> None:
        fail(self, failure)
        failed.set()

    monkeypatch.setattr(http_connection.Connection, "fail", noticed)

    async def app(exchange: Exchange) -> None:
        read = await exchange.read()
        await asyncio.to_thread(failed.wait, TIMEOUT_SECONDS)
        with pytest.raises(BodyTooSlow):
            await exchange.read()
        await exchange.send(408, {"Connection": "close"}, read)

    listener = HttpListener("127.0.0.1", 0, "tests", "--test-port", app)
    listener.start()
    try:
        with socket.create_connection(("127.0.0.1", listener.port), TIMEOUT_SECONDS) as client:
            client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx")
            answer = b"".join(iter(lambda: client.recv(65_536), b""))
    finally:
        listener.stop()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert answer.endswith(b"\r\n\r\nx")


def test_a_fault_of_ours_is_a_500_and_in_the_log(address: Address, caplog: pytest.LogCaptureFixture) -> None:
    assert ask(address, "GET", "/broken") == (500, "internal error; see the server's log\n")
    assert "a fault of ours" in caplog.text


def test_a_taken_port_is_one_line(address: Address) -> None:
    with pytest.raises(PortError, match=r"for tests: Address already in use.*--test-port"):
        HttpListener(*address, "tests", "--test-port", application(echo))


def test_a_request_has_to_arrive_in_time(monkeypatch: pytest.MonkeyPatch, address: Address) -> None:
    """However busily its client sends: an occasional byte is not a request."""
    monkeypatch.setattr(http_connection, "READ_SECONDS", 0.3)
    for begun in (
        b"",
        b"GET / HTTP/1.1\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",  # and nothing more on the same connection
    ):
        with socket.create_connection(address, TIMEOUT_SECONDS) as client:
            client.sendall(begun)
            end = time.monotonic() + TIMEOUT_SECONDS
            with pytest.raises(ConnectionError):  # noqa: PT012
                while time.monotonic() < end:
                    client.sendall(b"X")
                    time.sleep(0.02)


def test_requests_at_work_are_not_disturbed_and_are_not_too_many() -> None:
    released, at_work = threading.Event(), []

    async def work(request: HttpRequest) -> HttpAnswer:
        at_work.append(request)
        await asyncio.get_running_loop().run_in_executor(pool, released.wait, TIMEOUT_SECONDS)
        return HttpAnswer(HTTPStatus.OK, PLAIN, b"done")

    listener = HttpListener("127.0.0.1", 0, "tests", "--test-port", application(work))
    listener.start()
    address = "127.0.0.1", listener.port
    try:
        with ThreadPoolExecutor(2 * MAX_CONNECTIONS) as pool:
            answers = [pool.submit(ask, address, "GET", "/") for _ in range(MAX_CONNECTIONS)]
            eventually(lambda: len(at_work) == MAX_CONNECTIONS)
            with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
                ask(address, "GET", "/")
            released.set()
            assert {answer.result(TIMEOUT_SECONDS) for answer in answers} == {(200, "done")}
            assert ask(address, "GET", "/") == (200, "done")
        eventually(lambda: listener.num_connections == 0)
    finally:
        released.set()
        listener.stop()


def test_one_connection_takes_many_requests_one_after_the_other(address: Address) -> None:
    connection = http.client.HTTPConnection(*address, timeout=TIMEOUT_SECONDS)
    with contextlib.closing(connection):
        for number in range(3):
            connection.request("POST", f"/{number}", b"123")
            assert connection.getresponse().read() == f"POST /{number} None 123".encode()
    pipelined = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n" * 2 + "GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with socket.create_connection(address, TIMEOUT_SECONDS) as client:
        client.sendall(pipelined.encode())
        answered = b"".join(iter(lambda: client.recv(65_536), b""))
    assert [answered.count(each) for each in (b"HTTP/1.1 200 ", b"GET /a None", b"GET /b None")] == [3, 2, 1]


@contextlib.contextmanager
def listening(num_bytes: int) -> Iterator[HttpListener]:
    """Answer with so many bytes."""

    async def much(_: HttpRequest) -> HttpAnswer:
        return HttpAnswer(HTTPStatus.OK, PLAIN, random.Random(num_bytes).randbytes(num_bytes))

    listener = HttpListener("127.0.0.1", 0, "tests", "--test-port", application(much))
    listener.start()
    try:
        yield listener
    finally:
        listener.stop()


def connected(listener: HttpListener) -> socket.socket:
    return socket.create_connection(("127.0.0.1", listener.port), TIMEOUT_SECONDS)


def test_an_answer_has_to_be_taken_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "READ_SECONDS", 0.3)
    with listening(50_000_000) as listener, connected(listener) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        eventually(lambda: listener.num_connections == 1)
        eventually(lambda: listener.num_connections == 0)
        with pytest.raises(ConnectionError):  # noqa: PT012
            while client.recv(65_536):
                pass
            raise ConnectionError("it ended")


@pytest.mark.parametrize(("most_seconds", "is_whole"), [(600.0, True), (0.4, False)], ids=["whole", "for-too-long"])
def test_a_large_answer_has_more_time(monkeypatch: pytest.MonkeyPatch, most_seconds: float, *, is_whole: bool) -> None:
    size, read_seconds = 8_000_000, patient(0.2)
    monkeypatch.setattr(http_connection, "READ_SECONDS", read_seconds)
    monkeypatch.setattr(http_connection, "MOST_SECONDS", patient(most_seconds))
    received = bytearray()
    with listening(size) as listener, connected(listener) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while more := client.recv(65_536):
                received += more
                time.sleep(patient(0.01))  # a slow reader
    assert time.monotonic() - began > 2 * read_seconds
    assert received.endswith(random.Random(size).randbytes(size)) is is_whole


def test_without_descriptors_it_waits(
    monkeypatch: pytest.MonkeyPatch, address: Address, caplog: pytest.LogCaptureFixture
) -> None:
    attempts: list[float] = []
    accept = socket.socket.accept

    def refused(_: socket.socket) -> object:
        attempts.append(time.monotonic())
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket.socket, "accept", refused)
    with socket.create_connection(address, TIMEOUT_SECONDS) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        eventually(lambda: len(attempts) >= 4)
        assert attempts[3] - attempts[0] > 0.2  # it does not retry continuously
        monkeypatch.setattr(socket.socket, "accept", accept)
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")
    assert not caplog.records
