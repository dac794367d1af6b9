"""A connection that does what no well-behaved client does: floods, half a message, silence."""

import socket
import time
from collections.abc import Iterator
from typing import Self

from benchmarks.http2_frames import (
    ACK,
    DATA,
    FIRST_WINDOW_BYTES,
    HEADERS,
    MAX_FRAME_BYTES,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Frame,
    FrameReader,
    frame,
    settings,
)
from tests.servers import TIMEOUT_SECONDS

METHOD = "/dragoman.v1.TranslationService/"  # and a name


class RawConnection:
    """A socket that speaks HTTP/2 as far as its test wants it to; what arrives is read when asked for."""

    def __init__(self, port: int, values: dict[int, int] | None = None) -> None:
        """Connect, and send the preface with these settings."""
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)
        self._reader = FrameReader()
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

    def pour(self, messages: dict[int, bytes], window_bytes: int, rest_seconds: float = 0.5) -> dict[int, bytes]:
        """Send streams' bytes as far as the server's windows allow, first of all `window_bytes` of each, until all are
        sent or ended, or the server says nothing more for a while.

        Returns:
            The fields that ended streams, as HPACK has them.
        """
        left = {stream: memoryview(content) for stream, content in messages.items()}
        windows = dict.fromkeys([*left], window_bytes) | {0: FIRST_WINDOW_BYTES}
        ended: dict[int, bytes] = {}
        while True:
            for stream in [*left]:
                while left[stream] and (room := min(windows[stream], windows[0], MAX_FRAME_BYTES)) > 0:
                    part = left[stream][:room]
                    self.send(frame(DATA, stream=stream, payload=bytes(part)))
                    left[stream] = left[stream][room:]
                    windows[stream] -= len(part)
                    windows[0] -= len(part)
            try:
                found = next(self.frames(rest_seconds))
            except (TimeoutError, StopIteration):
                return ended
            if found.kind == WINDOW_UPDATE and found.stream in windows:
                windows[found.stream] += int.from_bytes(found.payload)
            elif found.kind == HEADERS or found.kind == RST_STREAM:
                ended.setdefault(found.stream, found.payload)
                left.pop(found.stream, None)
            if not left:
                return ended

    def frames(self, timeout_seconds: float = TIMEOUT_SECONDS) -> Iterator[Frame]:
        """All frames until the server closes the connection.

        Raises:
            ConnectionError: it was reset.
            TimeoutError: it is still open after `timeout_seconds`.
        """
        end = time.monotonic() + timeout_seconds
        while True:
            yield from self._reader.frames()
            self.socket.settimeout(max(end - time.monotonic(), 0.001))
            received = self.socket.recv(65_536)
            if not received:
                return
            self._reader.feed(received)
