"""What interceptors make of what a method raises."""

import asyncio
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from service.metrics import Metrics
from service.rpc.interceptors import ErrorInterceptor


def test_a_caller_who_has_gone_is_no_error_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    """gRPC raises this where an answer can't be written; it was logged as an internal error, with a traceback."""

    async def method(request: Any, context: Any) -> Any:
        raise grpc.aio.InternalError('Failed "execute_batch"')

    async def run() -> None:
        async def handler(_: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(method)

        details: Any = SimpleNamespace(method="/x/y")
        guarded: Any = await ErrorInterceptor(Metrics()).intercept_service(handler, details)
        await guarded.unary_unary(b"", SimpleNamespace())

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert not caplog.records
