import asyncio
from typing import Any, cast

import grpc
import pytest
from grpc._cython import cygrpc  # type: ignore[attr-defined]  # its errors have no other name

from service.rpc.writing import writer


class Told:
    """A call's context that fails as it is told."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.written: list[Any] = []

    async def write(self, message: Any) -> None:
        if self.error is not None:
            raise self.error
        self.written.append(message)


def written(error: Exception | None) -> list[Any]:
    told = Told(error)

    async def write() -> None:
        await writer(cast("grpc.aio.ServicerContext[Any, Any]", told))("message")

    asyncio.run(write())
    return told.written


def test_a_message_is_written() -> None:
    assert written(None) == ["message"]


@pytest.mark.parametrize("error", [cygrpc.ExecuteBatchError("failed"), cygrpc.UsageError("RPC already finished.")])
def test_a_caller_who_has_gone_cancels_the_call(error: Exception) -> None:
    with pytest.raises(asyncio.CancelledError):
        written(error)


def test_what_is_wrong_here_is_no_caller_who_has_gone() -> None:
    with pytest.raises(TypeError):
        written(TypeError("not a message"))
