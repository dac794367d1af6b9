"""What a target makes of the bytes that it is given: choices first, then text."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Source:
    """Reads bytes from the left; where there are no more, numbers are 0 and texts empty."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self) -> int:
        """The next byte."""
        self._position += 1
        return self._data[self._position - 1] if self._position <= len(self._data) else 0

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices, as the next byte says."""
        return choices[self.number() % len(choices)]

    def line(self) -> str:
        """The text up to the next line feed."""
        end = self._data.find(b"\n", self._position)
        end = len(self._data) if end < 0 else end
        found = self._data[self._position : end]
        self._position = end + 1
        return found.decode("utf-8", "ignore")

    def text(self) -> str:
        """All that is left."""
        return self.bytes().decode("utf-8", "ignore")

    def bytes(self) -> bytes:
        """All that is left."""
        left = self._data[self._position :]
        self._position = len(self._data)
        return left
