"""The server's translator without its ports: every row gets an answer or an error of its own.

Several calls of many rows are in flight, to keep the engine busy: 60,000 lines took 23 s, and twice as long one by one.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from service.config.server_config import ServerConfig
from service.domain.errors import InvalidRequest, NotFound
from service.domain.translation import TranslationRequest
from service.process.event_loop import all_of
from service.server.server import Server

ROWS_PER_CALL = 1000
# Nothing is rejected for its size or for waiting: what is in flight is bounded here.
_UNLIMITED: Mapping[str, Any] = {
    "max_waiting": 1_000_000,
    "max_queue_seconds": 86_400.0,
    "max_characters": 2**30,
    "max_answer_characters": 2**30,
}


class RowFault(Exception):
    """A call was rejected for one of its rows; a message of one line."""


@dataclass(frozen=True, slots=True)
class RowResult:
    """The outcome of a row: the translation, or an `error` with the reason.

    `finish_reason` is a `FinishReason`'s name, `flags` are those of all segments; the source language is as given or
    detected.
    """

    text: str
    finish_reason: str
    flags: tuple[str, ...] = ()
    error: str = ""
    source_language_code: str = ""


class Pipeline:
    """Models loaded in this process, as an asynchronous context manager. All methods belong to one event loop."""

    def __init__(self, models: Path, *, calls_in_flight: int = 3, **settings: Any) -> None:
        """Load the models of a bundle or repository with these `settings` of the server, such as `num_threads`."""
        self._config = ServerConfig(models=models, **{**_UNLIMITED, **settings})
        self._turns = asyncio.Semaphore(calls_in_flight)
        self._exits = contextlib.AsyncExitStack()
        self._server: Server | None = None

    async def __aenter__(self) -> Self:
        server = Server(self._config)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(server.close)
            await server.load()
            self._exits = stack.pop_all()
        self._server = server
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server = None
        await self._exits.aclose()

    @property
    def server(self) -> Server:
        assert self._server is not None, "the pipeline has not been entered"
        return self._server

    def versions(self) -> dict[str, str]:
        """Return what translations depend on, by model: its name and version, and the checkpoint and precision."""
        return {
            f"{each.name}/{each.version}": f"{each.manifest.precision} of {each.manifest.checkpoint_sha256}"
            for each in self.server.models
        }

    async def translate(
        self, texts: Sequence[str], source: str, target: str, request: TranslationRequest | None = None
    ) -> list[RowResult]:
        """Translate texts in order, with the options of `request`.

        With an empty `source`, each text's language is detected; texts not translated into `target` are returned with a
        flag.
        """
        request = replace(
            request or TranslationRequest((), "", ""),
            texts=(),
            source_language_code=source,
            target_language_code=target,
            keeps_other_languages=True,
        )
        parts = [tuple(texts[start : start + ROWS_PER_CALL]) for start in range(0, len(texts), ROWS_PER_CALL)]
        return [result for part in await all_of(self._call(request, part) for part in parts) for result in part]

    async def _call(self, request: TranslationRequest, texts: tuple[str, ...]) -> list[RowResult]:
        async def call(some: tuple[str, ...]) -> list[RowResult]:
            try:
                result = await self.server.translator.translate(replace(request, texts=some))
            except (InvalidRequest, NotFound) as error:  # others are the process's own, and end the run
                raise RowFault(str(error)) from None
            return [row_result(each, request.source_language_code) for each in result.translations]

        async with self._turns:
            return await answers(call, texts)


async def answers(
    call: Callable[[tuple[str, ...]], Awaitable[list[RowResult]]], texts: tuple[str, ...]
) -> list[RowResult]:
    """Translate in one call; if one row fails, find it by halving, so that the others keep their answers."""
    try:
        return await call(texts)
    except RowFault as error:
        if len(texts) == 1:
            return [RowResult("", "", error=str(error))]
    middle = len(texts) // 2
    return await answers(call, texts[:middle]) + await answers(call, texts[middle:])


def row_result(translation: Any, source: str) -> RowResult:
    flags = dict.fromkeys(flag.value for segment in translation.segments for flag in segment.flags)
    return RowResult(
        translation.text,
        translation.finish_reason.value,
        tuple(flags),
        source_language_code=source or translation.detected_language_code,
    )
