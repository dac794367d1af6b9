"""Requests to a worker: what is passed on and back, and every way in which a worker may fail to answer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from service.faces.front.worker import NoAnswer, ask
from service.faces.http.application import HttpAnswer
from tests.fronts import short_folder
from tests.patience import patient

Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]

SECONDS = patient(10.0)


@pytest.fixture
def path() -> Iterator[Path]:
    with short_folder() as folder:
        yield folder / "worker-0.admin"


def answer(path: Path, handle: Handler, *, timeout_seconds: float = SECONDS, body: bytes = b"") -> HttpAnswer:
    """Ask a worker that gets the head of the request, and does with the connection what it likes."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await handle(await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(len(body)), writer)
        writer.close()

    async def asked() -> HttpAnswer:
        server = await asyncio.start_unix_server(connected, path)
        headers = {"host": "evil.example", "origin": "http://evil.example", "x-request-id": "mine", "connection": "x"}
        try:
            return await ask(path, "POST", "/api/x", timeout_seconds, headers, body)
        finally:
            server.close()

    return asyncio.run(asked())


def saying(*parts: bytes) -> Handler:
    async def handle(_: bytes, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return handle


def test_the_request_and_the_answer_arrive(path: Path) -> None:
    received = bytearray()

    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        received.extend(request)
        head = b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 3\r\nServer: x\r\n"
        writer.write(head + b"Content-Length: 2\r\n\r\n{}")

    answered = answer(path, handle, body=b'{"a": 1}')
    assert answered == HttpAnswer(HTTPStatus.TOO_MANY_REQUESTS, "application/json", b"{}", {"retry-after": "3"})
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    lines = head.decode().splitlines()
    assert lines[0] == "POST /api/x HTTP/1.1"
    assert sorted(lines[1:]) == ["Connection: close", "Content-Length: 8", "Host: localhost", "x-request-id: mine"]
    assert body == b'{"a": 1}'


def test_a_large_answer_arrives_whole(path: Path) -> None:
    size = 5_000_000
    answered = answer(path, saying(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size, b"x" * size))
    assert answered.body == b"x" * size


def test_a_worker_that_does_not_run_has_begun_nothing(path: Path) -> None:
    for where in (path, path.parent):
        with pytest.raises(NoAnswer, match="is not running") as raised:
            asyncio.run(ask(where, "GET", "/", SECONDS))
        assert not raised.value.was_sent


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (b"HTTP/1.1 200 OK\r\nContent-Le",),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345",),
        (b"nonsense\r\n\r\n",),
    ],
)
def test_a_worker_that_ends_may_have_begun(path: Path, parts: tuple[bytes, ...]) -> None:
    with pytest.raises(NoAnswer, match="ended before it answered") as raised:
        answer(path, saying(*parts))
    assert raised.value.was_sent
    assert not raised.value.is_late


def test_nobody_waits_for_a_worker_that_hangs(path: Path) -> None:
    async def hang(_: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.wait_for(writer.wait_closed(), SECONDS)

    with pytest.raises(NoAnswer, match=r"did not answer within 0\.1 s") as raised:
        answer(path, hang, timeout_seconds=0.1)
    assert raised.value.is_late
