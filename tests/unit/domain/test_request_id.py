"""Request ids."""

import asyncio
from contextvars import copy_context
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain import request_id


@given(st.text(min_size=1, max_size=128, alphabet=st.characters(min_codepoint=0x21, max_codepoint=0x7E)))
@settings(derandomize=True, deadline=None)
def test_a_usable_id_is_kept(given_id: str) -> None:
    call = copy_context()
    assert call.run(request_id.begin, [("other", "x"), ("x-request-id", given_id)]) == given_id
    assert call.run(request_id.current) == given_id
    assert request_id.current() == request_id.NONE


def test_an_unusable_one_is_replaced() -> None:
    for metadata in ([], [("x-request-id", "")], [("x-request-id", "a b")], [("x-request-id", "ä")]):
        first, second = (copy_context().run(request_id.begin, metadata) for _ in range(2))
        assert len(first) == 16
        assert first != second


def test_each_task_has_its_own() -> None:
    async def call(given_id: str) -> Any:
        request_id.begin([("x-request-id", given_id)])
        await asyncio.sleep(0)
        return request_id.current()

    async def calls() -> Any:
        return await asyncio.gather(*(call(f"call-{number}") for number in range(20)))

    assert asyncio.run(calls()) == [f"call-{number}" for number in range(20)]
