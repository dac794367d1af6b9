"""The life of a server process: its phase, the signals that stop it, and whether its event loop is alive."""

import asyncio
import enum
import logging
import random
import signal
import threading
import time
from collections.abc import Callable

from service.process.standard_streams import leave

_LOG = logging.getLogger(__name__)

LOOK_SECONDS = 1.0  # at most between two beats of the event loop; between two looks at what should run
POLL_SECONDS = 0.02  # between two looks at what is about to end
HUNG_SECONDS = 10.0  # how long the event loop may be silent, for probes: what does not run answers no calls either
LAST_SECONDS = 2.0  # for what comes at the end, of a call or of the server: last messages, answers and spans


class Phase(enum.Enum):
    """The server's phase."""

    LOADING = "loading"
    SERVING = "serving"
    RECOVERING = "recovering"  # an engine has failed and is being restarted; other models' calls are answered
    DRAINING = "draining"  # asked to stop; still answers
    FAILED = "failed"  # an engine can't be restarted: the process is about to exit

    @property
    def is_ready(self) -> bool:
        return self is Phase.SERVING

    @property
    def is_alive(self) -> bool:
        """Return whether the process should keep running."""
        return self is not Phase.FAILED


def on_signals(stop: asyncio.Event, reload: asyncio.Event) -> None:
    """Set `stop` on SIGTERM and SIGINT, of which a second one ends the process, and `reload` on SIGHUP."""

    def stop_or_leave(number: signal.Signals) -> None:
        if stop.is_set():
            _LOG.warning("second %s: exiting immediately", number.name)
            leave(128 + number)
        _LOG.info("%s: stopping; a second one exits immediately", number.name)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_or_leave, number)
    loop.add_signal_handler(signal.SIGHUP, reload.set)


def leave_within(seconds: float, code: int) -> None:
    """End the process after this time at the latest, whatever it waits for, such as a disk that does not answer."""
    timer = threading.Timer(seconds, leave, (code,))
    timer.daemon = True
    timer.start()


class Heartbeat:
    """Shows other threads whether the event loop runs: a bug or a suspended machine may block it.

    One beat a second or sooner. Call `start` and `stop` on the event loop's thread; `silent_seconds` is thread-safe.
    """

    def __init__(self, late: Callable[[float], None], clock: Callable[[], float] = time.monotonic) -> None:
        """Call `late` with the seconds by which each beat but the first is late: calls wait as long for the loop."""
        self._late = late
        self._clock = clock
        self._beat_at_seconds = clock()
        self._pause_seconds = 0.0  # between the last beat and the next one
        self._chance = random.Random()
        self._next: asyncio.TimerHandle | None = None

    def silent_seconds(self) -> float:
        """Return the time since the last beat: normally about a second at most."""
        return self._clock() - self._beat_at_seconds

    def start(self) -> None:
        self._schedule(asyncio.get_running_loop())

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._late(max(self.silent_seconds() - self._pause_seconds, 0.0))
        self._schedule(loop)

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        # At random: regular beats could always hit the same part of a period, such as the 100 ms after each of which
        # the kernel lets a container with a CPU limit run again.
        self._pause_seconds = LOOK_SECONDS * self._chance.uniform(0.5, 1.0)
        self._beat_at_seconds = self._clock()
        self._next = loop.call_later(self._pause_seconds, self._beat, loop)
