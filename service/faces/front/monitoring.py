"""/metrics, /readyz and /livez for a server of several workers."""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus

from service.faces.front.metrics import WorkersMetrics
from service.faces.front.worker import NoAnswer, WorkerEndpoint, get
from service.faces.http.application import HttpAnswer
from service.faces.http.monitoring import Page, probed
from service.observe.registry import render

PROBE_SECONDS = 0.8  # Kubernetes waits 1 s by default


def pages(workers: Sequence[WorkerEndpoint], metrics: WorkersMetrics) -> dict[str, Page]:
    """Return what scrapers and probes are answered, by path, see `http.monitoring`."""

    async def text(accept: str) -> HttpAnswer:
        families = await metrics.read()
        body, content_type = await asyncio.to_thread(render, families, accept)
        return HttpAnswer(HTTPStatus.OK, content_type, body)

    async def ready(_: str) -> HttpAnswer:
        """One worker is enough: while others restart, the kernel gives new connections to those that listen."""
        answers = await _probe(workers, "/readyz")
        return _page("ready" if _any_fine(answers) else "not ready", answers, fine=_any_fine(answers))

    async def live(_: str) -> HttpAnswer:
        """Workers that have ended are restarted anyway; a new server helps if all answer, and none of them is alive."""
        answers = await _probe(workers, "/livez")
        fine = _any_fine(answers) or None in answers.values()
        return _page("alive" if fine else "not alive", answers, fine=fine)

    return {"/metrics": text, "/readyz": ready, "/livez": live}


async def any_is_ready(workers: Sequence[WorkerEndpoint]) -> bool:
    """Return whether any of these workers answers calls."""
    return _any_fine(await _probe(workers, "/readyz"))


async def _probe(workers: Sequence[WorkerEndpoint], path: str) -> dict[int, HttpAnswer | None]:
    """Return each worker's answer by its number; `None` if there is none."""

    async def answer(worker: WorkerEndpoint) -> HttpAnswer | None:
        try:
            return await get(worker.metrics, path, PROBE_SECONDS)
        except NoAnswer:
            return None

    answers = await asyncio.gather(*map(answer, workers))
    return {worker.number: each for worker, each in zip(workers, answers, strict=True)}


def _any_fine(answers: dict[int, HttpAnswer | None]) -> bool:
    return any(answer is not None and answer.status is HTTPStatus.OK for answer in answers.values())


def _page(text: str, answers: dict[int, HttpAnswer | None], *, fine: bool) -> HttpAnswer:
    lines = [
        f"worker-{number}: {'no answer' if answer is None else answer.body.decode().strip()}"
        for number, answer in answers.items()
    ]
    return probed("\n".join((text, *lines)), fine=fine)
