"""Writes the messages of a stream, to callers who may go at any moment."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

Write = Callable[[Any], Awaitable[None]]


def writer(context: "grpc.aio.ServicerContext[Any, Any]") -> Write:
    """How to write one message to the call's stream, whose caller may have gone: then the call is cancelled.

    gRPC says so by one of two errors of its own, and cancels the call's task a moment later.
    """

    async def write(message: Any) -> None:
        try:
            await context.write(message)
        except (grpc.aio.InternalError, grpc.aio.UsageError) as error:
            raise asyncio.CancelledError from error

    return write
