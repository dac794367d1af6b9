"""The HTTP callers, against a server of the standard library."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from benchmarks.callers import http_callers
from benchmarks.http_channel import HttpChannel
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb

TIMEOUT_SECONDS = 30.0


class Upper(BaseHTTPRequestHandler):
    """Translates to upper case; says which connection it is on."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked["q"] == ["hang up"]:
            self.close_connection = True
            return
        if asked["q"] == ["wait"]:
            self.server.goes_on.wait(TIMEOUT_SECONDS)  # type: ignore[attr-defined]
        code = 429 if asked["q"] == ["too much"] else 200
        answer = json.dumps(
            {"translatedText": [text.upper() for text in asked["q"]], "port": self.client_address[1], **asked}
        ).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Upper) as running:
        running.goes_on = threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.goes_on.set()  # type: ignore[attr-defined]
        running.shutdown()
        thread.join(TIMEOUT_SECONDS)


def address_of(server: Any) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def test_calls_share_connections_that_stay_open(server: Any) -> None:
    async def ports() -> list[int]:
        async with HttpChannel(address_of(server), 2) as channel:
            answers = await asyncio.gather(*(channel.post("/translate", {"q": [str(n)]}) for n in range(10)))
            return [answer["port"] for _, answer in answers]

    assert 1 <= len(set(asyncio.run(ports()))) <= 2


def call(server: Any, text: str, timeout_seconds: float = TIMEOUT_SECONDS) -> list[tuple[str, pb.TranslateResponse]]:
    """Make the call, and another one after it on the same channel."""

    async def calls() -> list[tuple[str, pb.TranslateResponse]]:
        async with http_callers(address_of(server), timeout_seconds, 1) as translate:
            return [
                await translate(pb.TranslateRequest(texts=texts, source_language_code="en", target_language_code="de"))
                for texts in ([text], ["good", "day"])
            ]

    return asyncio.run(calls())


@pytest.mark.parametrize(("text", "status"), [("hello", "OK"), ("too much", "HTTP 429"), ("hang up", "UNAVAILABLE")])
def test_the_status_of_a_call_and_the_next_one_succeeds(server: Any, text: str, status: str) -> None:
    (first, answer), (second, next_answer) = call(server, text)
    assert (first, second) == (status, "OK")
    assert [each.text for each in answer.translations] == (["HELLO"] if status == "OK" else [])
    assert [(each.text, each.hypotheses[0].num_tokens) for each in next_answer.translations] == [
        ("GOOD", 0),
        ("DAY", 0),
    ]
    pairs = [(each.text, each.hypotheses[0].num_tokens) for each in next_answer.translations]
    assert pairs == [("GOOD", 0), ("DAY", 0)]


def test_a_caller_gives_up_at_its_deadline(server: Any) -> None:
    assert call(server, "wait", timeout_seconds=0.2)[0][0] == "DEADLINE_EXCEEDED"
