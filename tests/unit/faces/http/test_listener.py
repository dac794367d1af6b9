"""The HTTP listener: what it passes on, what it refuses by itself, and that no client can break it."""

import errno
import http.client
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http import HTTPStatus
from socketserver import TCPServer

import pytest

from service.faces.http import listener as http_listener
from service.faces.http.listener import PLAIN, HttpAnswer, HttpListener, HttpRequest
from service.process.ports import PortError
from tests.servers import TIMEOUT_SECONDS, eventually

Address = tuple[str, int]


def echo(request: HttpRequest) -> HttpAnswer:
    if request.path == "/broken":
        raise ValueError("a fault of ours")
    said = f"{request.method} {request.path} {request.headers.get('x-word')} {request.body.decode()}"
    return HttpAnswer(HTTPStatus.OK, PLAIN, said.encode(), {"X-More": "1"})


@pytest.fixture(params=["127.0.0.1", "::1"])
def address(request: pytest.FixtureRequest) -> Iterator[Address]:
    listener = HttpListener(request.param, 0, "tests", "--test-port", echo, max_body_bytes=10)
    listener.start()
    yield request.param, listener.port
    listener.stop()


def ask(address: Address, method: str, path: str, body: bytes = b"", word: str = "") -> tuple[int, str]:
    connection = http.client.HTTPConnection(*address, timeout=TIMEOUT_SECONDS)
    try:
        connection.request(method, path, body or None, {"X-Word": word})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_what_is_asked_arrives(address: Address) -> None:
    assert ask(address, "GET", "/a?query=1", word="w") == (200, "GET /a w ")
    assert ask(address, "POST", "/b", b"1234567890") == (200, "POST /b  1234567890")
    assert ask(address, "HEAD", "/a") == (200, "")


def test_too_much_is_refused(address: Address) -> None:
    assert ask(address, "POST", "/", b"12345678901") == (413, "the body has 11 bytes; allowed is 10\n")
    assert ask(address, "POST", "/", b"x" * 1_000_000)[0] == 413
    for length in ("", "-1", "1e3", "²"):
        assert raw(address, f"POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n").startswith(b"HTTP/1.0 411 ")
    assert raw(address, f"POST / HTTP/1.1\r\nContent-Length: {'9' * 5000}\r\n\r\n").startswith(b"HTTP/1.0 413 ")
    assert ask(address, "PUT", "/", b"1")[0] == 501


def raw(address: Address, text: str) -> bytes:
    with socket.create_connection(address, TIMEOUT_SECONDS) as client:
        client.sendall(text.encode("latin-1"))
        client.shutdown(socket.SHUT_WR)
        return client.recv(65_536)


def test_a_fault_of_ours_is_a_500_and_in_the_log(address: Address, caplog: pytest.LogCaptureFixture) -> None:
    assert ask(address, "GET", "/broken") == (500, "internal error; the server's log says more\n")
    assert "a fault of ours" in caplog.text


def test_a_client_that_goes_away_is_no_noise(
    address: Address, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, "service.faces.http.listener")
    with socket.create_connection(address, TIMEOUT_SECONDS) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # leave with a reset
        client.sendall(b"GET / HT")
    eventually(lambda: "went away" in caplog.text)
    assert ask(address, "GET", "/")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_taken_port_is_one_line(address: Address) -> None:
    with pytest.raises(PortError, match=r"for tests: Address already in use.*--test-port"):
        HttpListener(*address, "tests", "--test-port", echo)


def test_who_is_slow_makes_room_for_others(address: Address) -> None:
    threads = threading.active_count()
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(address, TIMEOUT_SECONDS)) for _ in range(100)]
        for client in slow:
            client.sendall(b"GET / HTTP/1.1\r\nX-Word: ")
        for _ in range(20):
            assert ask(address, "GET", "/")[0] == 200
        assert slow[0].recv(1) == b""  # the oldest went first
        eventually(lambda: threading.active_count() <= threads + http_listener.MAX_CONNECTIONS)


def test_a_request_has_to_arrive_in_time(monkeypatch: pytest.MonkeyPatch, address: Address) -> None:
    """However busily its client sends: a byte now and then is no request."""
    monkeypatch.setattr(http_listener, "READ_SECONDS", 0.3)
    for begun in (
        b"",
        b"GET / HTTP/1.1\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
        b"POST / HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection(address, TIMEOUT_SECONDS) as client:
            client.sendall(begun)
            end = time.monotonic() + TIMEOUT_SECONDS
            with pytest.raises(ConnectionError):  # noqa: PT012
                while time.monotonic() < end:
                    client.sendall(b"X")
                    time.sleep(0.02)


def test_requests_at_work_are_not_disturbed_and_are_not_too_many() -> None:
    released = threading.Event()

    def work(request: HttpRequest) -> HttpAnswer:
        released.wait(TIMEOUT_SECONDS)
        return HttpAnswer(HTTPStatus.OK, PLAIN, b"done")

    listener = HttpListener("127.0.0.1", 0, "tests", "--test-port", work)
    listener.start()
    at_work = "127.0.0.1", listener.port
    try:
        with ThreadPoolExecutor(http_listener.MAX_CONNECTIONS) as pool:
            answers = [pool.submit(ask, at_work, "GET", "/") for _ in range(http_listener.MAX_CONNECTIONS)]
            eventually(lambda: len(listener._http._answering) == http_listener.MAX_CONNECTIONS)
            with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
                ask(at_work, "GET", "/")
            released.set()
            assert {answer.result(TIMEOUT_SECONDS) for answer in answers} == {(200, "done")}
        assert ask(at_work, "GET", "/") == (200, "done")
        eventually(lambda: not listener._http._answering and not listener._http._reading)
    finally:
        listener.stop()


def test_without_descriptors_it_waits_and_recovers(monkeypatch: pytest.MonkeyPatch, address: Address) -> None:
    attempts = []
    accept = TCPServer.get_request

    def refused(server: TCPServer) -> object:
        attempts.append(1)
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(TCPServer, "get_request", refused)
    with socket.create_connection(address, TIMEOUT_SECONDS) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        began = time.monotonic()
        eventually(lambda: len(attempts) >= 4)
        assert time.monotonic() - began > 0.2  # it does not ask all the time
        monkeypatch.setattr(TCPServer, "get_request", accept)
        assert client.recv(65_536).startswith(b"HTTP/1.0 200 ")


def test_lines_and_headers_have_a_limit(address: Address) -> None:
    assert raw(address, f"GET /{'a' * 70_000} HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.0 414 ")
    assert raw(address, f"GET / HTTP/1.1\r\nX-Word: {'a' * 70_000}\r\n\r\n").startswith(b"HTTP/1.0 431 ")
    assert raw(address, "GET / HTTP/1.1\r\n" + "X-Word: a\r\n" * 200 + "\r\n").startswith(b"HTTP/1.0 431 ")
    assert ask(address, "GET", "/")[0] == 200
