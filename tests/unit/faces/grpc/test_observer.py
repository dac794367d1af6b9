"""What the observer takes from one call to the next: nothing, but for those on one stream."""

import asyncio
from contextvars import copy_context

import pytest

from service.domain import call_record
from service.domain.call_record import CallRecord
from service.faces.grpc.observer import CallObserver
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors

OBSERVER = CallObserver(Metrics(), RecentErrors(), AccessLog(0.0, with_texts=False))


def test_calls_on_a_stream_have_its_caller_and_records_of_their_own() -> None:
    async def one() -> CallRecord:
        with OBSERVER.call("m") as record:
            assert call_record.current() is record
            return record

    async def stream() -> list[CallRecord]:
        call_record.begin(CallRecord("m"))
        call_record.current().caller = "ci"
        return list(await asyncio.gather(one(), one()))

    first, second = asyncio.run(stream())
    assert first is not second
    assert (first.caller, second.caller, asyncio.run(one()).caller) == ("ci", "ci", "")


def test_a_call_that_raises_is_over_too() -> None:
    metrics = Metrics()
    observer = CallObserver(metrics, RecentErrors(), AccessLog(0.0, with_texts=False))
    records = []

    def fail() -> None:
        with observer.call("m") as record:
            records.append(record)
            record.code = "INTERNAL"
            raise KeyError

    with pytest.raises(KeyError):
        copy_context().run(fail)
    (record,) = records
    assert record.ended_seconds
    text = metrics.render()[0].decode()
    assert "dragoman_inflight_requests 0.0" in text
    assert 'dragoman_requests_total{code="INTERNAL",method="m"} 1.0' in text
