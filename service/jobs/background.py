"""Work that goes on after its call has been answered."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from service.calls.open_calls import OpenCalls
from service.calls.pipeline import CallPipeline, Metadata
from service.domain.call import begin_call, current_call
from service.domain.errors import ServiceError, Unavailable

_LOG = logging.getLogger(__name__)


class BackgroundWork:
    """Runs such work as a call of its own: counted, logged and traced, and within the quotas of its caller.

    A server that stops waits for it as for other calls. For the event loop's thread only.
    """

    def __init__(self, pipeline: CallPipeline, open_calls: OpenCalls) -> None:
        self._pipeline = pipeline
        self._open_calls = open_calls
        self._tasks: set[asyncio.Task[None]] = set()

    def start(
        self,
        name: str,
        metadata: Metadata,
        work: Callable[[], Awaitable[None]],
        on_failure: Callable[[ServiceError], Awaitable[None]],
    ) -> "asyncio.Task[None]":
        """Start work for the current call's caller, who pays for it, as the call `name` with its id and `metadata`.

        `on_failure` is called if it fails, or is cancelled by `close` once begun; the returned task never fails.
        """
        call = current_call().another()
        call.method = name

        async def run() -> None:
            begin_call(call)
            try:
                await self._pipeline.serve(call, work, metadata, is_background=True)
            except ServiceError as error:
                await _report_failure(on_failure, error.with_traceback(None))
            except asyncio.CancelledError:
                await _report_failure(on_failure, Unavailable("the server is stopping", advice="send it again"))
                raise

        self._open_calls.began()
        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._open_calls.ended()


async def _report_failure(on_failure: Callable[[ServiceError], Awaitable[None]], error: ServiceError) -> None:
    try:
        await on_failure(error)
    except Exception:
        _LOG.exception("why work in the background failed could not be kept for its caller")
