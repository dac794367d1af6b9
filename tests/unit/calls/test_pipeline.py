"""What calls carry, and how they are observed: nothing goes over between calls, except on one stream."""

import asyncio
import random
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.calls.pipeline import CallObserver, CallPipeline, LeastTime, api_key_in, request_id_in
from service.domain.call import Call, Caller, begin_call, current_call
from service.domain.errors import ServiceError
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors

TYPICAL = 0.005
CALLS_PER_SECOND = 1000


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
    assert 'dragoman_requests_total{code="INTERNAL",kind="other",method="m"} 1.0' in text


def learned(num_late: int, least: LeastTime | None = None) -> LeastTime:
    least = least or LeastTime()
    for _ in range(100):
        least.in_time(TYPICAL, 0.0)
    for _ in range(num_late):
        least.late(0.0)
    return least


def test_nothing_is_asked_for_while_calls_are_in_time() -> None:
    assert LeastTime().seconds(0.0) == 0.0
    assert learned(0).seconds(0.0) == 0.0


def test_without_a_call_in_time_late_ones_teach_nothing() -> None:
    least = LeastTime()
    for _ in range(100):
        least.late(0.0)
    assert least.seconds(0.0) == 0.0


def test_late_calls_raise_it_up_to_a_few_typical_times() -> None:
    few, many = learned(5).seconds(0.0), learned(1000).seconds(0.0)
    assert 0.0 < few < many == pytest.approx(3 * TYPICAL)


def test_it_fades_when_nothing_ends() -> None:
    least = learned(1000)
    assert least.seconds(0.5) == pytest.approx(least.seconds(0.0) / 2)
    assert least.seconds(60.0) < 1e-9


@pytest.mark.parametrize("left_seconds", [0.010, 0.040])
def test_few_of_the_accepted_calls_are_late(left_seconds: float) -> None:
    rng = random.Random(7)
    least, accepted, late = LeastTime(), 0, 0
    for number in range(20 * CALLS_PER_SECOND):
        now = number / CALLS_PER_SECOND
        left, needed = rng.uniform(0.0, left_seconds), rng.gauss(TYPICAL, TYPICAL / 5)
        if left < least.seconds(now):
            continue
        if number > 5 * CALLS_PER_SECOND:
            accepted += 1
            late += left < needed
        if left < needed:
            least.late(now)
        else:
            least.in_time(needed, now)
    assert accepted > 0.3 * 15 * CALLS_PER_SECOND * (1 - TYPICAL / left_seconds)  # not by rejecting all of them
    assert late / accepted < 0.1


def test_short_deadlines_are_not_all_rejected_because_some_calls_are_late() -> None:
    rng = random.Random(7)
    least, num_accepted = LeastTime(), 0
    for number in range(20 * CALLS_PER_SECOND):
        now, left, needed = number / CALLS_PER_SECOND, 2.5 * TYPICAL, rng.expovariate(1 / TYPICAL)
        if left < least.seconds(now):
            continue
        num_accepted += 1
        if left < needed:
            least.late(now)
        else:
            least.in_time(needed, now)
    assert num_accepted > 0.9 * 20 * CALLS_PER_SECOND


@given(
    st.lists(
        st.tuples(st.booleans(), st.floats(0.0, 100.0), st.floats(0.0, 10.0)), max_size=100
    )  # late, duration, time since the last
)
def test_it_stays_between_0_and_the_most(events: list[tuple[bool, float, float]]) -> None:
    least, now, longest = LeastTime(), 0.0, 0.0
    for is_late, seconds, since in events:
        now += since
        if is_late:
            least.late(now)
        else:
            least.in_time(seconds, now)
            longest = max(longest, seconds)
        assert 0.0 <= least.seconds(now) <= 3.0 * longest * (1 + 1e-9)
