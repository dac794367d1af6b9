"""Takes a binary file's content part by part, never beyond its end."""

import struct


class ByteReader:
    """Takes parts of a file, one after the other; a `ValueError` if it has fewer bytes than it claims."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data, self._position = memoryview(data), 0

    def take(self, count: int) -> memoryview:
        end = self._position + count
        if end > len(self._data):
            raise ValueError(f"it is cut short: it has {len(self._data)} of {end} bytes")
        part, self._position = self._data[self._position : end], end
        return part

    def numbers(self, layout: str) -> tuple[int, ...]:
        """Return the next little-endian numbers, of a layout of `struct`."""
        return struct.unpack(f"<{layout}", self.take(struct.calcsize(f"<{layout}")))

    def name(self, length: int) -> str:
        """Return the next name, whose length includes the NUL at its end."""
        text = bytes(self.take(length))
        if not text.endswith(b"\0") or not text[:-1].isascii() or not text[:-1].decode().isprintable():
            raise ValueError(f"it names an item {text[:40]!r}, which is no name that ends with NUL")
        return text[:-1].decode()
