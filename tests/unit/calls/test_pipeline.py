"""What calls carry, and how they are observed: nothing goes over between calls, except on one stream."""

import asyncio
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.calls.pipeline import CallObserver, CallPipeline, api_key_in, request_id_in
from service.domain.call import Call, Caller, begin_call, current_call
from service.domain.errors import ServiceError
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors


@given(st.text(min_size=1, max_size=128, alphabet=st.characters(min_codepoint=0x21, max_codepoint=0x7E)))
@settings(derandomize=True, deadline=None)
def test_a_usable_id_is_kept(given_id: str) -> None:
    assert request_id_in([("other", "x"), ("x-request-id", given_id)]) == given_id


def test_an_unusable_one_is_replaced() -> None:
    for metadata in (
        [],
        [("x-request-id", "")],
        [("x-request-id", "a b")],
        [("x-request-id", "ä")],
        [("x-request-id", "x" * 129)],
    ):
        first, second = (request_id_in(metadata) for _ in range(2))
        assert len(first) == 16
        assert first != second


def test_a_key_may_come_under_three_names() -> None:
    assert api_key_in([("authorization", "Bearer  k "), ("x-api-key", "other")]) == "k"
    assert api_key_in([("authorization", "Basic k"), ("x-api-key", "other")]) == "other"
    assert api_key_in([("x-goog-api-key", "k")]) == "k"
    assert api_key_in([("authorization", b"Bearer k")]) == ""


def test_the_scheme_of_deepl_s_clients_is_known_too() -> None:
    assert api_key_in([("authorization", "DeepL-Auth-Key  k "), ("x-api-key", "other")]) == "k"
    assert api_key_in([("authorization", "deepl-auth-key k:fx")]) == "k:fx"
    assert api_key_in([("authorization", "DeepL-Auth-Keyk"), ("x-api-key", "other")]) == "other"


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
