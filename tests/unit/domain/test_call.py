"""The record of a call: durations, ids and origin."""

import asyncio
from contextvars import copy_context

import pytest

from service.domain.call import Call, Origin, Phase, begin_call, current_call, origin_of_call, server_timing
from service.domain.translation import FinishReason, Hypothesis, Translation


def test_what_goes_on_side_by_side_counts_once() -> None:
    record = Call()
    for began, ended in ((5.0, 6.0), (1.0, 3.0), (2.0, 2.5), (2.0, 4.0), (8.0, 8.0)):
        record.intervals.append((Phase.DECODE, began, ended))
    record.intervals.append((Phase.QUEUE, 0.0, 9.0))
    assert record.seconds(Phase.DECODE) == 4.0
    assert record.seconds(Phase.QUEUE) == 9.0
    assert record.seconds(Phase.ENCODE) == 0.0


def test_a_call_ends_once() -> None:
    record = Call()
    record.end()
    total = record.total_seconds
    record.end()
    assert record.total_seconds == total


def test_timing_is_in_milliseconds_as_the_syntax_has_it() -> None:
    record = Call()
    record.intervals.append((Phase.QUEUE, 1.0, 1.00123))
    record.intervals.append((Phase.DECODE, 2.0, 2.5))
    expected = "queue;dur=1.2, encode;dur=0.0, decode;dur=500.0, total;dur=611.0"
    assert server_timing(record.seconds, 0.611) == expected


def test_the_first_model_and_all_tokens_are_kept() -> None:
    record = Call()
    record.uses("a", "2")
    record.uses("b", "1")
    record.translated([Translation("x", (Hypothesis("x", None, 3),), FinishReason.STOP, 4)] * 2)
    record.translated([Translation("y", (Hypothesis("y", None, 1), Hypothesis("z", None, 9)), FinishReason.STOP, 2)])
    assert (record.model, record.model_version) == ("a", "2")
    assert (record.num_source_tokens, record.num_output_tokens) == (10, 7)


def test_tasks_of_a_call_share_its_record_and_other_calls_don_t() -> None:
    async def part(number: int) -> None:
        current_call().intervals.append((Phase.QUEUE, number, number + 1))

    async def call(num_parts: int) -> Call:
        record = Call()
        begin_call(record)
        async with asyncio.TaskGroup() as tasks:
            for number in range(num_parts):
                tasks.create_task(part(number))
        return record

    async def both() -> list[Call]:
        return list(await asyncio.gather(call(2), call(3)))

    assert [record.seconds(Phase.QUEUE) for record in asyncio.run(both())] == [2.0, 3.0]


@pytest.mark.parametrize("phase", Phase)
def test_outside_of_a_call_nothing_is_kept(phase: Phase) -> None:
    current_call().intervals.append((phase, 0.0, 1.0))
    assert not current_call().intervals


def test_each_call_of_a_caller_is_its_own() -> None:
    async def call(*caller: str) -> Origin:
        begin_call(Call(origin=origin_of_call(*caller)))
        await asyncio.sleep(0)
        return current_call().origin

    async def calls() -> tuple[Origin, ...]:
        return await asyncio.gather(call("host", "connection"), call("host", "connection"), call("key"))

    first, second, third = asyncio.run(calls())
    assert first[:-1] == second[:-1] == ("host", "connection")
    assert third[:-1] == ("key",)
    assert len({first, second, third}) == 3
    assert first == first[:-1] + first[-1:]


def test_another_call_is_the_same_callers() -> None:
    def scenario() -> None:
        begin_call(Call(origin=origin_of_call("host", "connection")))
        before = current_call().origin
        begin_call(current_call().another())
        assert current_call().origin[:-1] == before[:-1]
        assert current_call().origin != before

    copy_context().run(scenario)
    assert current_call().origin == ()
