"""Callers that go away, or stop reading."""

import asyncio
import logging
import time
from typing import Any

import grpc


async def write(
    context: "grpc.aio.ServicerContext[Any, Any]", message: Any, deadline_seconds: float | None = None
) -> None:
    """Write the next message of a stream, once the caller has read enough of what was written before.

    `deadline_seconds` is on `time.monotonic()`'s clock.

    Raises:
        CancelledError: the caller has gone, or had not read enough by the deadline: a status would have to wait, too.
    """
    try:
        async with asyncio.timeout(None if deadline_seconds is None else deadline_seconds - time.monotonic()):
            await context.write(message)
    except (TimeoutError, grpc.aio.InternalError) as error:  # gRPC's: the connection broke, and we are not told yet
        raise asyncio.CancelledError from error


def is_worth_logging(record: logging.LogRecord) -> bool:
    """A filter for gRPC's logger: whether this is more than a caller who went while its answer was being sent."""
    return not (record.exc_info and isinstance(record.exc_info[1], grpc.aio.InternalError))
