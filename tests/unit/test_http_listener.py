"""The HTTP listener: what it passes on, what it refuses by itself, and that no client can break it."""

import http.client
import logging
import socket
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from service.http_listener import PLAIN, HttpAnswer, HttpListener, HttpRequest
from service.ports import PortError
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
    caplog.set_level(logging.DEBUG, "service.http_listener")
    with socket.create_connection(address, TIMEOUT_SECONDS) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # leave with a reset
        client.sendall(b"GET / HT")
    eventually(lambda: "went away" in caplog.text)
    assert ask(address, "GET", "/")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_taken_port_is_one_line(address: Address) -> None:
    with pytest.raises(PortError, match=r"for tests: Address already in use.*--test-port"):
        HttpListener(*address, "tests", "--test-port", echo)
