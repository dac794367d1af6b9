"""Supervises forked processes: starts them, restarts those that end, passes signals on, and ends with one exit code.

Starting -> (all are ready: announce) -> serving -> (SIGTERM or SIGINT) -> stopping -> ended. While starting, a process
that ends before it is ready ends all of them; once they serve, any that ends is restarted after a delay, and any that
hangs is killed: one that was ready and beats no longer.

Everything happens on one thread, and nothing blocks: a process with threads can't be forked safely.
"""

import enum
import logging
import math
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from service.process.backoff import MAX_RESTARTS, Backoff
from service.process.forked import Child, Closable, Failure, Parent, fork
from service.process.hangs import LOOK_SECONDS, Presence, hung

_LOG = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


@dataclass(frozen=True, slots=True)
class Role:
    """What one of the processes does. One that `stays_last` is stopped when all others have ended."""

    name: str
    run: Callable[[Parent], int]
    stays_last: bool = False


class ChildFailed(Exception):
    """The processes could not be started, or one of them not restarted. The message is for the user."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(*failure.lines[:1])
        self.failure = failure


class _State(enum.Enum):
    STARTING = "starting"
    SERVING = "serving"
    STOPPING = "stopping"


class _Place:
    """A role, the process that fills it, if any, and how earlier ones have ended."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.child: Child | None = None
        self.is_ready = False
        self.is_stopping = False
        self.num_beats = 0
        self.beat_at_seconds = 0.0  # the last one, on the supervisor's clock
        self.num_failed_starts = 0
        self.backoff = Backoff(time.monotonic)


