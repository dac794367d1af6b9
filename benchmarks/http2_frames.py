"""HTTP/2 by hand (RFC 9113, RFC 7541), as much of it as makes gRPC calls: frames as bytes, and bytes as frames."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM = ACK = 1
END_HEADERS = 4
REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 7, 8, 11
HEADER_TABLE_SIZE, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 1, 3, 4  # settings

MAX_FRAME_BYTES = 16_384  # unless a peer's settings allow more
MAX_WINDOW_BYTES = 2**31 - 1
FIRST_WINDOW_BYTES = 65_535  # of the connection; only WINDOW_UPDATE changes it


class Frame(NamedTuple):
    """What a server sent."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def error_code(self) -> int:
        """Of a GOAWAY or a RST_STREAM."""
        code: int = struct.unpack(">I", self.payload[4:8] if self.kind == GOAWAY else self.payload[:4])[0]
        return code

    @property
    def settings(self) -> dict[int, int]:
        """What a SETTINGS says."""
        return dict(struct.iter_unpack(">HI", self.payload))


class FrameReader:
    """Makes frames of what arrives, however it was cut."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, content: bytes) -> None:
        """Take what has arrived."""
        self._received += content

    def frames(self) -> Iterator[Frame]:
        """All that are whole by now."""
        while len(self._received) >= 9:
            size = int.from_bytes(self._received[:3])
            if len(self._received) < 9 + size:
                return
            kind, flags, stream = struct.unpack_from(">BBI", self._received, 3)
            payload = bytes(self._received[9 : 9 + size])
            del self._received[: 9 + size]
            yield Frame(kind, flags, stream & 0x7FFF_FFFF, payload)


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """One frame as bytes."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(values: dict[int, int] | None = None) -> bytes:
    """A SETTINGS frame."""
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", *item) for item in (values or {}).items()))


def ping(number: int = 0) -> bytes:
    """A PING frame."""
    return frame(PING, payload=struct.pack(">Q", number))


def reset(stream: int, code: int = CANCEL) -> bytes:
    """A RST_STREAM frame."""
    return frame(RST_STREAM, stream=stream, payload=struct.pack(">I", code))


def window_update(stream: int, num_bytes: int) -> bytes:
    """A WINDOW_UPDATE frame; stream 0 is the connection."""
    return frame(WINDOW_UPDATE, stream=stream, payload=struct.pack(">I", num_bytes))


def call(stream: int, method: str, metadata: dict[str, str] | None = None) -> bytes:
    """The HEADERS that begin a gRPC call; `method` is a path."""
    return frame(HEADERS, END_HEADERS, stream, header_block(method, metadata))


def header_block(method: str, metadata: dict[str, str] | None = None) -> bytes:
    """The fields of a gRPC call, compressed by nothing, so that a connection may begin any number of calls with it."""
    fields = {":method": "POST", ":scheme": "http", ":path": method, ":authority": "localhost", "te": "trailers"}
    fields |= {"content-type": "application/grpc"} | (metadata or {})
    return b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields.items())


def message(stream: int, content: bytes, *, ends: bool = True) -> bytes:
    """A DATA frame with one whole gRPC message, not compressed."""
    return frame(DATA, END_STREAM if ends else 0, stream, struct.pack(">BI", 0, len(content)) + content)


def _text(value: str) -> bytes:
    """A string as HPACK has it, without Huffman's code."""
    content = value.encode()
    if len(content) < 127:
        return bytes([len(content)]) + content
    length, rest = b"\x7f", len(content) - 127
    while rest >= 128:
        length += bytes([rest % 128 + 128])
        rest //= 128
    return length + bytes([rest]) + content
