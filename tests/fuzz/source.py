"""A reader that turns a target's input bytes into choices first, then text."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Source:
    """Reads bytes from the left; past the end, numbers are 0 and texts empty."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self) -> int:
        """Return the next byte."""
        self._position += 1
        return self._data[self._position - 1] if self._position <= len(self._data) else 0

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of the choices, selected by the next byte."""
        return choices[self.number() % len(choices)]

    def line(self) -> str:
        """Return the text up to the next line feed."""
        end = self._data.find(b"\n", self._position)
        end = len(self._data) if end < 0 else end
        found = self._data[self._position : end]
        self._position = end + 1
        return found.decode("utf-8", "ignore")

    def text(self) -> str:
        """Return the rest as text."""
        return self.bytes().decode("utf-8", "ignore")

    def bytes(self) -> bytes:
        """Return the rest as bytes."""
        left = self._data[self._position :]
        self._position = len(self._data)
        return left
