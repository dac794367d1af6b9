"""The models that are served, and how they follow what lies on disk while calls go on.

Reload: look at the disk -> plan -> load and prove one bundle -> serve it in place of what it replaces -> wait until no
call holds what was replaced, then stop its engine -> the next bundle. So there is never more than one version too many
in memory, and nothing good goes before its successor is served.
"""

import asyncio
import contextlib
import functools
import logging
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol, TypeVar

from service.bundle.manifest import BundleError, one_line
from service.engine.niceness import set_back
from service.models.freed_memory import give_back
from service.models.index import ModelState, list_states
from service.models.loaded_model import LoadedModel
from service.models.reload_plan import plan_reload
from service.models.repository import ALL, FoundBundle, ModelDirectory, Stamp, find_bundles, read_models
from service.process.lifecycle import ReloadOutcome

_LOG = logging.getLogger(__name__)

_ENGINE_STOP_SECONDS = 5.0
# A bundle that is being replaced in place is gone for a moment: who is missing is looked for twice.
_SECOND_LOOK_SECONDS = 1.0
_STILL_LOADING_SECONDS = 60.0

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

    def on_restarted(self, model: LoadedModel) -> None:
        """The engine of a model had failed, and works again."""
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
        self._loading: FoundBundle | None = None
        self._refused: dict[Path, Stamp] = {}
        self._reasons: dict[Path, str] = {}  # why they were refused
        self._faults: set[str] = set()  # that have been told
        self._work: set[Future[Any]] = set()  # of threads that read the disk or load
        self._is_stuck = False

    @property
    def has_threads_left(self) -> bool:
        """Whether a thread is in native code, or in a read, where nothing can end it."""
        return self._is_stuck or any(not work.done() for work in self._work)

    async def load(self, names: Collection[str] = (ALL,)) -> None:
        """Load the models of these names that are on disk, then serve them; `*` stands for all.

        Raises:
            BundleError: one of them is not there, or a bundle is damaged or fails its self-test.
            DeviceUnavailable: the device can't be used here.
        """
        for bundle in await self._in_thread(lambda: find_bundles(self._path, self._max_versions, names)):
            started = time.monotonic()
            with self._watched(bundle):
                model = await self._in_thread(functools.partial(self._load, bundle))
            self._tell_loaded(model, started)
            self.models.append(model)
        await self._in_thread(give_back)  # loading takes more than a loaded model
        self._listener.on_served(self.models)

    async def reload(self) -> ReloadOutcome:
        """Serve what is on disk now. One call at a time.

        What can't be read or loaded is logged and told to the listener once, and tried again when its files change.
        """
        before = [model.bundle for model in self.models]  # not the models: they are to go one by one
        try:
            on_disk = await self.read()
        except BundleError as error:
            return ReloadOutcome.FAILED if self._tell_faults({str(error): None}) else ReloadOutcome.UNCHANGED
        faults = {fault: self._name_of(model) for model in on_disk for fault in model.faults}
        has_failed = self._tell_faults(faults)
        reasons = await self._approach(on_disk)
        if has_failed or reasons:
            return ReloadOutcome.FAILED
        return ReloadOutcome.UNCHANGED if [model.bundle for model in self.models] == before else ReloadOutcome.CHANGED

    async def read(self) -> list[ModelDirectory]:
        """What is on disk now, of each model as many versions as are to be served.

        Raises:
            BundleError: there is nothing, or it can't be read.
        """
        return await self._in_thread(lambda: read_models(self._path, self._max_versions))

    async def bring(self, folder: ModelDirectory) -> list[str]:
        """Serve what lies in one model's folder, and all else as it is, whatever failed before. One call at a time.

        Returns:
            Why a bundle could not be loaded, of each that could not; what was served of the model then stays.
        """
        for bundle in folder.bundles:
            self._refused.pop(bundle.directory, None)
        others = [model.bundle for model in self.models if model.name != folder.name]
        return await self._approach([*(ModelDirectory(each.model_directory, (each,)) for each in others), folder])

    async def drop(self, name: str) -> None:
        """Serve the model of this name no more; returns when its engines have stopped. One call at a time."""
        going = [model for model in self.models if model.name == name]
        await self._hand_over([model for model in self.models if model not in going], going)
        going.clear()  # now nothing holds them
        await self._in_thread(give_back)

    async def restart(self, model: LoadedModel) -> None:
        """Bring back the engine of a model, which has failed.

        Raises:
            Exception: as `LoadedModel.restart`.
        """
        await self._in_thread(model.restart)
        self._listener.on_restarted(model)

    async def states(self) -> list[ModelState]:
        """How each version stands that is on disk or in memory."""
        try:
            on_disk = await self._in_thread(lambda: read_models(self._path, sys.maxsize))
        except BundleError:  # nothing is there
            on_disk = []
        retiring = [model.bundle for model in self._retiring]
        return list_states(on_disk, self._reasons, retiring, self._loading, [model.bundle for model in self.models])

    async def stop(self) -> None:
        """Stop all engines; the calls that are left are failed with `Unavailable`."""
        for model in (*self.models, *self._retiring):
            await self._stop_engine(model)

    async def _approach(self, on_disk: Sequence[ModelDirectory]) -> list[str]:
        """Serve what is on disk; return why a bundle could not be loaded, of each that was tried and could not."""
        reasons = []
        before = [model.bundle for model in self.models]
        loading = plan_reload(before, on_disk, self._refused).load
        for bundle in loading:
            outcome = await self._try(bundle)
            if isinstance(outcome, LoadedModel):
                await self._serve([*self.models, outcome], on_disk)
            else:
                reasons.append(outcome)
        await self._serve(self.models, on_disk)
        if loading or [model.bundle for model in self.models] != before:
            await self._in_thread(give_back)
        return reasons

    async def _try(self, bundle: FoundBundle) -> LoadedModel | str:
        """Load a bundle, or say why that fails, for whatever reason."""
        started = time.monotonic()
        with self._watched(bundle):
            outcome = await self._in_thread(functools.partial(self._attempt, bundle))
        if isinstance(outcome, LoadedModel):
            self._tell_loaded(outcome, started)
            self._reasons.pop(bundle.directory, None)
        else:
            self._refused[bundle.directory], self._reasons[bundle.directory] = bundle.stamp, outcome
            _LOG.warning("not loaded, what was served stays: %s", outcome)
            self._listener.on_refused(bundle.name)
        return outcome

    def _attempt(self, bundle: FoundBundle) -> LoadedModel | str:
        """The model, or in one line why there is none; the error itself would keep the memory of what it met."""
        try:
            return self._load(bundle)
        except Exception as error:
            return one_line(error)

    async def _serve(self, models: list[LoadedModel], on_disk: Sequence[ModelDirectory]) -> None:
        """Serve these models, less those that may go by now; wait until those are gone."""
        retire = plan_reload([model.bundle for model in models], on_disk, self._refused).retire
        retiring = [model for model in models if model.bundle in retire]
        await self._hand_over([model for model in models if model not in retiring], retiring)

    async def _hand_over(self, staying: list[LoadedModel], retiring: list[LoadedModel]) -> None:
        """From now on serve those who stay; wait until the others are gone."""
        if staying == self.models:
            return
        self._retiring = retiring
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
        # A pool's thread first tells the outcome and later lets go of what it ran: not to be left with the engine.
        engine = [model.engine]
        if not await asyncio.to_thread(lambda: engine.pop().stop(_ENGINE_STOP_SECONDS)):
            _LOG.warning("the engine of %s did not stop within %g s", model.bundle.directory, _ENGINE_STOP_SECONDS)
            self._is_stuck = True

    @contextlib.contextmanager
    def _watched(self, bundle: FoundBundle) -> Iterator[None]:
        """It is being loaded; and where that takes long, the log says so from time to time, as nothing can end it."""
        started = time.monotonic()

        async def tell() -> None:
            while True:
                await asyncio.sleep(_STILL_LOADING_SECONDS)
                _LOG.warning("still loading %s after %.0f s", bundle.directory, time.monotonic() - started)

        telling = asyncio.create_task(tell())
        self._loading = bundle
        try:
            yield
        finally:
            self._loading = None
            telling.cancel()

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
        done: Future[None] = Future()
        self._work.add(done)
        done.set_running_or_notify_cancel()  # who waits may be cancelled; the work goes on
        outcome: list[T] = []  # taken out of here: the thread ends later, and is not to be left with a model

        def run() -> None:
            set_back()  # a new model's threads, and the CPUs that it takes to load, are behind what is served
            try:
                outcome.append(work())
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)

        threading.Thread(target=run, name="loader", daemon=True).start()
        try:
            await asyncio.wrap_future(done)
        finally:
            if done.done():
                self._work.discard(done)
        return outcome.pop()
