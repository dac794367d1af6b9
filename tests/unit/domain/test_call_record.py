"""What a call's record adds up to."""

import asyncio

import pytest

from service.domain import call_record
from service.domain.call_record import CallRecord, Phase, server_timing
from service.domain.translation import FinishReason, Hypothesis, Translation


def test_what_goes_on_side_by_side_counts_once() -> None:
    record = CallRecord()
    for began, ended in ((5.0, 6.0), (1.0, 3.0), (2.0, 2.5), (2.0, 4.0), (8.0, 8.0)):
        record.took(Phase.DECODE, began, ended)
    record.took(Phase.QUEUE, 0.0, 9.0)
    assert record.seconds(Phase.DECODE) == 4.0
    assert record.seconds(Phase.QUEUE) == 9.0
    assert record.seconds(Phase.ENCODE) == 0.0


def test_a_call_ends_once() -> None:
    record = CallRecord()
    record.end()
    total = record.total_seconds
    record.end()
    assert record.total_seconds == total


def test_timing_is_in_milliseconds_as_the_syntax_has_it() -> None:
    record = CallRecord()
    record.took(Phase.QUEUE, 1.0, 1.00123)
    record.took(Phase.DECODE, 2.0, 2.5)
    expected = "queue;dur=1.2, encode;dur=0.0, decode;dur=500.0, total;dur=611.0"
    assert server_timing(record.seconds, 0.611) == expected


def test_the_first_model_and_all_tokens_are_kept() -> None:
    record = CallRecord()
    record.uses("a", "2")
    record.uses("b", "1")
    record.translated([Translation("x", (Hypothesis("x", None, 3),), FinishReason.STOP, 4)] * 2)
    record.translated([Translation("y", (Hypothesis("y", None, 1), Hypothesis("z", None, 9)), FinishReason.STOP, 2)])
    assert (record.model, record.model_version) == ("a", "2")
    assert (record.num_source_tokens, record.num_output_tokens) == (10, 7)


def test_tasks_of_a_call_share_its_record_and_other_calls_don_t() -> None:
    async def part(number: int) -> None:
        call_record.current().took(Phase.QUEUE, number, number + 1)

    async def call(num_parts: int) -> CallRecord:
        record = CallRecord()
        call_record.begin(record)
        async with asyncio.TaskGroup() as tasks:
            for number in range(num_parts):
                tasks.create_task(part(number))
        return record

    async def both() -> list[CallRecord]:
        return list(await asyncio.gather(call(2), call(3)))

    assert [record.seconds(Phase.QUEUE) for record in asyncio.run(both())] == [2.0, 3.0]


@pytest.mark.parametrize("phase", Phase)
def test_outside_of_a_call_nothing_is_kept(phase: Phase) -> None:
    call_record.current().took(phase, 0.0, 1.0)
    assert not call_record.current().intervals
