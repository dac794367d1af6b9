"""Whose a call is: its caller's, and no other call's."""

import asyncio
from contextvars import copy_context

from service.domain import origin
from service.domain.origin import Origin


def test_each_call_of_a_caller_is_its_own() -> None:
    async def call(*caller: str) -> Origin:
        origin.begin(*caller)
        await asyncio.sleep(0)
        return origin.current()

    async def calls() -> tuple[Origin, ...]:
        return await asyncio.gather(call("host", "connection"), call("host", "connection"), call("key"))

    first, second, third = asyncio.run(calls())
    assert first[:-1] == second[:-1] == ("host", "connection")
    assert third[:-1] == ("key",)
    assert len({first, second, third}) == 3
    assert first == first[:-1] + first[-1:]


def test_another_call_is_the_same_callers() -> None:
    def scenario() -> None:
        origin.begin("host", "connection")
        before = origin.current()
        origin.begin_another()
        assert origin.current()[:-1] == before[:-1]
        assert origin.current() != before

    copy_context().run(scenario)
    assert origin.current() == ()
