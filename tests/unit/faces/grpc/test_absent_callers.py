"""A caller that disconnects just as its answer is sent is not an error worth logging."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from service.faces.grpc import server
from service.faces.grpc.absent_callers import is_worth_logging
from service.faces.grpc.calls import behaviour_of
from tests.patience import patient


def record_of(message: str, error: Exception) -> logging.LogRecord:
    return logging.LogRecord("x", logging.ERROR, "x.py", 1, message, ("/x/y",), (type(error), error, None))


@pytest.mark.parametrize(
    ("error", "is_worth"), [(grpc.aio.InternalError("failed"), False), (ValueError("a bug"), True)]
)
def test_only_what_tells_of_a_caller_who_went_is_left_out(error: Exception, is_worth: bool) -> None:
    gone = "ExecuteBatchError raised in core by servicer method [%s]"
    assert is_worth_logging(record_of(gone, error)) is is_worth


def test_other_loggers_keep_their_lines(caplog: pytest.LogCaptureFixture) -> None:
    error = grpc.aio.InternalError("failed")
    gone = "ExecuteBatchError raised in core by servicer method [%s]"
    logging.getLogger("service.x").error(gone, "/x/y", exc_info=error)
    assert len(caplog.records) == 1


class Broken:
    """The context of a call whose connection broke, which gRPC has not reported yet."""

    async def write(self, message: bytes) -> None:
        raise grpc.aio.InternalError("failed")


def test_a_library_s_handler_is_cancelled_too() -> None:
    """Such as that of reflection, which yields its answers: it would be logged as a bug of ours."""

    async def answers(requests: Any, context: Any) -> AsyncIterator[bytes]:
        yield b"answer"

    behaviour: Any = behaviour_of(grpc.stream_stream_rpc_method_handler(answers))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(behaviour(None, Broken()))


def test_grpc_logs_them_under_the_name_that_is_filtered() -> None:
    """The name is gRPC's own affair: a version with another one would fill the log."""
    program = f"import grpc.aio, logging; print({server.GRPC_LOGGER!r} in logging.root.manager.loggerDict)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=patient(60), check=True
    )
    assert done.stdout == "True\n"
