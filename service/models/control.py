"""Loads and unloads models by name at callers' request, one at a time."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from service.bundle.errors import BundleError
from service.domain.call import current_call
from service.domain.errors import NotFound, NotPossible, Public, listed
from service.models.fleet import Fleet
from service.models.index import ModelState


class ModelControl:
    """Belongs to the event loop's thread. A started operation is completed even if the caller disconnects."""

    def __init__(self, fleet: Fleet, *, is_explicit: bool) -> None:
        """Allow callers to load and unload only if `is_explicit`; nothing else then does so once the server runs."""
        self._fleet = fleet
        self._is_explicit = is_explicit
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def load(self, name: str) -> None:
        """Load those of the model's versions on disk that should be served and are new or changed; serve them."""
        await self._in_turn(self._load(name))

    async def unload(self, name: str) -> None:
        """Stop serving the model; wait until its calls are answered and its engines have stopped."""
        await self._in_turn(self._unload(name))

    async def states(self) -> list[ModelState]:
        return await self._fleet.states()

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _load(self, name: str) -> None:
        try:
            on_disk = await self._fleet.read()
        except BundleError as error:
            raise NotPossible("{reason}", reason=Public(error)) from error
        folders = [folder for folder in on_disk if (folder.bundles or folder.faults) and folder.name == name]
        if not folders:
            allows = current_call().grants.allows_model
            known = listed(folder.name for folder in on_disk if folder.bundles and allows(folder.name))
            raise NotFound(
                "there is no model {name} on disk; there are {known}", "model", name, name=name, known=Public(known)
            )
        faults = [fault for folder in folders for fault in folder.faults]
        reasons = faults or await self._fleet.load_folder(folders[0])
        if reasons:
            reason = Public(" ".join(reasons).removesuffix("."))
            raise NotPossible(
                "the model was not loaded: {reason}", reason=reason, advice="what was served before is still served"
            )

    async def _unload(self, name: str) -> None:
        loaded = {model.name for model in self._fleet.models}
        if name not in loaded:
            loaded = set(filter(current_call().grants.allows_model, loaded))
            raise NotFound(
                "model {name} is not loaded; loaded: {loaded}",
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
            raise NotPossible("models can't be loaded by call", advice="start the server with --model-control explicit")
        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the caller may have disconnected: nothing else retrieves the exception
