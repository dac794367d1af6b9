"""HTTP/2 by hand (RFC 9113, RFC 7541), for what no well-behaved client does: floods, half a message, silence."""

import socket
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple, Self

from tests.servers import TIMEOUT_SECONDS

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM = ACK = 1
END_HEADERS = 4
REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 7, 8, 11
INITIAL_WINDOW_SIZE = 4  # a setting

METHOD = "/dragoman.v1.TranslationService/"


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
    fields = {":method": "POST", ":scheme": "http", ":path": method, ":authority": "localhost", "te": "trailers"}
    fields |= {"content-type": "application/grpc"} | (metadata or {})
    block = b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields.items())
    return frame(HEADERS, END_HEADERS, stream, block)


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


class RawConnection:
    """A socket that speaks HTTP/2 as far as its test wants it to; what arrives is read when asked for."""

    def __init__(self, port: int, values: dict[int, int] | None = None) -> None:
        """Connect, and send the preface with these settings."""
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)
        self._received = b""
        self.socket.sendall(PREFACE + settings(values))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, content: bytes) -> None:
        """Send bytes, whatever they are."""
        self.socket.sendall(content)

    def greeted(self) -> Frame:
        """The server's SETTINGS, which are acknowledged: from here on it counts us as connected."""
        found = self.until(SETTINGS)
        self.send(frame(SETTINGS, ACK))
        return found

    def until(self, kind: int, timeout_seconds: float = TIMEOUT_SECONDS) -> Frame:
        """The next frame of this kind.

        Raises:
            ConnectionError: the connection ended before.
            TimeoutError: there was none in time.
        """
        for found in self.frames(timeout_seconds):
            if found.kind == kind:
                return found
        raise ConnectionError(f"the server closed the connection without a frame of kind {kind}")

    def frames(self, timeout_seconds: float = TIMEOUT_SECONDS) -> Iterator[Frame]:
        """All frames until the server closes the connection.

        Raises:
            ConnectionError: it was reset.
            TimeoutError: it is still open after `timeout_seconds`.
        """
        end = time.monotonic() + timeout_seconds
        while True:
            while (found := self._next()) is None:
                self.socket.settimeout(max(end - time.monotonic(), 0.001))
                received = self.socket.recv(65_536)
                if not received:
                    return
                self._received += received
            yield found

    def _next(self) -> Frame | None:
        if len(self._received) < 9:
            return None
        size = int.from_bytes(self._received[:3])
        if len(self._received) < 9 + size:
            return None
        kind, flags, stream = struct.unpack(">BBI", self._received[3:9])
        payload, self._received = self._received[9 : 9 + size], self._received[9 + size :]
        return Frame(kind, flags, stream & 0x7FFF_FFFF, payload)
