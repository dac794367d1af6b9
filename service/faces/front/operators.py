"""Operators' requests to a server of several workers: changes go to all of them, a translation to one that is ready."""

import asyncio
import itertools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import service
from service.config.server_config import ServerConfig
from service.faces.admin.answers import CHANGE_SECONDS, Document, failure, in_json
from service.faces.admin.status_numbers import numbers_of
from service.faces.front.changes import Outcome, change_of, error_of
from service.faces.front.metrics import READ_SECONDS, WorkersMetrics
from service.faces.front.statuses import errors_of, models_of, phase_of, states_of, workers_of
from service.faces.front.worker import NoAnswer, WorkerEndpoint, ask, get
from service.faces.http.application import HttpAnswer, HttpRequest
from service.process.hangs import HUNG_SECONDS
from service.process.lifecycle import LAST_SECONDS

_MODELS_SECONDS = HUNG_SECONDS + LAST_SECONDS  # as long as a worker may take, and as a late answer needs


class WorkersOperators:
    """Implements `Operators` by asking the workers, whose admin sockets must be set. For one event loop."""

    def __init__(self, config: ServerConfig, workers: Sequence[WorkerEndpoint], metrics: WorkersMetrics) -> None:
        """Take the numbers from `metrics`, in which no count falls when a worker restarts."""
        self._config = config
        self._sockets = {worker.number: worker.admin for worker in workers if worker.admin is not None}
        self._metrics = metrics
        self._turns = itertools.count()
        self._started_seconds = time.monotonic()
        self._turn = asyncio.Lock()  # of changes: they must reach all workers in the same order

    async def status(self) -> HttpAnswer:
        """Return the data of the status page, with a line for each worker."""
        families, statuses = await asyncio.gather(self._metrics.read(), self._documents("/status.json", READ_SECONDS))
        samples = (sample for family in families for sample in family.samples)
        return in_json(
            {
                "version": service.__version__,
                "device": self._config.device,
                "is_explicit": self._config.model_control == "explicit",
                "phase": phase_of(statuses),
                "uptime_seconds": time.monotonic() - self._started_seconds,
                "time_seconds": time.time(),
                **numbers_of(samples),
                "models": models_of(statuses),
                "errors": errors_of(statuses),
                "workers": workers_of(statuses),
            }
        )

    async def models(self) -> HttpAnswer:
        """Return the state of each version on disk or in memory, in the workers that answer."""
        documents = await self._documents("/api/models", _MODELS_SECONDS)
        if all(document is None for document in documents.values()):
            return failure("UNAVAILABLE", "no worker answers; try again when one is ready.")
        return in_json(states_of(documents))

    async def translate(self, request: HttpRequest) -> HttpAnswer:
        """Pass the request to the workers in turn, and to the next one if it is not ready."""
        refusal: Outcome = NoAnswer("is not running", was_sent=False)
        sockets = list(self._sockets.items())
        first = next(self._turns) % len(sockets)
        for number, socket in sockets[first:] + sockets[:first]:
            try:
                answer = await self._ask(socket, request, self._config.default_deadline_seconds + 2 * LAST_SECONDS)
            except NoAnswer as error:
                if error.was_sent:  # it may have counted the call
                    code, message, _ = error_of(error)
                    return failure(code, f"worker-{number}: {message}")
                refusal = error
            else:
                if answer.status is not HTTPStatus.SERVICE_UNAVAILABLE:
                    return answer
                refusal = answer
        code, message, headers = error_of(refusal)
        return failure(code, f"no worker is ready; worker-{number}: {message}", headers)

    async def reload(self, request: HttpRequest) -> HttpAnswer:
        return await self._change(request, "/api/reload")

    async def load(self, name: str, request: HttpRequest) -> HttpAnswer:
        return await self._change(request, f"/api/models/{quote(name, safe='')}/load")

    async def unload(self, name: str, request: HttpRequest) -> HttpAnswer:
        return await self._change(request, f"/api/models/{quote(name, safe='')}/unload")

    async def _change(self, request: HttpRequest, path: str) -> HttpAnswer:
        async def ask_one(socket: Path) -> Outcome:
            try:
                return await self._ask(socket, request, CHANGE_SECONDS + LAST_SECONDS, path)
            except NoAnswer as error:
                return error

        started = time.monotonic()
        async with self._turn:
            outcomes = await asyncio.gather(*map(ask_one, self._sockets.values()))
        answer = change_of(dict(zip(self._sockets, outcomes, strict=True)))
        milliseconds = (time.monotonic() - started) * 1000
        return replace(answer, headers={**answer.headers, "Server-Timing": f"total;dur={milliseconds:.1f}"})

    async def _ask(self, socket: Path, request: HttpRequest, timeout_seconds: float, path: str = "") -> HttpAnswer:
        target = path or request.path
        return await ask(socket, request.method, target, timeout_seconds, request.headers, request.body)

    async def _documents(self, path: str, timeout_seconds: float) -> Mapping[int, Document | None]:
        async def document(socket: Path) -> Document | None:
            try:
                answer = await get(socket, path, timeout_seconds)
            except NoAnswer:
                return None
            return json.loads(answer.body) if answer.status is HTTPStatus.OK else None

        documents = await asyncio.gather(*map(document, self._sockets.values()))
        return dict(zip(self._sockets, documents, strict=True))
