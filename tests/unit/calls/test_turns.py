"""Turns among callers: so many, so many of one, and in turn."""

import asyncio
import time
from contextlib import AsyncExitStack

import pytest

from service.calls.turns import DocumentTurns, Turns, current_caller, share_of
from service.domain.call import Call, begin_call
from service.domain.errors import DeadlineExceeded, Overloaded
from tests.patience import patient


def test_callers_take_turns_however_many_each_has_waiting() -> None:
    async def order() -> list[str]:
        turns, found = Turns(1), list[str]()

        async def work(caller: str) -> None:
            await turns.take(caller)
            found.append(caller)
            turns.give_back(caller)

        await turns.take("first")
        tasks = [asyncio.create_task(work(caller)) for caller in "aaaabbc"]
        await asyncio.sleep(0)
        turns.give_back("first")
        await asyncio.gather(*tasks)
        assert turns.num_free == 1
        return found

    assert asyncio.run(order()) == list("abcabaa")


async def test_who_gives_up_while_waiting_takes_nobodys_turn() -> None:
    turns = Turns(1)
    await turns.take("a")
    waiting = [asyncio.create_task(turns.take(caller)) for caller in "bcd"]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    turns.give_back("a")
    waiting[1].cancel()  # it has been given the turn, and does not know yet
    await waiting[2]
    assert [each.cancelled() for each in waiting] == [True, True, False]
    turns.give_back("d")
    assert turns.num_free == 1


async def test_one_caller_has_at_most_its_own() -> None:
    turns = Turns(3, most_of_one=1)
    assert turns.take_free("a")
    assert not turns.take_free("a")
    assert turns.take_free("b")
    waiting = [asyncio.create_task(turns.take(caller)) for caller in "ab"]
    await asyncio.sleep(0)
    assert (turns.num_free, turns.num_waiting, turns.num_waiting_of("a")) == (1, 2, 1)
    turns.give_back("b")
    await waiting[1]
    assert not waiting[0].done()
    turns.give_back("a")
    await waiting[0]


def soon() -> float:
    return time.monotonic() + patient(30)


class Line:
    """Tasks that want turns, and the order in which they got them."""

    def __init__(self, most_at_once: int = 1, most_of_one: int = 1, most_waiting: int = 100) -> None:
        self.turns = DocumentTurns(most_at_once, most_of_one, most_waiting)
        self.got: list[str] = []

    async def want(self, caller: str, ends: asyncio.Event | None = None, num_bytes: int = 1) -> "asyncio.Task[None]":
        """Start a task that has its turn until `ends` is set, and let it wait."""

        async def have() -> None:
            async with self.turns.turn(caller, num_bytes, soon()):
                self.got.append(caller)
                if ends is not None:
                    await ends.wait()

        task = asyncio.create_task(have())
        await asyncio.sleep(0)
        return task


async def test_one_caller_leaves_turns_to_others() -> None:
    line, ends = Line(most_at_once=3, most_of_one=2), asyncio.Event()
    tasks = [await line.want("a", ends) for _ in range(4)]
    assert line.got == ["a", "a"]
    tasks += [await line.want(each, ends) for each in "bb"]
    assert line.got == ["a", "a", "b"]
    ends.set()
    await asyncio.wait_for(asyncio.gather(*tasks), patient(30))
    assert sorted(line.got) == list("aaaabb")


async def test_a_share_of_those_that_wait() -> None:
    line, ends = Line(most_waiting=4), asyncio.Event()
    tasks = [await line.want(each, ends) for each in "aaab"]
    with pytest.raises(Overloaded) as raised:
        await (await line.want("a"))
    assert str(raised.value) == "your documents being translated: 1, waiting: 2; try again later."
    assert raised.value.retry_after_seconds > 0
    tasks.append(await line.want("c", ends))
    with pytest.raises(Overloaded, match="your documents being translated: 0, waiting: 0"):
        await (await line.want("d"))
    ends.set()
    await asyncio.wait_for(asyncio.gather(*tasks), patient(30))


async def test_turns_are_fair_in_bytes() -> None:
    """A small document overtakes large ones of others, and a large one does not wait for all small ones."""
    line, ends = Line(), asyncio.Event()
    tasks = [await line.want("a", ends)]
    tasks += [await line.want(caller, num_bytes=100) for caller in "bc"]
    tasks += [await line.want("d", num_bytes=40) for _ in "123"]
    tasks.append(await line.want("e"))
    ends.set()
    await asyncio.wait_for(asyncio.gather(*tasks), patient(30))
    assert line.got == list("aebcddd")
    assert not line.turns._claims


async def test_whoever_leaves_the_line_leaves_nothing_behind() -> None:
    line, ends = Line(), asyncio.Event()
    first = await line.want("a", ends)
    for cancels_before in (True, False):
        waiting = await line.want("b")
        last = await line.want("c")
        if cancels_before:
            waiting.cancel()
        first.cancel()
        await asyncio.sleep(0)
        waiting.cancel()  # when it has just been given its turn
        await asyncio.wait({first, waiting, last}, timeout=patient(30))
        assert last.done()
        first = await line.want("a", ends)
        assert line.got[-2:] == ["c", "a"]
    first.cancel()
    await asyncio.wait({first})


async def test_the_deadline_ends_the_wait() -> None:
    turns = DocumentTurns(1, 1, 10)
    async with turns.turn("a", 1, soon()):
        with pytest.raises(DeadlineExceeded, match="the deadline passed while the document waited for others"):
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(turns.turn("b", 1, time.monotonic() + 0.01))
    async with turns.turn("b", 1, soon()):
        pass


@pytest.mark.parametrize(("others", "share"), [(0, 8), (8, 4), (12, 2), (15, 1), (16, 0)])
def test_a_share_is_half_of_what_others_leave(others: int, share: int) -> None:
    assert share_of(16, others) == share


async def test_a_caller_is_a_key_or_a_host() -> None:
    assert current_caller() == ""
    begin_call(Call(origin=("192.0.2.1", "192.0.2.1:80", object())))
    assert current_caller() == "192.0.2.1"
