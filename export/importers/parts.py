"""Reads a checkpoint part by part, so that all that is wrong with it is found at once."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def read_part(name: str, read: Callable[[], T], problems: list[str]) -> T | None:
    """What `read` gives; or, if it raises `ValueError`, `None` and a line in `problems` that begins with `name`."""
    try:
        return read()
    except ValueError as error:
        problems.append(f"{name}: {error}")
        return None
