"""What answers operators in a server's process: its data for the status page, and their actions."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import service
from service.domain.errors import DeadlineExceeded, ServiceError, Unavailable
from service.faces.admin.answers import CHANGE_SECONDS, Document, in_json, of_error
from service.faces.admin.calls import AdminCalls
from service.faces.admin.status import errors_of, models_of
from service.faces.admin.status_numbers import numbers_of
from service.faces.http.application import HttpAnswer, HttpRequest
from service.models.loaded_model import LoadedModel
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors
from service.process.lifecycle import HUNG_SECONDS, LAST_SECONDS, Phase


@dataclass(frozen=True, slots=True)
class ServerView:
    """The server's data for the page; the functions are called from other threads."""

    device: str
    is_explicit: bool  # models are loaded and unloaded only by calls
    phase: Callable[[], Phase]
    models: Callable[[], Sequence[LoadedModel]]


class AdminServer:
    """What answers operators, see `Operators`; operations on models run on the server's event loop."""

    def __init__(
        self,
        view: ServerView,
        calls: AdminCalls,
        metrics: Metrics,
        errors: RecentErrors,
        loop: asyncio.AbstractEventLoop,
        deadline_seconds: float,
    ) -> None:
        """Give translations `deadline_seconds`."""
        self._view = view
        self._calls = calls
        self._metrics = metrics
        self._errors = errors
        self._loop = loop
        self._deadline_seconds = deadline_seconds
        self._started_seconds = time.monotonic()

    async def status(self) -> HttpAnswer:
        return await asyncio.to_thread(lambda: in_json(self._status()))  # it takes the models' locks

    async def models(self) -> HttpAnswer:
        return await self._awaited(self._calls.models(), HUNG_SECONDS)

    async def translate(self, request: HttpRequest) -> HttpAnswer:
        work = self._calls.translate(request.body, request.headers)
        return await self._awaited(work, self._deadline_seconds + LAST_SECONDS)

    async def reload(self, request: HttpRequest) -> HttpAnswer:
        return await self._awaited(self._calls.reload(request.headers), CHANGE_SECONDS)

    async def load(self, name: str, request: HttpRequest) -> HttpAnswer:
        return await self._awaited(self._calls.load(name, request.headers), CHANGE_SECONDS)

    async def unload(self, name: str, request: HttpRequest) -> HttpAnswer:
        return await self._awaited(self._calls.unload(name, request.headers), CHANGE_SECONDS)

    def _status(self) -> Document:
        return {
            "version": service.__version__,
            "device": self._view.device,
            "is_explicit": self._view.is_explicit,
            "phase": self._view.phase().value,
            "pid": os.getpid(),
            "uptime_seconds": time.monotonic() - self._started_seconds,
            "time_seconds": time.time(),
            **numbers_of(self._metrics.samples()),
            "models": models_of(self._view.models()),
            "errors": errors_of(self._errors.latest()),
        }

    async def _awaited(self, work: Coroutine[Any, Any, Document], timeout_seconds: float) -> HttpAnswer:
        """Run `work` on the server's event loop, and answer with its outcome."""
        started = time.monotonic()
        future: Future[Document] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            async with asyncio.timeout(timeout_seconds):
                document = await asyncio.wrap_future(future)  # cancels it on a timeout; changes are shielded from that
        except TimeoutError:
            late = "the call took longer than {seconds:g} s; a change that was started continues"
            return of_error(DeadlineExceeded(late, seconds=timeout_seconds))
        except asyncio.CancelledError:
            return of_error(Unavailable("the server is stopping; the change may not have been made."))
        except ServiceError as error:
            return of_error(error)
        milliseconds = (time.monotonic() - started) * 1000
        return in_json(document, {"Server-Timing": f"total;dur={milliseconds:.1f}"})
