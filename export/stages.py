"""Reports each stage of an export with its duration in seconds, and the progress of long stages."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")


def progress(items: Sequence[T], what: str) -> "tqdm[T]":
    """Iterate over `items` with a progress bar that vanishes at the end; without a bar if not on a terminal."""
    return tqdm(items, desc=what, leave=False, disable=None)


class Stages:
    """A clock that starts on creation and is read at the end of each stage."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._since = time.monotonic()

    def done(self, stage: str, text: str) -> None:
        now = time.monotonic()
        self._say(f"{stage:<7} {now - self._since:6.1f} s  {text}")
        self._since = now
