"""The served models, kept in line with the disk while calls go on.

Reload: read the disk -> plan -> try one bundle in a process of its own -> load and test it -> serve it in place of what
it replaces -> wait until no call holds that, then stop its engine -> the next bundle. So at most one extra version is
in memory, and no working version is retired before its successor is served.
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
from typing import Protocol, TypeVar

from service.bundle.errors import BundleError, one_line
from service.engine.cpus import lower_priority, show_thread_name
from service.models.index import ModelState, list_states
from service.models.loaded_model import LoadedModel
from service.models.reload_plan import ReloadOutcome, plan_reload
from service.models.repository import ALL, FoundBundle, ModelDirectory, Stamp, check_names, read_models
from service.process.memory import give_back

_LOG = logging.getLogger(__name__)

ENGINE_STOP_SECONDS = 5.0  # for the threads of an engine: their runs are terminated
_STILL_LOADING_SECONDS = 60.0

T = TypeVar("T")


class FleetListener(Protocol):
    """Receives events about models, on the event loop's thread."""

    def on_loaded(self, model: LoadedModel, seconds: float) -> None:
        """Note that a bundle was loaded and tested in `seconds`; it is not served yet."""

    def on_served(self, models: Sequence[LoadedModel]) -> None:
        """Answer calls with these models, and no others, from now on."""

    def on_retired(self, model: LoadedModel) -> None:
        """Note that the engine of a model that is no longer served has stopped."""

    def on_restarted(self, model: LoadedModel) -> None:
        """Note that the engine of a model works again after a failure."""

    def on_refused(self, name: str) -> None:
        """Note that a bundle of this model can't be served; models already served stay."""


