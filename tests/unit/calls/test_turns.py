"""Turns among callers."""

import asyncio

from service.calls.turns import Turns


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
