"""Calls are open until their whole answer is sent; those of services that do not count are not awaited."""

import asyncio
from typing import Any

import grpc
import pytest

from service.calls.open_calls import OpenCalls
from service.calls.pipeline import CallObserver, CallPipeline
from service.domain.errors import NotFound
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors
from tests.patience import patient
from tests.unit.faces.grpc.served_call import Context, serve

OWN = "/dragoman.v1.TranslationService/Translate"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
SOON_SECONDS = 0.01
LIMIT_SECONDS = patient(30.0)


def pipeline() -> CallPipeline:
    metrics, errors = Metrics(), RecentErrors()
    observer = CallObserver(metrics, errors, AccessLog(0.0, with_texts=False))
    return CallPipeline(metrics, observer, lambda _: None)


async def answered(open_calls: OpenCalls, method: str = OWN, *, failing: bool = False) -> Context:
    """Return a call whose handler has returned, or raised, and whose answer is not sent."""

    async def answer(request: bytes, context: Any) -> bytes:
        if failing:
            raise NotFound("planted", "model", "x")
        return request

    context = Context()
    if failing:
        with pytest.raises(grpc.aio.AbortError):
            await serve(method, answer, context, pipeline(), open_calls)
        assert context.ended
        assert context.ended[0] is grpc.StatusCode.NOT_FOUND
    else:
        assert await serve(method, answer, context, pipeline(), open_calls) == b""
    return context


async def test_without_calls_there_is_nothing_to_wait_for() -> None:
    await asyncio.wait_for(OpenCalls().none_for(SOON_SECONDS), LIMIT_SECONDS)


@pytest.mark.parametrize("failing", [False, True])
async def test_a_call_is_open_until_its_answer_is_sent(failing: bool) -> None:
    open_calls = OpenCalls()
    first, second = [await answered(open_calls, failing=failing) for _ in range(2)]
    waiting = asyncio.create_task(open_calls.none_for(0))
    for context in (first, second):
        assert not (await asyncio.wait({waiting}, timeout=SOON_SECONDS))[0]
        context.sent(context)
    await asyncio.wait_for(waiting, LIMIT_SECONDS)


async def test_a_call_that_comes_while_the_time_runs_is_waited_for() -> None:
    open_calls = OpenCalls()
    waiting = asyncio.create_task(open_calls.none_for(SOON_SECONDS))
    await asyncio.sleep(0)  # lets the time limit start
    late = await answered(open_calls)
    assert not (await asyncio.wait({waiting}, timeout=5 * SOON_SECONDS))[0]
    late.sent(late)
    await asyncio.wait_for(waiting, LIMIT_SECONDS)


async def test_ignored_services_have_no_open_calls() -> None:
    open_calls = OpenCalls(ignored=("grpc.reflection.v1alpha.ServerReflection",))
    await answered(open_calls, REFLECTION)
    await asyncio.wait_for(open_calls.none_for(0), LIMIT_SECONDS)
