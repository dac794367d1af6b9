"""What a worker asks of the others: to make the changes that it is called for, and what they serve."""

import asyncio
from collections.abc import Collection, Sequence
from http import HTTPStatus
from json import loads
from pathlib import Path
from urllib.parse import quote

from service.domain.errors import DeadlineExceeded, NotFound, NotPossible, Public, ServiceError, Unavailable
from service.faces.admin.answers import CHANGE_SECONDS
from service.faces.front.changes import error_of
from service.faces.front.metrics import READ_SECONDS
from service.faces.front.worker import NoAnswer, WorkerEndpoint, ask, get
from service.models.control import ModelControl
from service.models.index import ModelState
from service.process.lifecycle import LAST_SECONDS, Phase

_ANSWERING = (Phase.SERVING.value, Phase.RECOVERING.value)


class ControlOfAll:
    """Loads and unloads models in all workers, by asking the front. Belongs to the event loop's thread."""

    def __init__(self, own: ModelControl, front: Path, *, is_explicit: bool) -> None:
        """Take this worker's control, and the front's socket."""
        self._own = own
        self._front = front
        self._is_explicit = is_explicit

    async def load(self, name: str) -> None:
        """See `ModelControl.load`; what failed in one worker may be done in others, which the error tells."""
        await self._change(name, "load")

    async def unload(self, name: str) -> None:
        """See `ModelControl.unload`, and `load`."""
        await self._change(name, "unload")

    async def states(self) -> list[ModelState]:
        """Return the state of each version on disk or in this worker's memory."""
        return await self._own.states()

    async def _change(self, name: str, change: str) -> None:
        if not self._is_explicit:
            await (self._own.load(name) if change == "load" else self._own.unload(name))  # refuses
            return
        path = f"/api/models/{quote(name, safe='')}/{change}"
        seconds = CHANGE_SECONDS + 2 * LAST_SECONDS
        answering = asyncio.ensure_future(ask(self._front, "POST", path, seconds, {"content-type": "application/json"}))
        try:
            answer = await asyncio.shield(answering)  # completed even if the caller disconnects
        except NoAnswer as error:
            raise Unavailable(
                "the change was not confirmed: the front, which makes it in all workers, {reason}", reason=Public(error)
            ) from error
        if answer.status is not HTTPStatus.OK:
            code, message, _ = error_of(answer)
            raise _error(code, message.removesuffix("."), name)


async def served_by(workers: Sequence[WorkerEndpoint]) -> Collection[str] | None:
    """Return the names of the models that the workers serve; `None` if none of them serves yet."""

    async def status(worker: WorkerEndpoint) -> set[str] | None:
        try:
            assert worker.admin is not None
            answer = await get(worker.admin, "/status.json", READ_SECONDS)
        except NoAnswer:
            return None
        document = loads(answer.body)
        return {model["name"] for model in document["models"]} if document["phase"] in _ANSWERING else None

    answers = [names for names in await asyncio.gather(*map(status, workers)) if names is not None]
    return set().union(*answers) if answers else None


def _error(code: str, message: str, name: str) -> ServiceError:
    reason = Public(message)
    match code:
        case "NOT_FOUND":
            return NotFound("{reason}", "model", name, reason=reason)
        case "FAILED_PRECONDITION":
            return NotPossible("{reason}", reason=reason)
        case "DEADLINE_EXCEEDED":
            return DeadlineExceeded("{reason}", reason=reason)
    return Unavailable("{reason}", reason=reason)
