"""The event loop of a server process: uvloop's, which is in C, where there is one; else asyncio's. Its tasks."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

try:
    import uvloop
except ImportError:  # on Windows
    new_event_loop = asyncio.new_event_loop
else:
    new_event_loop = uvloop.new_event_loop

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a new event loop and return its result, as `asyncio.run`."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


async def all_of(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of coroutines that run concurrently; the first failure cancels the others, and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
