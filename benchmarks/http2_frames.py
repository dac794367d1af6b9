"""Encodes and decodes HTTP/2 frames for gRPC calls, with hyperframe and hpack.

h2, which is built on these, enforces the protocol. The tests must violate it, and in the load generators its state
machine would use more of the CPUs that they share with the server than the rest of a call.
"""

import struct
from collections.abc import Iterator, Mapping

from hpack import Encoder, NeverIndexedHeaderTuple
from hyperframe.frame import (
    DataFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 7, 8, 11

MAX_FRAME_BYTES = 16_384  # unless a peer's settings allow more
MAX_WINDOW_BYTES = 2**31 - 1
FIRST_WINDOW_BYTES = 65_535  # of the connection; only WINDOW_UPDATE changes it

_HEAD_BYTES = 9


class FrameReader:
    """Builds frames from received bytes, however they are split."""

    def __init__(self) -> None:
        self._received = memoryview(b"")

    def feed(self, content: bytes) -> None:
        """Add received bytes."""
        self._received = memoryview(bytes(self._received) + content)

    def frames(self) -> Iterator[Frame]:
        """Yield all frames that are complete so far, each once."""
        while len(self._received) >= _HEAD_BYTES:
            frame, size = Frame.parse_frame_header(self._received[:_HEAD_BYTES])
            end = _HEAD_BYTES + size
            if len(self._received) < end:
                return
            frame.parse_body(self._received[_HEAD_BYTES:end])
            self._received = self._received[end:]
            yield frame


def settings(values: Mapping[int, int] | None = None) -> bytes:
    """Return a SETTINGS frame; `SettingsFrame` names the values."""
    return SettingsFrame(settings=dict(values or {})).serialize()


def settings_ack() -> bytes:
    """Return the SETTINGS frame that acknowledges another one."""
    return SettingsFrame(flags=["ACK"]).serialize()


def ping(number: int = 0) -> bytes:
    """Return a PING frame."""
    return PingFrame(opaque_data=struct.pack(">Q", number)).serialize()


def ping_ack(ping: PingFrame) -> bytes:
    """Return the answer to a PING frame."""
    return PingFrame(opaque_data=ping.opaque_data, flags=["ACK"]).serialize()


def reset(stream: int, code: int = CANCEL) -> bytes:
    """Return a RST_STREAM frame."""
    return RstStreamFrame(stream, error_code=code).serialize()


def window_update(stream: int, num_bytes: int) -> bytes:
    """Return a WINDOW_UPDATE frame; stream 0 is the connection."""
    return WindowUpdateFrame(stream, window_increment=num_bytes).serialize()


def call(stream: int, method: str, metadata: Mapping[str, str] | None = None) -> bytes:
    """Return the HEADERS frame that begins a gRPC call; `method` is a path."""
    return headers(stream, header_block(method, metadata))


def headers(stream: int, block: bytes) -> bytes:
    """Return a HEADERS frame with a whole header block."""
    return HeadersFrame(stream, block, flags=["END_HEADERS"]).serialize()


def header_block(method: str, metadata: Mapping[str, str] | None = None) -> bytes:
    """Return the fields of a gRPC call, none of them indexed, so that any number of calls can reuse them."""
    fields = {":method": "POST", ":scheme": "http", ":path": method, ":authority": "localhost", "te": "trailers"}
    fields |= {"content-type": "application/grpc", **(metadata or {})}
    return Encoder().encode([NeverIndexedHeaderTuple(*field) for field in fields.items()], huffman=False)


def message(stream: int, content: bytes, *, ends: bool = True) -> bytes:
    """Return a DATA frame with one whole, uncompressed gRPC message."""
    return data(stream, struct.pack(">BI", 0, len(content)) + content, ends=ends)


def data(stream: int, content: bytes = b"", *, ends: bool = False) -> bytes:
    """Return a DATA frame with these bytes."""
    return DataFrame(stream, content, flags=["END_STREAM"] if ends else []).serialize()
