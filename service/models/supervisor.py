"""Supervises the engines of the served models: ends turns that hang, and restarts engines that have failed.

Healthy -> (a thread dies, turn after turn fails, or a turn takes too long) -> failed: its runs are terminated, its
sequences failed -> its threads end -> after a delay the golden sentences are decoded on its runners -> restarted,
healthy. Threads that do not end, or too many failures in a row, need a new process.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Protocol

from service.models.fleet import ENGINE_STOP_SECONDS, Fleet
from service.models.loaded_model import LoadedModel
from service.process.lifecycle import LOOK_SECONDS, POLL_SECONDS

FIRST_DELAY_SECONDS = 0.1
MOST_DELAY_SECONDS = 30.0
GOOD_SECONDS = 60.0  # of work, after which earlier failures are forgotten
MAX_RESTARTS = 10  # in a row: they take some 80 s; what they do not mend may be mended by whoever starts the program

_LOG = logging.getLogger(__name__)


class Backoff:
    """Consecutive failures of one thing.

    Each doubles the delay before the next restart, up to a maximum. A series ends when the thing has worked for long
    enough. A restart that fails is one more failure.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.num_failures = 0
        self._works_since: float | None = None
        self._due = 0.0

    @property
    def has_given_up(self) -> bool:
        return self.num_failures > MAX_RESTARTS

    @property
    def seconds_left(self) -> float:
        """Return the time until the next restart; 0 when it is due."""
        return max(self._due - self._clock(), 0.0)

    def failed(self, stuck_seconds: float = 0.0) -> None:
        """Record a failure, or a failed restart, before which the thing had done nothing for `stuck_seconds`."""
        now = self._clock()
        if self._works_since is not None and now - stuck_seconds - self._works_since >= GOOD_SECONDS:
            self.num_failures = 0
        self._works_since = None
        self._due = now + min(FIRST_DELAY_SECONDS * 2.0**self.num_failures, MOST_DELAY_SECONDS)
        self.num_failures += 1

    def restarted(self) -> None:
        self._works_since = self._clock()


class SupervisorListener(Protocol):
    """Receives the supervisor's events, on the event loop's thread."""

    def on_recovering(self, recovering: bool) -> None:
        """Note that an engine is being recovered from now on, or that none is any more."""

    def on_lost(self, reason: str) -> None:
        """Handle an engine that can't be recovered, for this reason: only a new process helps. Called once."""


class _Recovering:
    """The recovery state of an engine that has failed, now or before."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.backoff = Backoff(clock)
        self.failure: BaseException | None = None  # the one being handled
        self.since = 0.0
        self.restart: asyncio.Task[None] | None = None


class Supervisor:
    """All methods belong to the event loop's thread."""

    def __init__(
        self,
        fleet: Fleet,
        listener: SupervisorListener,
        stuck_turn_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fleet = fleet
        self._listener = listener
        self._stuck_turn_seconds = stuck_turn_seconds
        self._clock = clock
        self._recovering: dict[LoadedModel, _Recovering] = {}
        self.is_recovering = False
        self._is_lost = False
        self._woken = asyncio.Event()

    async def watch(self) -> None:
        while not self._is_lost:
            self._look()
            pause_seconds = POLL_SECONDS if self.is_recovering else min(LOOK_SECONDS, self._stuck_turn_seconds / 4)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), pause_seconds)
            self._woken.clear()

    def wake(self) -> None:
        """Check the engines now: one has failed."""
        self._look()
        self._woken.set()

    def _look(self) -> None:
        if self._is_lost:
            return
        models = list(self._fleet.models)  # models being retired are no longer served, and not recovered
        self._recovering = {model: state for model, state in self._recovering.items() if model in models}
        for model in models:
            self._end_stuck_turn(model)
        failed = [model for model in models if model.engine.failure is not None]
        if self.is_recovering is not bool(failed):
            self.is_recovering = bool(failed)
            self._listener.on_recovering(self.is_recovering)
        for model in failed:
            self._recover(model)

    def _end_stuck_turn(self, model: LoadedModel) -> None:
        seconds = model.engine.snapshot().turn_seconds
        if seconds <= self._stuck_turn_seconds or model.engine.failure is not None:
            return
        _LOG.error("a turn of %s has taken %.1f s; terminating it", model.bundle.directory, seconds)
        reason = f"a run of the model took more than {self._stuck_turn_seconds:g} s and was ended"
        model.engine.fail(TimeoutError(reason), reason)

    def _recover(self, model: LoadedModel) -> None:
        engine, where = model.engine, model.bundle.directory
        state = self._recovering.setdefault(model, _Recovering(self._clock))
        if state.failure is not engine.failure:
            state.failure, state.since = engine.failure, self._clock()
            self._failed(model, state, f"the engine failed ({_one_line(engine.failure)})")
        elif state.restart is not None:
            if self._clock() - state.since > self._stuck_turn_seconds + ENGINE_STOP_SECONDS:
                self._give_up(f"the engine of {where} hangs during its restart.")
        elif engine.has_threads:
            if self._clock() - state.since > ENGINE_STOP_SECONDS:
                self._give_up(f"a thread of the engine of {where} hangs in native code.")
        elif not state.backoff.seconds_left:
            state.since = self._clock()
            state.restart = asyncio.create_task(self._restart(model, state))

    async def _restart(self, model: LoadedModel, state: _Recovering) -> None:
        try:
            await self._fleet.restart(model)
        except Exception as error:
            if model.engine.failure is not None:  # otherwise it was stopped meanwhile
                self._failed(model, state, f"the engine could not be restarted ({_one_line(error)})")
        else:
            _LOG.warning("the engine of %s works again", model.bundle.directory)
            state.failure = None
            state.backoff.restarted()
        state.restart = None
        self.wake()

    def _failed(self, model: LoadedModel, state: _Recovering, what: str) -> None:
        backoff = state.backoff
        backoff.failed(model.engine.snapshot().turn_seconds)
        where = model.bundle.directory
        if backoff.has_given_up:
            self._give_up(f"{where}: {what}, {backoff.num_failures} times in a row.")
        else:
            count = f"{backoff.num_failures} of at most {MAX_RESTARTS} in a row"
            _LOG.critical("%s: %s; restarting it in %.1f s, %s", where, what, backoff.seconds_left, count)

    def _give_up(self, reason: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._listener.on_lost(reason)


def _one_line(error: BaseException | None) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
