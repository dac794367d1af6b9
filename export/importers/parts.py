"""Reads a checkpoint part by part, so that all of its problems are found at once."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def read_part(name: str, read: Callable[[], T], problems: list[str]) -> T | None:
    """Return the result of `read`; on `ValueError`, return `None` and add a line starting with `name` to `problems`."""
    try:
        return read()
    except ValueError as error:
        problems.append(f"{name}: {error}")
        return None
