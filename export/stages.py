"""Tells of each stage of an export with the seconds that it took, and how far a long one has come."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")


def progress(items: Sequence[T], what: str) -> "tqdm[T]":
    """Go through `items` with a bar on the terminal, which vanishes at the end; elsewhere without."""
    return tqdm(items, desc=what, leave=False, disable=None)


class Stages:
    """A clock that starts now and is read at the end of each stage."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._since = time.monotonic()

    def done(self, stage: str, text: str) -> None:
        """Say what a stage did."""
        now = time.monotonic()
        self._say(f"{stage:<7} {now - self._since:6.1f} s  {text}")
        self._since = now
