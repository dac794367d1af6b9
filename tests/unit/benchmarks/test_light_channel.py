"""The channel of light load generators, against gRPC's own server."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from benchmarks import http2_frames as http2
from benchmarks import light_channel
from benchmarks.light_channel import Answer, LightChannel

MOST_AT_ONCE = 3
ECHO, REFUSE, WAIT = "/test.Test/Echo", "/test.Test/Refuse", "/test.Test/Wait"
TIMEOUT_SECONDS = 30.0


class Peer(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """Echoes requests, rejects them, or waits until released."""

    def __init__(self) -> None:
        self.waiting = threading.Event()
        self.goes_on = threading.Event()
        self.most_at_once = 0
        self._lock = threading.Lock()
        self._now = 0

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        methods = {ECHO: self._echo, REFUSE: self._refuse, WAIT: self._wait}
        return grpc.unary_unary_rpc_method_handler(methods[details.method]) if details.method in methods else None

    def _echo(self, message: bytes, _: grpc.ServicerContext) -> bytes:
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        self.goes_on.wait(TIMEOUT_SECONDS)
        with self._lock:
            self._now -= 1
        return message

    def _refuse(self, _: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "grpc-status: 0, it says")

    def _wait(self, message: bytes, _: grpc.ServicerContext) -> bytes:
        self.waiting.set()
        self.goes_on.wait(TIMEOUT_SECONDS)
        return message


class Running:
    def __init__(self) -> None:
        self.peer = Peer()
        options = [("grpc.max_concurrent_streams", MOST_AT_ONCE)]
        self.server = grpc.server(ThreadPoolExecutor(2 * MOST_AT_ONCE), [self.peer], options=options)
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def stop(self) -> None:
        self.server.stop(0)
        self.peer.goes_on.set()


@pytest.fixture
def running() -> Iterator[Running]:
    running = Running()
    yield running
    running.stop()


def test_each_call_gets_its_own_answer_however_many_there_are(running: Running) -> None:
    """More than the server accepts at once, and more bytes than it accepts without a window update."""
    messages = [bytes([number]) * size for number, size in enumerate((0, 1, 5, 300, 16_000) * 40)]
    assert sum(map(len, messages)) > 8 * http2.FIRST_WINDOW_BYTES
    running.peer.goes_on.set()

    async def scenario() -> list[Answer]:
        async with await LightChannel.connect(running.address) as channel:
            return await asyncio.gather(*(channel.call(ECHO, each, TIMEOUT_SECONDS) for each in messages))

    assert asyncio.run(scenario()) == [Answer("OK", each) for each in messages]
    assert running.peer.most_at_once <= MOST_AT_ONCE


def test_a_status_is_gRPCs_and_so_is_the_deadline(running: Running) -> None:  # noqa: N802
    async def scenario() -> None:
        async with await LightChannel.connect(running.address) as channel:
            assert await channel.call(REFUSE, b"x", TIMEOUT_SECONDS) == Answer("RESOURCE_EXHAUSTED")
            assert await channel.call("/test.Test/Unknown", b"x", TIMEOUT_SECONDS) == Answer("UNIMPLEMENTED")
            assert (await channel.call(WAIT, b"x", 0.2)).status in {"DEADLINE_EXCEEDED", "CANCELLED"}
            running.peer.goes_on.set()
            assert await channel.call(ECHO, b"x", TIMEOUT_SECONDS) == Answer("OK", b"x")

    asyncio.run(scenario())


def test_a_deadline_passes_for_calls_that_wait_here_too(running: Running) -> None:
    async def scenario() -> None:
        async with await LightChannel.connect(running.address) as channel:
            first = [asyncio.ensure_future(channel.call(WAIT, b"x", 0.5)) for _ in range(MOST_AT_ONCE)]
            assert await channel.call(ECHO, b"x", 0.1) == Answer("DEADLINE_EXCEEDED")
            assert {(await each).status for each in first} <= {"DEADLINE_EXCEEDED", "CANCELLED"}

    asyncio.run(scenario())


def test_a_server_that_goes_leaves_nobody_waiting(running: Running) -> None:
    async def scenario() -> list[Answer]:
        async with await LightChannel.connect(running.address) as channel:
            calls = [asyncio.ensure_future(channel.call(WAIT, b"x", TIMEOUT_SECONDS)) for _ in range(2 * MOST_AT_ONCE)]
            await asyncio.to_thread(running.peer.waiting.wait, TIMEOUT_SECONDS)
            running.server.stop(0)
            answers = await asyncio.wait_for(asyncio.gather(*calls), TIMEOUT_SECONDS)
            return [*answers, await channel.call(ECHO, b"x", TIMEOUT_SECONDS)]

    assert {answer.status for answer in asyncio.run(scenario())} <= {"UNAVAILABLE", "CANCELLED"}


def test_who_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(light_channel, "CONNECT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TimeoutError):
            asyncio.run(LightChannel.connect(address))
    with pytest.raises(OSError):  # noqa: PT011
        asyncio.run(LightChannel.connect(address))


def test_what_is_longer_than_a_frame_is_refused(running: Running) -> None:
    async def scenario() -> None:
        async with await LightChannel.connect(running.address) as channel:
            with pytest.raises(ValueError, match="a message of 16384 bytes"):
                await channel.call(ECHO, bytes(16_384), TIMEOUT_SECONDS)

    asyncio.run(scenario())
