"""Turns among callers."""

import asyncio

from service.calls.turns import Turns


def test_callers_take_turns_however_many_each_has_waiting() -> None:
    async def order() -> list[str]:
        turns, found = Turns(1), list[str]()

        async def work(caller: str) -> None:
            await turns.take(caller)
            found.append(caller)
            turns.give_back()

        await turns.take("first")
        tasks = [asyncio.create_task(work(caller)) for caller in "aaaabbc"]
        await asyncio.sleep(0)
        turns.give_back()
        await asyncio.gather(*tasks)
        assert turns.num_free == 1
        return found

    assert asyncio.run(order()) == list("abcabaa")


def test_who_gives_up_while_waiting_takes_nobodys_turn() -> None:
    async def run() -> None:
        turns = Turns(1)
        await turns.take("a")
        waiting = [asyncio.create_task(turns.take(caller)) for caller in "bcd"]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        turns.give_back()
        waiting[1].cancel()  # it has been given the turn, and does not know yet
        await waiting[2]
        assert [each.cancelled() for each in waiting] == [True, True, False]
        turns.give_back()
        assert turns.num_free == 1

    asyncio.run(run())