class Supervision:
    """Runs one process for each role. Must be used on the main thread of a process that has no other thread."""

    def __init__(
        self,
        roles: Sequence[Role],
        announce: Callable[[Mapping[str, str]], None],
        stop_seconds: float,
        to_close: Sequence[Closable] = (),
    ) -> None:
        """Call `announce` once, when all are ready, with what each role was ready with; it must not block.

        Processes that have not ended `stop_seconds` after they were told to are killed. `to_close` is what they must
        not keep open.
        """
        self._places = [_Place(role) for role in roles]
        self._announce = announce
        self._stop_seconds = stop_seconds
        self._to_close = to_close
        self._state = _State.STARTING
        self._failure: Failure | None = None  # why all are stopped, unless they were told to
        self._error: BaseException | None = None
        self._code = os.EX_OK
        self._kill_at = math.inf
        self._present = Presence()
        self._selector = selectors.DefaultSelector()

    def run(self) -> int:
        """Supervise until all processes have ended; return 0 if each has ended as it was told to.

        A second SIGTERM or SIGINT kills all; the code is then 128 and the signal's number.
        """
        with _received_signals() as wakeup:
            self._selector.register(wakeup, selectors.EVENT_READ)
            for place in self._places:
                self._start(place)
            while self._state is not _State.STOPPING or any(place.child for place in self._places):
                events = self._selector.select(self._seconds_left())
                for number in _numbers(wakeup) if any(key.fileobj == wakeup for key, _ in events) else ():
                    self._receive(number)
                self._look()
        if self._error is not None:
            raise self._error
        if self._failure is not None:
            raise ChildFailed(self._failure)
        return self._code

    def _seconds_left(self) -> float | None:
        """Return the time until something is due; `None` if nothing is."""
        waiting = [place.backoff.seconds_left for place in self._places if self._is_due_later(place)]
        if self._kill_at < math.inf:
            waiting.append(max(self._kill_at - time.monotonic(), 0.0))
        if self._state is _State.SERVING:
            waiting.append(LOOK_SECONDS)
        return min(waiting, default=None)

    def _is_due_later(self, place: _Place) -> bool:
        return place.child is None and self._state is _State.SERVING

    def _receive(self, number: signal.Signals) -> None:
        if number is signal.SIGHUP:
            self._send(number)
        elif number in (signal.SIGTERM, signal.SIGINT):
            if self._state is _State.STOPPING and self._failure is None:
                _LOG.warning("second %s: exiting immediately", number.name)
                self._kill(128 + number)
            else:
                _LOG.info("%s: stopping; a second one exits immediately", number.name)
                self._stop()

    def _look(self) -> None:
        """Handle everything that children have reported, those that have ended or hang, and what is due."""
        now = self._present.seconds()
        for place in self._places:
            if place.child is not None:
                place.child.read()
                if place.child.reports.has_ended:
                    self._ignore(place.child)
                self._note_ready(place, place.child.reports.ready)
                if place.num_beats != place.child.reports.num_beats or not place.is_ready:
                    place.num_beats, place.beat_at_seconds = place.child.reports.num_beats, now
                if (code := place.child.end()) is not None:
                    self._ended(place, place.child, code)
        if self._state is _State.STARTING and all(place.is_ready for place in self._places):
            self._state = _State.SERVING
            self._announce_ready()
        if self._state is _State.SERVING:
            self._end_hung(now)
        for place in self._places:
            if self._is_due_later(place) and not place.backoff.seconds_left:
                self._start(place)
        if self._state is _State.STOPPING:
            self._stop_in_order()

    def _note_ready(self, place: _Place, text: str | None) -> None:
        if text is not None and not place.is_ready:
            place.is_ready = True
            place.num_failed_starts = 0
            place.backoff.restarted()
            _LOG.info("%s is ready", place.role.name)

    def _end_hung(self, now: float) -> None:
        """Kill a process that hangs, as it can't stop by itself; give all others the full time again."""
        beating = [place for place in self._places if place.child is not None and place.is_ready and place.num_beats]
        silent = [now - place.beat_at_seconds for place in beating]
        if (index := hung(silent)) is None:
            return
        place = beating[index]
        _LOG.error("%s hangs: it has not run for %.0f s; killing it", place.role.name, silent[index])
        assert place.child is not None
        place.child.signal(signal.SIGKILL)
        for each in beating:
            each.beat_at_seconds = now

    def _announce_ready(self) -> None:
        texts = {p.role.name: p.child.reports.ready or "" for p in self._places if p.child is not None}
        try:
            self._announce(texts)
        except Exception as error:
            self._error = error
            self._stop()

    def _start(self, place: _Place) -> None:
        children = [other.child for other in self._places if other.child is not None]
        try:
            place.child = fork(place.role.run, (*children, *self._to_close))
        except OSError as error:
            self._failed(place, Failure(os.EX_OSERR, (f"{place.role.name} could not be started: {error.strerror}.",)))
            return
        place.is_ready = False
        place.num_beats = 0
        self._selector.register(place.child, selectors.EVENT_READ)

    def _ended(self, place: _Place, child: Child, code: int) -> None:
        self._ignore(child)
        child.close()
        place.child = None
        if self._state is _State.STOPPING:
            if code and place.is_ready and self._kill_at < math.inf:  # not killed from here
                _LOG.warning("%s ended with exit code %d", place.role.name, code)
                self._code = self._code or os.EX_SOFTWARE
            return
        how = f"was ended by signal {code - 128}" if code > 128 else f"ended with exit code {code}"
        when = "" if place.is_ready else " before it was ready"
        line = f"{place.role.name} {how}{when}."
        self._failed(place, child.reports.failure or Failure(code or os.EX_SOFTWARE, (line,)))

    def _failed(self, place: _Place, failure: Failure) -> None:
        place.num_failed_starts += not place.is_ready
        place.is_ready = False
        name = place.role.name
        reason = failure.lines[0] if failure.lines else f"{name} ended with exit code {failure.code}."
        if self._state is _State.STARTING:
            self._give_up(failure)
        elif place.num_failed_starts >= MAX_RESTARTS:
            line = f"{name} could not be started {MAX_RESTARTS} times in a row; the last time: {reason}"
            self._give_up(Failure(os.EX_SOFTWARE, (line,)))
        else:
            place.backoff.failed()
            seconds = place.backoff.seconds_left
            _LOG.error("%s; %s is restarted in %.1f s", reason.removesuffix("."), name, seconds)

    def _give_up(self, failure: Failure) -> None:
        self._failure = failure
        self._stop()

    def _stop(self) -> None:
        if self._state is not _State.STOPPING:
            self._state = _State.STOPPING
            self._kill_at = time.monotonic() + self._stop_seconds
            self._stop_in_order()

    def _stop_in_order(self) -> None:
        """Tell those to stop whose turn it is, and kill what has not ended in time."""
        first = [place for place in self._places if not place.role.stays_last]
        if time.monotonic() >= self._kill_at:
            _LOG.warning("processes that did not end within %g s are killed", self._stop_seconds)
            self._kill(os.EX_SOFTWARE)
        for place in first if any(place.child for place in first) else self._places:
            if place.child is not None and not place.is_stopping:
                place.is_stopping = True
                place.child.signal(signal.SIGTERM)

    def _kill(self, code: int) -> None:
        self._code = code
        self._kill_at = math.inf
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        for place in self._places:
            if place.child is not None:
                place.child.signal(number)

    def _ignore(self, child: Child) -> None:
        if child in {key.fileobj for key in self._selector.get_map().values()}:
            self._selector.unregister(child)


@contextmanager
def _received_signals() -> Iterator[int]:
    """Have the numbers of signals written to a descriptor, from which `_numbers` reads them."""
    receiving, sending = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    wakeup = signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
    try:
        yield receiving
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(receiving)
        os.close(sending)


def _numbers(descriptor: int) -> list[signal.Signals]:
    return [signal.Signals(number) for number in os.read(descriptor, 4096)]
