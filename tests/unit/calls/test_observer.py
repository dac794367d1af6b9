"""The observer carries nothing over between calls, except on one stream."""

import asyncio
from unittest.mock import Mock

import pytest

from service.calls.observer import CallObserver
from service.calls.pipeline import CallPipeline
from service.domain.call import Call, Caller, begin_call, current_call
from service.domain.errors import ServiceError
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors


def test_calls_on_a_stream_have_its_caller_and_records_of_their_own() -> None:
    async def one() -> Call:
        call = current_call().another()
        begin_call(call)
        observer = CallObserver(Metrics(), RecentErrors(), AccessLog(0.0, with_texts=False))
        span = observer.begin(call)
        assert current_call() is call
        observer.end(call, span)
        return call

    async def stream() -> list[Call]:
        begin_call(Call("m", caller=Caller("ci", "", Mock())))
        return list(await asyncio.gather(one(), one()))

    first, second = asyncio.run(stream())
    assert first is not second
    assert (first.key_name, second.key_name, asyncio.run(one()).key_name) == ("ci", "ci", "")


def test_a_call_that_raises_is_over_too() -> None:
    metrics = Metrics()
    observer = CallObserver(metrics, RecentErrors(), AccessLog(0.0, with_texts=False))
    call = Call("m")
    call.asks_for(["a text"])

    async def work() -> None:
        raise KeyError

    with pytest.raises(ServiceError):
        asyncio.run(CallPipeline(metrics, observer, lambda _: None).serve(call, work))
    assert call.ended_seconds
    assert (list(call.texts), call.num_texts) == ([], 1)
    text = metrics.render()[0].decode()
    assert "dragoman_inflight_requests 0.0" in text
    assert 'dragoman_requests_total{code="INTERNAL",method="m"} 1.0' in text