class Fleet:
    """All methods belong to the event loop's thread; reading the disk and loading models happen on other threads."""

    def __init__(
        self,
        path: Path,
        max_versions: int,
        load: Callable[[FoundBundle], LoadedModel],
        try_out: Callable[[FoundBundle], None],
        listener: FleetListener,
        drain_seconds: float,
    ) -> None:
        """Run `load`, and `try_out` first once a model is served, on other threads; calls get `drain_seconds`."""
        self.models: list[LoadedModel] = []
        self._path = path
        self._max_versions = max_versions
        self._load = load
        self._try_out = try_out
        self._listener = listener
        self._drain_seconds = drain_seconds
        self._retiring: list[LoadedModel] = []
        self._loading: FoundBundle | None = None
        self._refused: dict[Path, Stamp] = {}
        self._reasons: dict[Path, str] = {}  # why they were refused
        self._faults: set[str] = set()  # already reported
        self._has_started = False

    @property
    def num_refused(self) -> int:
        return len(self._reasons) + len(self._faults)

    async def load(self, names: Collection[str] = (ALL,)) -> None:
        """Load the models of these names that are on disk, then serve them; `*` means all.

        A bundle that can't be loaded is reported and keeps no other from being served; an older version takes its
        place, if there is one.
        """
        on_disk = await self.read() if names else []
        every = await self._in_thread(self._reading(sys.maxsize)) if names else []
        check_names(self._path, on_disk, names)
        wanted = [each for each in on_disk if ALL in names or each.name in names]
        failures: list[tuple[Exception, str]] = []
        for folder in sorted(wanted, key=lambda each: each.name):
            loaded: list[LoadedModel] = []
            older = [each for whole in every if whole.path == folder.path for each in whole.bundles]
            for bundle in (*folder.bundles, *(each for each in older if each not in folder.bundles)):
                if len(loaded) < self._max_versions:
                    outcome = await self._try(bundle, tries_first=False)
                    if isinstance(outcome, LoadedModel):
                        loaded.append(outcome)
                    else:
                        failures.append((outcome, bundle.name))
            self.models += loaded
        faults = {fault: each.name for each in wanted for fault in each.faults}
        if wanted and not self.models:
            raise _first_of([error for error, _ in failures] + [BundleError(fault) for fault in faults])
        for error, name in failures:
            self._report(one_line(error), name)
        self._report_faults(faults)
        # Loading takes more memory than a loaded model.
        await self._in_thread(give_back)
        self._has_started = True
        self._listener.on_served(self.models)

    async def reload(self) -> ReloadOutcome:
        """Serve what is on disk now.

        One call at a time. Anything that can't be read or loaded is logged and reported to the listener once, and tried
        again when its files change.
        """
        before = [model.bundle for model in self.models]  # bundles: models are released one by one
        try:
            on_disk = await self.read()
        except BundleError as error:
            return ReloadOutcome.FAILED if self._report_faults({str(error): None}) else ReloadOutcome.UNCHANGED
        faults = {fault: self._name_of(model) for model in on_disk for fault in model.faults}
        has_failed = self._report_faults(faults)
        reasons = await self._approach(on_disk)
        if has_failed or reasons:
            return ReloadOutcome.FAILED
        return ReloadOutcome.UNCHANGED if [model.bundle for model in self.models] == before else ReloadOutcome.CHANGED

    async def read(self) -> list[ModelDirectory]:
        return await self._in_thread(self._reading(self._max_versions))

    def _reading(self, max_versions: int) -> Callable[[], list[ModelDirectory]]:
        """Return what reads the disk, where models that are served keep their names if others have these, too."""
        served = {model.bundle.model_directory for model in self.models}
        return functools.partial(read_models, self._path, max_versions, served)

    async def load_folder(self, folder: ModelDirectory) -> list[str]:
        """Serve the bundles in one model's folder, whatever failed before; other models stay.

        One call at a time. Return the reason for each bundle that could not be loaded; the model's versions already
        served then stay.
        """
        for bundle in folder.bundles:
            self._refused.pop(bundle.directory, None)
        others = [model.bundle for model in self.models if model.name != folder.name]
        return await self._approach([*(ModelDirectory(each.model_directory, (each,)) for each in others), folder])

    async def drop(self, name: str) -> None:
        """Stop serving the model of this name; wait until its engines have stopped. One call at a time."""
        going = [model for model in self.models if model.name == name]
        await self._hand_over([model for model in self.models if model not in going], going)
        going.clear()  # drops the last references
        await self._in_thread(give_back)

    async def restart(self, model: LoadedModel) -> None:
        await self._in_thread(model.restart)
        self._listener.on_restarted(model)

    async def states(self) -> list[ModelState]:
        try:
            on_disk = await self._in_thread(self._reading(sys.maxsize))
        except BundleError:  # nothing is there
            on_disk = []
        retiring = [model.bundle for model in self._retiring]
        return list_states(on_disk, self._reasons, retiring, self._loading, [model.bundle for model in self.models])

    async def stop(self) -> None:
        """Stop all engines; remaining calls fail with `Unavailable`."""
        for model in (*self.models, *self._retiring):
            await self._stop_engine(model)

    async def _approach(self, on_disk: Sequence[ModelDirectory]) -> list[str]:
        """Serve what is on disk; return the reason for each bundle that was tried and could not be loaded."""
        reasons = []
        before = [model.bundle for model in self.models]
        loading = plan_reload(before, on_disk, self._refused).load
        for bundle in loading:
            outcome = await self._try(bundle)
            if isinstance(outcome, LoadedModel):
                await self._serve([*self.models, outcome], on_disk)
            else:
                reasons.append(one_line(outcome))
                self._report(reasons[-1], bundle.name)
        await self._serve(self.models, on_disk)
        if loading or [model.bundle for model in self.models] != before:
            await self._in_thread(give_back)
        return reasons

    async def _try(self, bundle: FoundBundle, *, tries_first: bool = True) -> LoadedModel | Exception:
        started = time.monotonic()
        with self._watched(bundle):
            outcome = await self._in_thread(functools.partial(self._attempt, bundle, tries_first))
        if isinstance(outcome, LoadedModel):
            seconds = time.monotonic() - started
            _LOG.info("loaded %s in %.1f s", bundle.directory, seconds)
            self._listener.on_loaded(outcome, seconds)
            self._reasons.pop(bundle.directory, None)
        else:
            self._refused[bundle.directory], self._reasons[bundle.directory] = bundle.stamp, one_line(outcome)
        return outcome

    def _attempt(self, bundle: FoundBundle, tries_first: bool) -> LoadedModel | Exception:
        """Return the model, or the error; without its traceback and cause, which would keep memory alive."""
        try:
            if tries_first:
                self._try_out(bundle)
            return self._load(bundle)
        except Exception as error:
            error.__cause__ = error.__context__ = None
            return error.with_traceback(None)

    async def _serve(self, models: list[LoadedModel], on_disk: Sequence[ModelDirectory]) -> None:
        """Serve these models, except those that may be retired by now; wait until those have stopped."""
        retire = plan_reload([model.bundle for model in models], on_disk, self._refused).retire
        retiring = [model for model in models if model.bundle in retire]
        await self._hand_over([model for model in models if model not in retiring], retiring)

    async def _hand_over(self, staying: list[LoadedModel], retiring: list[LoadedModel]) -> None:
        """Serve only `staying` from now on; wait until the others have stopped."""
        if staying == self.models:
            return
        self._retiring = retiring
        self.models = staying
        self._listener.on_served(staying)
        await asyncio.gather(*(self._retire(model) for model in self._retiring))
        self._retiring = []

    async def _retire(self, model: LoadedModel) -> None:
        if not await model.leases.none_held(self._drain_seconds):
            _LOG.warning(
                "calls to %s did not finish within %g s and are aborted", model.bundle.directory, self._drain_seconds
            )
        await self._stop_engine(model)
        self._listener.on_retired(model)
        _LOG.info("retired %s", model.bundle.directory)

    async def _stop_engine(self, model: LoadedModel) -> None:
        # A pool's thread reports the outcome before it releases what it ran, so it must not hold the last reference to
        # the engine.
        engine = [model.engine]
        if not await asyncio.to_thread(lambda: engine.pop().stop(ENGINE_STOP_SECONDS)):
            _LOG.warning("the engine of %s did not stop within %g s", model.bundle.directory, ENGINE_STOP_SECONDS)

    @contextlib.contextmanager
    def _watched(self, bundle: FoundBundle) -> Iterator[None]:
        """Mark a bundle as being loaded; as nothing can end that, log from time to time if it takes long."""
        started = time.monotonic()

        async def report() -> None:
            while True:
                await asyncio.sleep(_STILL_LOADING_SECONDS)
                _LOG.warning("still loading %s after %.0f s", bundle.directory, time.monotonic() - started)

        reporting = asyncio.create_task(report())
        self._loading = bundle
        try:
            yield
        finally:
            self._loading = None
            reporting.cancel()

    def _report_faults(self, faults: Mapping[str, str | None]) -> bool:
        """Report each fault on disk once, with its model if known; return whether any was new."""
        new = faults.keys() - self._faults
        self._faults = set(faults)
        for fault in sorted(new):
            self._report(fault, faults[fault])
        return bool(new)

    def _report(self, reason: str, name: str | None) -> None:
        """Log why something is not loaded: as an error at the start, when nothing older is served instead."""
        if self._has_started:
            _LOG.warning("not loaded, what was served before is still served: %s", reason)
        else:
            _LOG.error("not loaded, and not served: %s", reason)
        if name is not None:
            self._listener.on_refused(name)

    def _name_of(self, folder: ModelDirectory) -> str:
        names = (model.name for model in self.models if model.bundle.model_directory == folder.path)
        return next(names, folder.path.name)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread that does not keep the process alive: a stop must not wait for a model to load."""
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()  # the waiting task may be cancelled; the work goes on
        outcome: list[T] = []  # emptied by the caller: the thread ends later and must not keep a model alive

        def run() -> None:
            lower_priority()  # a new model's threads, and the CPU time to load it, have lower priority than serving
            show_thread_name()
            try:
                outcome.append(work())
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)

        threading.Thread(target=run, name="loader", daemon=True).start()
        await asyncio.wrap_future(done)
        return outcome.pop()


def _first_of(errors: Sequence[Exception]) -> Exception:
    """Return the first error, with what others say as notes, each once."""
    _, *others = dict.fromkeys(map(one_line, errors))
    for other in others:
        errors[0].add_note(other)
    return errors[0]
