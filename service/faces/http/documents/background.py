"""Work that goes on after its call has been answered."""

import asyncio
from collections.abc import Awaitable, Callable

from service.calls.open_calls import OpenCalls
from service.domain.call import begin_call, current_call


class BackgroundWork:
    """Runs such work; a server that stops waits for it as for calls. For the event loop's thread only."""

    def __init__(self, open_calls: OpenCalls) -> None:
        self._open_calls = open_calls
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Callable[[], Awaitable[None]]) -> "asyncio.Task[None]":
        """Start work for the current call's caller, who pays for it."""
        call = current_call().another()

        async def run() -> None:
            begin_call(call)
            await work()

        self._open_calls.began()
        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        """Cancel what still runs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._open_calls.ended()
