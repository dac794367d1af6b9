"""Models loaded and unloaded by name, as callers ask for it, one after the other."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from service.bundle.manifest import BundleError
from service.domain.errors import NotFound, NotPossible, Public, listed
from service.models.fleet import Fleet
from service.models.index import ModelState


class ModelControl:
    """Belongs to the event loop's thread. What was begun is brought to its end, though the caller go."""

    def __init__(self, fleet: Fleet, *, is_explicit: bool) -> None:
        """Callers may load and unload only if it `is_explicit`; then nothing else does once the server has started."""
        self._fleet = fleet
        self._is_explicit = is_explicit
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def load(self, name: str) -> None:
        """Load the model's versions on disk that are to be served, or those that have changed; serve them.

        Raises:
            NotFound: there is no such model on disk.
            NotPossible: callers may not, or it can't be loaded; what was served of it stays.
        """
        await self._in_turn(self._load(name))

    async def unload(self, name: str) -> None:
        """Serve the model no more; returns when its calls are answered and its engines have stopped.

        Raises:
            NotFound: it is not loaded.
            NotPossible: callers may not.
        """
        await self._in_turn(self._unload(name))

    async def states(self) -> list[ModelState]:
        """How each version stands that is on disk or in memory."""
        return await self._fleet.states()

    def close(self) -> None:
        """Give up what is being done."""
        for task in self._tasks:
            task.cancel()

    async def _load(self, name: str) -> None:
        try:
            on_disk = await self._fleet.read()
        except BundleError as error:
            raise NotPossible(str(error)) from error
        folders = [folder for folder in on_disk if (folder.bundles or folder.faults) and folder.name == name]
        if not folders:
            known = listed(folder.name for folder in on_disk if folder.bundles)
            raise NotFound(
                "there is no model {name} on disk; there are {known}", "model", name, name=name, known=Public(known)
            )
        faults = [fault for folder in folders for fault in folder.faults]
        reasons = faults or await self._fleet.bring(folders[0])
        if reasons:
            raise NotPossible(f"not loaded, what was served stays: {' '.join(reasons)}")

    async def _unload(self, name: str) -> None:
        loaded = {model.name for model in self._fleet.models}
        if name not in loaded:
            raise NotFound(
                "model {name} is not loaded; loaded are {loaded}",
                "model",
                name,
                name=name,
                loaded=Public(listed(sorted(loaded))),
            )
        await self._fleet.drop(name)

    async def _in_turn(self, work: Coroutine[Any, Any, None]) -> None:
        async def run() -> None:
            async with self._turn:
                await work

        if not self._is_explicit:
            work.close()
            raise NotPossible("models are not loaded and unloaded by call here; start with --model-control explicit.")
        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the caller may be gone: then it is nobody's
