"""By when a call must be answered."""

import time
from typing import Any

import grpc


def deadline_of(context: "grpc.aio.ServicerContext[Any, Any]", default_seconds: float) -> float:
    """The caller's deadline, or the one that a call without gets, on `time.monotonic()`'s clock."""
    remaining = context.time_remaining()
    return time.monotonic() + (default_seconds if remaining is None else remaining)
