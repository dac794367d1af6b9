"""An engine listener that tests can wait on."""

import threading

from service.engine.sequence import SequenceProgress, SequenceUpdate
from service.engine.stats import TurnStats
from tests.patience import patient


class Listener:
    """Collects updates."""

    def __init__(self) -> None:
        self._updates: list[SequenceUpdate] = []
        self._changed = threading.Condition()

    def on_updates(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        with self._changed:
            self._updates += updates
            self._changed.notify_all()

    def on_turn(self, stats: TurnStats) -> None:
        pass

    def on_failure(self, error: BaseException) -> None:
        raise error

    def wait_for(self, num_updates: int) -> list[SequenceUpdate]:
        """Exactly this many updates, within a bounded time."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._updates) >= num_updates, timeout=patient(30))
            assert len(self._updates) == num_updates
            return self._updates
