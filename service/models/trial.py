"""A trial: sequences decoded on an engine that lives only for them, before anybody is served."""

import dataclasses
import logging
import threading
from collections.abc import Sequence as Sequence_

from service.bundle.manifest import BundleError, one_line
from service.domain.errors import ServiceError
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.engine.runner import Runner
from service.engine.sequence import Sequence, SequenceProgress, SequenceUpdate
from service.engine.stats import TurnStats

_LOG = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 300.0


def run_trial(
    sequences: Sequence_[Sequence], runners: Sequence_[Runner], engine_config: EngineConfig, where: str
) -> list[SequenceUpdate]:
    """Decode sequences to their ends and return their updates in order; all may wait at once, whatever
    `engine_config` allows.

    Raises:
        BundleError: one of them failed, or there was no end; names `where`.
    """
    listener = _Listener(len(sequences))
    config = dataclasses.replace(
        engine_config, max_waiting=max(engine_config.max_waiting, len(sequences)), max_queue_seconds=_TIMEOUT_SECONDS
    )
    engine = Engine(runners, config, listener)
    engine.start()
    try:
        engine.submit(sequences)
        finished = listener.done.wait(_TIMEOUT_SECONDS)
    except ServiceError as error:
        raise BundleError(f"{where} fails its self-test: {one_line(error)}") from error
    finally:
        stopped = engine.stop(_TIMEOUT_SECONDS)
    updates = [listener.updates.get(sequence) for sequence in sequences]
    errors = [update.error for update in updates if update is not None and update.error is not None]
    if not finished or not stopped or None in updates or errors:
        reason = errors[0] if errors else f"no answer within {_TIMEOUT_SECONDS:g} s"
        raise BundleError(f"{where} fails its self-test: {reason}") from (errors[0] if errors else None)
    return [update for update in updates if update is not None]


class _Listener:
    """An `EngineListener` that waits for a number of updates."""

    def __init__(self, num_expected: int) -> None:
        self.updates: dict[Sequence, SequenceUpdate] = {}
        self.done = threading.Event()
        self._num_expected = num_expected

    def on_updates(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        self.updates.update((update.sequence, update) for update in updates)
        if len(self.updates) >= self._num_expected:
            self.done.set()

    def on_turn(self, stats: TurnStats) -> None:
        """Of no interest here."""

    def on_failure(self, error: BaseException) -> None:
        _LOG.error("the engine died during the self-test", exc_info=error)
        self.done.set()
