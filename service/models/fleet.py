"""The models that are served, and how they follow what lies on disk while calls go on.

Reload: look at the disk -> plan -> load and prove one bundle -> serve it in place of what it replaces -> wait until no
call holds what was replaced, then stop its engine -> the next bundle. So there is never more than one version too many
in memory, and nothing good goes before its successor is served.
"""

import asyncio
import functools
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol, TypeVar

from service.bundle.manifest import BundleError
from service.lifecycle import ReloadOutcome
from service.models.loaded_model import LoadedModel
from service.models.reload_plan import plan_reload
from service.models.repository import FoundBundle, ModelDirectory, Stamp, find_bundles, read_models

_LOG = logging.getLogger(__name__)

_ENGINE_STOP_SECONDS = 5.0
# A bundle that is being replaced in place is gone for a moment: who is missing is looked for twice.
_SECOND_LOOK_SECONDS = 1.0

T = TypeVar("T")


class FleetListener(Protocol):
    """Hears what becomes of models, on the event loop's thread."""

    def on_loaded(self, model: LoadedModel, seconds: float) -> None:
        """A bundle was loaded and proved, which took so long; it is not served yet."""
        ...

    def on_served(self, models: Sequence[LoadedModel]) -> None:
        """From now on calls are to be answered by these, and by no others."""
        ...

    def on_retired(self, model: LoadedModel) -> None:
        """The engine of a model that is served no more has stopped."""
        ...

    def on_refused(self, name: str) -> None:
        """A bundle of this model can't be served; what was served goes on."""
        ...


