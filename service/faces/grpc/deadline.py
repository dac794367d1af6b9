"""Deadlines of calls."""

import time
from typing import Any

import grpc


def deadline_of(context: "grpc.aio.ServicerContext[Any, Any]", default_seconds: float) -> float:
    """Return the caller's deadline, or else the default one, on the clock of `time.monotonic()`."""
    remaining = context.time_remaining()
    return time.monotonic() + (default_seconds if remaining is None else remaining)
