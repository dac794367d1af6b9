"""Calls are open until their whole answer is sent; those of services that do not count are not awaited."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import grpc
import pytest

from service.faces.grpc.interceptors import Handler
from service.faces.grpc.open_calls import OpenCalls
from tests.patience import patient

OWN = "/dragoman.v1.TranslationService/Translate"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
SOON_SECONDS = 0.01
LIMIT_SECONDS = patient(30.0)


class Context:
    """The context of a call whose answer is sent when the test decides."""

    def __init__(self) -> None:
        self.sent: Callable[[Any], None] = lambda _: None

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self.sent = callback


async def answered(open_calls: OpenCalls, method: str = OWN, *, failing: bool = False) -> Context:
    """Return a call whose handler has returned, or raised, and whose answer is not sent."""

    async def answer(request: bytes, context: Any) -> bytes:
        if failing:
            raise ValueError("planted")
        return request

    async def continuation(details: Any) -> Handler:
        return grpc.unary_unary_rpc_method_handler(cast(Any, answer))

    details = cast(grpc.HandlerCallDetails, type("Details", (), {"method": method}))
    handler: Any = await open_calls.intercept_service(continuation, details)
    context = Context()
    if failing:
        with pytest.raises(ValueError, match="planted"):
            await handler.unary_unary(b"", context)
    else:
        await handler.unary_unary(b"", context)
    return context


def test_without_calls_there_is_nothing_to_wait_for() -> None:
    async def scenario() -> None:
        await asyncio.wait_for(OpenCalls().none_for(SOON_SECONDS), LIMIT_SECONDS)

    asyncio.run(scenario())


@pytest.mark.parametrize("failing", [False, True])
def test_a_call_is_open_until_its_answer_is_sent(failing: bool) -> None:
    async def scenario() -> None:
        open_calls = OpenCalls()
        first, second = [await answered(open_calls, failing=failing) for _ in range(2)]
        waiting = asyncio.create_task(open_calls.none_for(0))
        for context in (first, second):
            assert not (await asyncio.wait({waiting}, timeout=SOON_SECONDS))[0]
            context.sent(context)
        await asyncio.wait_for(waiting, LIMIT_SECONDS)

    asyncio.run(scenario())


def test_a_call_that_comes_while_the_time_runs_is_waited_for() -> None:
    async def scenario() -> None:
        open_calls = OpenCalls()
        waiting = asyncio.create_task(open_calls.none_for(SOON_SECONDS))
        await asyncio.sleep(0)  # lets the time limit start
        late = await answered(open_calls)
        assert not (await asyncio.wait({waiting}, timeout=5 * SOON_SECONDS))[0]
        late.sent(late)
        await asyncio.wait_for(waiting, LIMIT_SECONDS)

    asyncio.run(scenario())


def test_ignored_services_have_no_open_calls() -> None:
    async def scenario() -> None:
        open_calls = OpenCalls(ignored=("grpc.reflection.v1alpha.ServerReflection",))
        await answered(open_calls, REFLECTION)
        await asyncio.wait_for(open_calls.none_for(0), LIMIT_SECONDS)

    asyncio.run(scenario())