class Fleet:
    """All methods belong to the event loop's thread; the disk is read and models are loaded on other threads."""

    def __init__(
        self,
        path: Path,
        max_versions: int,
        load: Callable[[FoundBundle], LoadedModel],
        listener: FleetListener,
        drain_seconds: float,
    ) -> None:
        """`load` is called on a thread of its own; `drain_seconds` bound the wait for the calls of a retired model."""
        self.models: list[LoadedModel] = []
        self._path = path
        self._max_versions = max_versions
        self._load = load
        self._listener = listener
        self._drain_seconds = drain_seconds
        self._retiring: list[LoadedModel] = []
        self._refused: dict[Path, Stamp] = {}
        self._faults: set[str] = set()  # that have been told
        self._work: Future[Any] | None = None  # of the thread that reads the disk or loads
        self._is_stuck = False

    @property
    def has_threads_left(self) -> bool:
        """Whether a thread is in native code, or in a read, where nothing can end it."""
        return self._is_stuck or (self._work is not None and not self._work.done())

    def is_retiring(self, bundle: FoundBundle) -> bool:
        """Whether a bundle is served no more, but still has calls to answer."""
        return any(model.bundle is bundle for model in self._retiring)

    async def load(self) -> None:
        """Load all that is on disk, then serve it.

        Raises:
            BundleError: there is nothing, or a bundle is damaged or fails its self-test.
            DeviceUnavailable: the device can't be used here.
        """
        for bundle in await self._in_thread(lambda: find_bundles(self._path, self._max_versions)):
            started = time.monotonic()
            model = await self._in_thread(functools.partial(self._load, bundle))
            self._tell_loaded(model, started)
            self.models.append(model)
        self._listener.on_served(self.models)

    async def reload(self) -> ReloadOutcome:
        """Serve what is on disk now. One call at a time.

        What can't be read or loaded is logged and told to the listener once, and tried again when its files change.
        """
        before = [model.bundle for model in self.models]  # not the models: they are to go one by one
        try:
            on_disk = await self._in_thread(lambda: read_models(self._path, self._max_versions))
        except BundleError as error:
            return ReloadOutcome.FAILED if self._tell_faults({str(error): None}) else ReloadOutcome.UNCHANGED
        faults = {fault: self._name_of(model) for model in on_disk for fault in model.faults}
        has_failed = self._tell_faults(faults)
        for bundle in plan_reload(before, on_disk, self._refused).load:
            newcomers = await self._try(bundle)
            has_failed = has_failed or not newcomers
            await self._serve([*self.models, *newcomers], on_disk)
        await self._serve(self.models, on_disk)
        if has_failed:
            return ReloadOutcome.FAILED
        return ReloadOutcome.UNCHANGED if [model.bundle for model in self.models] == before else ReloadOutcome.CHANGED

    async def stop(self) -> None:
        """Stop all engines; the calls that are left are failed with `Unavailable`."""
        for model in (*self.models, *self._retiring):
            await self._stop_engine(model)

    async def _try(self, bundle: FoundBundle) -> list[LoadedModel]:
        """Load a bundle; none if that fails, for whatever reason."""
        started = time.monotonic()
        outcome = await self._in_thread(functools.partial(self._attempt, bundle))
        if isinstance(outcome, LoadedModel):
            self._tell_loaded(outcome, started)
            return [outcome]
        self._refused[bundle.directory] = bundle.stamp
        _LOG.warning("not loaded, what was served stays: %s", outcome)
        self._listener.on_refused(bundle.name)
        return []

    def _attempt(self, bundle: FoundBundle) -> LoadedModel | str:
        """The model, or in one line why there is none; the error itself would keep the memory of what it met."""
        try:
            return self._load(bundle)
        except Exception as error:
            return " ".join(str(error).split())

    async def _serve(self, models: list[LoadedModel], on_disk: Sequence[ModelDirectory]) -> None:
        """Serve these models, less those that may go by now; wait until those are gone."""
        retire = plan_reload([model.bundle for model in models], on_disk, self._refused).retire
        staying = [model for model in models if model.bundle not in retire]
        if staying == self.models:
            return
        self._retiring = [model for model in models if model.bundle in retire]
        self.models = staying
        self._listener.on_served(staying)
        await asyncio.gather(*(self._retire(model) for model in self._retiring))
        self._retiring = []

    async def _retire(self, model: LoadedModel) -> None:
        if not await model.leases.none_held(self._drain_seconds):
            _LOG.warning("calls to %s outlasted %g s; they are given up", model.bundle.directory, self._drain_seconds)
        await self._stop_engine(model)
        self._listener.on_retired(model)
        _LOG.info("retired %s", model.bundle.directory)

    async def _stop_engine(self, model: LoadedModel) -> None:
        if not await asyncio.to_thread(model.engine.stop, _ENGINE_STOP_SECONDS):
            _LOG.warning("the engine of %s did not stop within %g s", model.bundle.directory, _ENGINE_STOP_SECONDS)
            self._is_stuck = True

    def _tell_loaded(self, model: LoadedModel, started_seconds: float) -> None:
        seconds = time.monotonic() - started_seconds
        _LOG.info("loaded %s in %.1f s", model.bundle.directory, seconds)
        self._listener.on_loaded(model, seconds)

    def _tell_faults(self, faults: Mapping[str, str | None]) -> bool:
        """Say what is wrong with the disk, once each, and of which model; whether there was anything new to say."""
        new = faults.keys() - self._faults
        self._faults = set(faults)
        for fault in sorted(new):
            _LOG.warning("not loaded, what was served stays: %s", fault)
            name = faults[fault]
            if name is not None:
                self._listener.on_refused(name)
        return bool(new)

    def _name_of(self, folder: ModelDirectory) -> str:
        """What a model is called whose manifest may be unreadable."""
        names = (model.name for model in self.models if model.bundle.model_directory == folder.path)
        return next(names, folder.path.name)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread that does not keep the process alive: a stop must not wait for a model to load."""
        outcome: Future[T] = Future()
        self._work = outcome
        outcome.set_running_or_notify_cancel()  # who waits may be cancelled; the work goes on

        def run() -> None:
            try:
                outcome.set_result(work())
            except BaseException as error:
                outcome.set_exception(error)

        threading.Thread(target=run, name="loader", daemon=True).start()
        try:
            return await asyncio.wrap_future(outcome)
        finally:
            if outcome.done():
                self._work = None  # it holds what came of it
