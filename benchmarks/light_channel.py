"""A gRPC channel for load generators that share the server's CPUs: unary calls at a fraction of gRPC's cost."""

import asyncio
import functools
import sys
import time
from collections import deque
from typing import Any, NamedTuple, Self, cast

import grpc
from hpack import Decoder
from hyperframe.frame import (
    DataFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from benchmarks import http2_frames as http2
from benchmarks.http2_frames import FrameReader

_STATUS_NAMES = {str(code.value[0]): code.name for code in grpc.StatusCode}
_PREFIX_BYTES = 5  # of a gRPC message: the compression flag, and its length
CONNECT_SECONDS = 10.0


class Answer(NamedTuple):
    """A status by name and, if it is OK, the message."""

    status: str
    message: bytes = b""


class _Call(NamedTuple):
    method: str
    message: bytes
    ends: float  # its deadline on `time.monotonic()`'s clock
    answer: asyncio.Future[Answer]


class LightChannel(asyncio.Protocol):
    """One connection without TLS. Calls above the server's limit per connection wait here, as in gRPC's own client.

    Passed deadlines are reported by the server. Only a call that it refused to begin is sent again.
    """

    def __init__(self) -> None:
        self._reader = FrameReader()
        self._greeted = asyncio.get_running_loop().create_future()
        self._closed = asyncio.Event()
        self._waiting: deque[_Call] = deque()
        self._open: dict[int, tuple[_Call, bytearray]] = {}
        self._next_stream = 1
        self._most_open = 0
        self._window_bytes = http2.FIRST_WINDOW_BYTES  # what the server's flow control allows to send now

    @classmethod
    async def connect(cls, address: str) -> Self:
        """Return a channel to `host:port` once the server has sent its preface.

        Raises:
            OSError: nothing is listening.
            TimeoutError: the peer sends nothing.
        """
        host, port = address.rsplit(":", 1)
        connecting = asyncio.get_running_loop().create_connection(cls, host, int(port))
        _, channel = await asyncio.wait_for(connecting, CONNECT_SECONDS)
        try:
            await asyncio.wait_for(channel._greeted, CONNECT_SECONDS)
        except TimeoutError:
            await channel._close()
            raise
        return channel

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def call(self, method: str, message: bytes, timeout_seconds: float) -> Answer:
        """Call a method by its path.

        Raises:
            ValueError: the message is longer than one frame.
        """
        if _PREFIX_BYTES + len(message) > http2.MAX_FRAME_BYTES:
            raise ValueError(f"a message of {len(message)} bytes; calls here take {http2.MAX_FRAME_BYTES} in all.")
        if self._closed.is_set():
            return Answer("UNAVAILABLE")
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        call = _Call(method, message, time.monotonic() + timeout_seconds, answer)
        self._waiting.append(call)
        self._begin()
        return await answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the preface; allow answers of any length, and header fields without a dynamic table."""
        self._transport = cast(asyncio.Transport, transport)
        values = {SettingsFrame.HEADER_TABLE_SIZE: 0, SettingsFrame.INITIAL_WINDOW_SIZE: http2.MAX_WINDOW_BYTES}
        more = http2.window_update(0, http2.MAX_WINDOW_BYTES - http2.FIRST_WINDOW_BYTES)
        self._transport.write(http2.PREFACE + http2.settings(values) + more)

    def data_received(self, data: bytes) -> None:
        """Dispatch received frames."""
        self._reader.feed(data)
        for frame in self._reader.frames():
            self._take(frame)
        self._begin()

    def connection_lost(self, _: Exception | None) -> None:
        """Fail all pending calls: no answers will come."""
        lost = [*(call for call, _ in self._open.values()), *self._waiting]
        self._open.clear()
        self._waiting.clear()
        for call in lost:
            _tell(call, Answer("UNAVAILABLE"))
        self._closed.set()
        if not self._greeted.done():
            self._greeted.set_exception(ConnectionError("the server closed the connection before it greeted"))

    async def _close(self) -> None:
        self._transport.close()
        await self._closed.wait()

    def _begin(self) -> None:
        """Send waiting calls, as many as the server accepts."""
        while self._waiting and len(self._open) < self._most_open:
            num_bytes = _PREFIX_BYTES + len(self._waiting[0].message)
            if num_bytes > self._window_bytes:
                return
            call = self._waiting.popleft()
            left = call.ends - time.monotonic()
            if left <= 0:
                _tell(call, Answer("DEADLINE_EXCEEDED"))
                continue
            self._window_bytes -= num_bytes
            stream, self._next_stream = self._next_stream, self._next_stream + 2
            self._open[stream] = call, bytearray()
            digits = 3 if left < 1.0 else 1  # short times matter to the millisecond, and others recur
            begin = http2.headers(stream, _fields(call.method, round(left, digits)))
            self._transport.write(begin + http2.message(stream, call.message))

    def _take(self, frame: Frame) -> None:
        match frame:
            case DataFrame() if frame.stream_id in self._open:
                self._open[frame.stream_id][1].extend(frame.data)
            case HeadersFrame() if "END_STREAM" in frame.flags:
                call, received = self._open.pop(frame.stream_id)
                _tell(call, Answer(_status(frame.data), bytes(received[_PREFIX_BYTES:])))
            case RstStreamFrame() if frame.stream_id in self._open:
                call, _ = self._open.pop(frame.stream_id)
                if frame.error_code == http2.REFUSED_STREAM:  # not begun: the server still counts a call that has ended
                    self._waiting.appendleft(call)
                else:
                    _tell(call, Answer("CANCELLED" if frame.error_code == http2.CANCEL else "INTERNAL"))
            case WindowUpdateFrame() if not frame.stream_id:
                self._window_bytes += frame.window_increment
            case PingFrame() if "ACK" not in frame.flags:
                self._transport.write(http2.ping_ack(frame))
            case SettingsFrame() if "ACK" not in frame.flags:
                self._transport.write(http2.settings_ack())
                self._most_open = frame.settings.get(SettingsFrame.MAX_CONCURRENT_STREAMS, sys.maxsize)
                if not self._greeted.done():
                    self._greeted.set_result(None)


def _tell(call: _Call, answer: Answer) -> None:
    if not call.answer.done():  # its caller may be cancelled
        call.answer.set_result(answer)


@functools.cache
def _fields(method: str, timeout_seconds: float) -> bytes:
    return http2.header_block(method, {"grpc-timeout": f"{round(timeout_seconds * 1000)}m"})


@functools.lru_cache(maxsize=1024)
def _status(block: bytes) -> str:
    """Return the status from the fields that end a call; without a dynamic table, blocks are independent."""
    fields: dict[Any, Any] = dict(Decoder().decode(block))
    return _STATUS_NAMES[fields["grpc-status"]]
