"""The HTTP port against any client: bodies, disconnects, and a stop."""

import http.client
import json
import logging
import select
import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from dragoman_client import Client
from service.faces.http import connection as http_connection
from tests.http_caller import call, raw
from tests.patience import patient
from tests.servers import TIMEOUT_SECONDS, InProcessServer, Serve, eventually

ASKED = {"text": "station", "source_language_code": "en", "target_language_code": "de"}
BODY = json.dumps(ASKED).encode()
HEAD = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
MAX_BYTES = 4096


@pytest.fixture(scope="module")
def server(share: Serve) -> InProcessServer:
    return share(http_port=0, max_request_bytes=MAX_BYTES)


def test_chunks_that_are_too_much_together_are_refused(server: InProcessServer) -> None:
    chunks = b"800\r\n" + b"x" * 2048 + b"\r\n801\r\n" + b"x" * 2049
    assert raw(server.http_url, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks).startswith(b"HTTP/1.1 413 ")
    assert raw(server.http_url, b"GET http://[ HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    assert call(server.http_url, "POST", "/v1/translate", ASKED).status == 200


@pytest.mark.parametrize("is_reset", [False, True], ids=["closed", "reset"])
def test_a_client_that_leaves_within_its_body_is_no_error(
    server: InProcessServer, caplog: pytest.LogCaptureFixture, *, is_reset: bool
) -> None:
    address = "127.0.0.1", server.server.http_port
    labels = {"method": "http/v1/translate", "code": "CANCELLED"}
    before = server.metric("dragoman_requests_total", **labels)
    with socket.create_connection(address, TIMEOUT_SECONDS) as connection:
        if is_reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        assert b"100 Continue" in connection.recv(1024)  # the call has begun
        connection.sendall(BODY[:-9])
    eventually(lambda: server.metric("dragoman_requests_total", **labels) == before + 1)
    assert call(server.http_url, "POST", "/v1/translate", ASKED).status == 200
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert "CANCELLED" not in {error.code for error in server.server.errors.latest()}


SLOW = 40  # parts of a body, one every 20 ms: in all more than the least time


@pytest.mark.parametrize(
    ("part", "most_seconds", "status"),
    [(b" " * 100, 600.0, 200), (b" ", 600.0, 408), (b" " * 100, 0.5, 408)],
    ids=["steady", "trickle", "for-too-long"],
)
def test_a_body_has_more_time_the_more_of_it_arrives(
    server: InProcessServer, monkeypatch: pytest.MonkeyPatch, part: bytes, most_seconds: float, status: int
) -> None:
    monkeypatch.setattr(http_connection, "READ_SECONDS", patient(0.4))
    monkeypatch.setattr(http_connection, "PIECE_BYTES", 400)
    monkeypatch.setattr(http_connection, "MOST_SECONDS", patient(most_seconds))
    head = HEAD + b"X-Request-Id: slow\r\nContent-Length: %d\r\n\r\n" % (SLOW * 100 + len(BODY))
    with socket.create_connection(("127.0.0.1", server.server.http_port), TIMEOUT_SECONDS) as connection:
        connection.sendall(head)
        for _ in range(SLOW):
            if select.select([connection], [], [], patient(0.02))[0]:
                break  # it has been answered
            connection.sendall(part)
            assert call(server.http_url, "GET", "/v1/models").status == 200  # others are answered meanwhile
        else:
            connection.sendall(BODY)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\nx-request-id: slow\r\n" in answer
    assert b"\r\nconnection: close\r\n" in answer
    if status == 408:
        error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
        assert (error["code"], error["request_id"]) == ("DEADLINE_EXCEEDED", "slow")
        assert "bytes of the body arrived in time" in error["message"]


def test_a_body_of_which_nothing_arrives_is_a_408_in_the_words_of_its_api(
    server: InProcessServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_connection, "READ_SECONDS", 0.3)
    labels = {"method": "http/deepl/translate", "code": "DEADLINE_EXCEEDED"}
    before = server.metric("dragoman_requests_total", **labels)
    answer = raw(server.http_url, b"POST /v2/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'{"message":"only 0 bytes of the body arrived in time' in answer
    eventually(lambda: server.metric("dragoman_requests_total", **labels) == before + 1)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_two_colons_are_the_addresses_of_both_families(serve: Serve) -> None:
    server = serve(host="::", http_host="::", http_port=0, http_without_keys=True)
    ports = server.server.port, server.server.http_port
    for host in ("127.0.0.1", "[::1]"):
        assert call(f"http://{host}:{ports[1]}", "POST", "/v1/translate", ASKED).status == 200
        with Client(f"{host}:{ports[0]}") as client:
            assert client.translate(["station"], "en", "de")[0].text


def test_an_answer_while_draining_ends_its_connection(serve: Serve) -> None:
    """The client's next call then goes to another server, and not to one that is about to stop."""
    server = serve(http_port=0, drain_delay_seconds=patient(0.4))
    netloc = urlsplit(server.http_url).netloc
    with closing(http.client.HTTPConnection(netloc, timeout=TIMEOUT_SECONDS)) as kept:
        for is_draining in (False, True):
            if is_draining:
                closing_server = server.start_closing()
                eventually(lambda: server.server.phase.value == "draining")
            for method, path, document in (
                ("POST", "/v1/translate", ASKED),
                ("POST", "/v1/translate/stream", ASKED),
                ("GET", "/nowhere", None),  # without a body, which could come after the answer
            ):
                body = None if document is None else json.dumps(document)
                kept.request(method, path, body, {"content-type": "application/json"})
                response = kept.getresponse()
                response.read()
                assert response.getheader("connection") == ("close" if is_draining else None), path
    closing_server.result(TIMEOUT_SECONDS)
