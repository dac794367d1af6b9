"""Work after its call: paid for by its caller, waited for by a stop, and ended by a close."""

import asyncio

from service.calls.open_calls import OpenCalls
from service.domain.call import Call, begin_call, current_call
from service.faces.http.documents.background import BackgroundWork
from tests.patience import patient


def test_a_stop_waits_for_it() -> None:
    async def scenario() -> None:
        open_calls, may_end = OpenCalls(), asyncio.Event()
        work = BackgroundWork(open_calls)

        async def wait() -> None:
            await may_end.wait()

        task = work.start(wait)
        waiting = asyncio.create_task(open_calls.none_for(0.0))
        await asyncio.sleep(0)
        assert not waiting.done()
        may_end.set()
        await asyncio.wait_for(waiting, patient(30))
        assert task.done()

    asyncio.run(scenario())


def test_a_close_ends_it_even_before_it_began() -> None:
    async def scenario() -> None:
        open_calls = OpenCalls()
        work = BackgroundWork(open_calls)

        async def wait() -> None:
            await asyncio.Event().wait()

        first = work.start(wait)
        await asyncio.sleep(0)
        second = work.start(wait)
        await work.close()
        assert first.cancelled()
        assert second.cancelled()
        await asyncio.wait_for(open_calls.none_for(0.0), patient(30))

    asyncio.run(scenario())


def test_it_is_a_call_of_the_same_caller() -> None:
    async def scenario() -> None:
        call = Call("method", "id", origin=("alice", 1))
        begin_call(call)
        found = []

        async def work() -> None:
            found.append(current_call())

        await BackgroundWork(OpenCalls()).start(work)
        assert found[0] is not call
        assert (found[0].request_id, found[0].origin[0], current_call()) == ("id", "alice", call)

    asyncio.run(scenario())
