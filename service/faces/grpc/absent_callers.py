"""Handling of callers that disconnect or stop reading."""

import asyncio
import logging
import time
import traceback
from typing import Any, NoReturn

import grpc

from service.faces.grpc.status import Metadata, RpcStatus

_LOG = logging.getLogger(__name__)


async def write(
    context: "grpc.aio.ServicerContext[Any, Any]", message: Any, deadline_seconds: float | None = None
) -> None:
    """Write the next message of a stream once the caller has read enough of the previous ones.

    Raise `CancelledError` if the caller is gone, or too slow for the deadline (of `time.monotonic()`); a status would
    wait, too.
    """
    try:
        async with asyncio.timeout(None if deadline_seconds is None else deadline_seconds - time.monotonic()):
            await context.write(message)
    except (TimeoutError, grpc.aio.InternalError) as error:  # gRPC's: the connection broke, not reported yet
        raise asyncio.CancelledError from error


async def end(
    context: "grpc.aio.ServicerContext[Any, Any]", status: RpcStatus, more_trailers: Metadata = ()
) -> NoReturn:
    """End the call with this status; its own trailers come last.

    Raise `AbortError`, as the call has ended, or `CancelledError` if the caller is gone and misses the status.
    """
    try:
        await context.abort(status.code, status.message, (*more_trailers, *status.trailing_metadata))
    except (asyncio.CancelledError, grpc.aio.AbortError):
        raise
    except Exception as error:  # grpc's own class, which has no public name
        _LOG.debug("the caller disconnected before its %s", status.code.name)
        raise asyncio.CancelledError from error


def forget(error: grpc.aio.AbortError) -> None:
    """Remove an error's references to the call that it ended. gRPC keeps the error with the call, and the error keeps
    its frames, which refer to the message and the call: all of that would stay in memory until garbage is collected."""
    traceback.clear_frames(error.__traceback__)
    error.__context__ = error.__traceback__ = None


def is_worth_logging(record: logging.LogRecord) -> bool:
    """Filter gRPC's log: drop records of callers that disconnected while their answer was being sent."""
    return not (record.exc_info and isinstance(record.exc_info[1], grpc.aio.InternalError))
