"""A connection that does what no well-behaved client does: floods, incomplete messages, silence."""

import socket
import time
from collections.abc import Iterator
from typing import Self, TypeVar

from hyperframe.frame import Frame, HeadersFrame, RstStreamFrame, SettingsFrame, WindowUpdateFrame

from benchmarks import http2_frames as http2
from tests.servers import TIMEOUT_SECONDS

_Kind = TypeVar("_Kind", bound=Frame)

METHOD = "/dragoman.v1.TranslationService/"  # the method's name follows


class RawConnection:
    """A socket that speaks HTTP/2 as far as its test wants; what arrives is read on request."""

    def __init__(self, port: int, values: dict[int, int] | None = None) -> None:
        """Connect, and send the preface with these settings."""
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)
        self._reader = http2.FrameReader()
        self.socket.sendall(http2.PREFACE + http2.settings(values))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, content: bytes) -> None:
        """Send any bytes."""
        self.socket.sendall(content)

    def greeted(self) -> SettingsFrame:
        """Acknowledge the server's SETTINGS and return them: after that it considers us connected."""
        found = self.until(SettingsFrame)
        self.send(http2.settings_ack())
        return found

    def until(self, kind: type[_Kind], timeout_seconds: float = TIMEOUT_SECONDS) -> _Kind:
        """Return the next frame of this kind.

        Raises:
            ConnectionError: the connection ended before.
            TimeoutError: there was none in time.
        """
        for found in self.frames(timeout_seconds):
            if isinstance(found, kind):
                return found
        raise ConnectionError(f"the server closed the connection without a {kind.__name__}")

    def pour(self, messages: dict[int, bytes], window_bytes: int, rest_seconds: float = 0.5) -> dict[int, bytes]:
        """Send streams' bytes as far as the server's windows allow, first `window_bytes` of each.

        Return when all are sent or ended, or the server sends nothing more for a while.

        Returns:
            The fields that ended streams, in HPACK encoding; none for a stream that was reset.
        """
        left = {stream: memoryview(content) for stream, content in messages.items()}
        windows = dict.fromkeys([*left], window_bytes) | {0: http2.FIRST_WINDOW_BYTES}
        ended: dict[int, bytes] = {}
        while True:
            for stream in [*left]:
                while left[stream] and (room := min(windows[stream], windows[0], http2.MAX_FRAME_BYTES)) > 0:
                    part = bytes(left[stream][:room])
                    self.send(http2.data(stream, part))
                    left[stream] = left[stream][room:]
                    windows[stream] -= len(part)
                    windows[0] -= len(part)
            try:
                found = next(self.frames(rest_seconds))
            except (TimeoutError, StopIteration):
                return ended
            if isinstance(found, WindowUpdateFrame) and found.stream_id in windows:
                windows[found.stream_id] += found.window_increment
            elif isinstance(found, HeadersFrame | RstStreamFrame):
                ended.setdefault(found.stream_id, found.data if isinstance(found, HeadersFrame) else b"")
                left.pop(found.stream_id, None)
            if not left:
                return ended

    def frames(self, timeout_seconds: float = TIMEOUT_SECONDS) -> Iterator[Frame]:
        """Yield all frames until the server closes the connection.

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
