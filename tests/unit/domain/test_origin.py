"""A call's origin is its caller's, and distinct from any other call's."""

import asyncio
from contextvars import copy_context

from service.domain.call import Call, begin_call, current_call
from service.domain.origin import Origin, origin_of_call


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
