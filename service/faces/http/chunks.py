"""Bodies in chunks (RFC 9112 7.1), read strictly: what two readers could understand differently is refused."""

import re
from http import HTTPStatus

from service.faces.http.refusals import HeadRefused

MAX_CHUNKS = 100  # read at once, and of a body whose sender is unknown
_MAX_IGNORED_BYTES = 1024  # of a chunk's size with extensions, and of all trailers
_TRAILER = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*)?\r\n")
_WHOLE = re.compile(rb"([0-9A-Fa-f]{1,5})\r\n")  # begins most chunks, which arrive at once
_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\r\n")


class ChunkReader:
    """Takes a body's content out of received bytes."""

    def __init__(self) -> None:
        self._left = 0  # of the current chunk, and of the line end behind it
        self._trailer_bytes = 0
        self._in_trailers = False
        self.num_chunks = 0
        self.is_complete = False

    def take(self, received: bytearray) -> bytes:
        """Remove and return the content at the beginning of `received`, up to `MAX_CHUNKS` of it, but some if there is
        any.

        Raise `HeadRefused` if it is malformed.
        """
        content: list[bytes | bytearray] = []
        at = 0
        most = self.num_chunks + MAX_CHUNKS
        while not self.is_complete and self.num_chunks <= most and (found := self._next(received, at, content)) > at:
            at = found
        del received[:at]
        return b"".join(content)

    def _next(self, received: bytearray, at: int, content: list[bytes | bytearray]) -> int:
        """Read one piece at `at`, and return where it ends: `at` if more has to arrive first."""
        if not (self._left or self._in_trailers) and (line := _WHOLE.match(received, at)):
            begin, size = line.end(), int(line[1], 16)
            end = begin + size
            if size and received[end : end + 2] == b"\r\n":
                content.append(received[begin:end])
                self.num_chunks += 1
                return end + 2
        if self._left > 2:
            end = min(at + self._left - 2, len(received))
            content.append(received[at:end])
            self._left -= end - at
            return end
        if self._left:
            if len(received) - at < self._left:
                return at
            if received[at : at + 2] != b"\r\n":
                raise _malformed()
            self._left = 0
            return at + 2
        return self._trailer(received, at) if self._in_trailers else self._size(received, at)

    def _size(self, received: bytearray, at: int) -> int:
        end = received.find(b"\n", at, at + _MAX_IGNORED_BYTES) + 1
        if not end:
            if len(received) - at >= _MAX_IGNORED_BYTES:
                raise _malformed()
            return at
        line = _LINE.fullmatch(received, at, end)
        if line is None:
            raise _malformed()
        size = int(line[1], 16)
        self.num_chunks += 1
        self._in_trailers = not size
        self._left = size + 2 if size else 0
        return end

    def _trailer(self, received: bytearray, at: int) -> int:
        end = received.find(b"\n", at) + 1
        self._trailer_bytes += end - at if end else 0
        if self._trailer_bytes + (0 if end else len(received) - at) > _MAX_IGNORED_BYTES:
            raise _malformed()
        if not end:
            return at
        if not _TRAILER.fullmatch(received, at, end):
            raise _malformed()
        self.is_complete = end - at == 2
        return end


def _malformed() -> HeadRefused:
    return HeadRefused(
        HTTPStatus.BAD_REQUEST, "the body's chunks are malformed", advice="send them as RFC 9112 7.1 defines"
    )
