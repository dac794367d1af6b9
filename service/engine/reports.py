"""Reports of the engine to its listener: updates of sequences, statistics of turns, failures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from service.engine.sequence import SequenceProgress, SequenceUpdate


class TurnStats(NamedTuple):
    """One turn that ran something. The encoder's counts are 0 when it did not run, and likewise those of the decoder.

    The decoder's run began with `batch_size` rows and made `num_steps` steps, 0 if it failed or was interrupted at
    once. `encoded_tokens` are live source tokens, `padded_tokens` the computed area (rows times longest source).
    `num_generated` counts one token per running sequence and step, whatever its beam, without forced prefix tokens.
    """

    ended_seconds: float  # on the engine's clock
    busy_seconds: float  # from its beginning, waiting for work excluded, until its results were recorded
    encode_seconds: float
    num_encoded: int
    encoded_tokens: int
    padded_tokens: int
    run_seconds: float
    num_steps: int
    num_row_steps: int  # the rows of every step
    batch_size: int
    num_generated: int
    queue_seconds: Sequence[float]  # arrival -> admission, per sequence that left the queue in this turn
    first_token_seconds: Sequence[float]  # arrival -> first token, per sequence that got it in this turn


@dataclass(frozen=True, slots=True)
class EngineSnapshot:
    """The engine's current state. `turn_seconds` is the age of the turn under way, 0 when idle: input for a watchdog.

    `num_waiting_tokens` are source tokens. `wait_seconds` estimates how long a new call would wait if all calls took
    turns, regardless of caller: 0 while there are free slots.
    """

    num_waiting: int
    num_waiting_tokens: int
    wait_seconds: float
    num_running: int
    slots_used: int
    max_slots: int
    is_alive: bool
    turn_seconds: float


class EngineListener(Protocol):
    """Receives the engine's events on the engine's threads; must be fast and thread-safe, and must not raise."""

    def on_updates(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        """Receive all terminal updates of one turn, and requested progress, none of it after a sequence's update.

        Must not wait for the engine. If it raises anyway, the engine fails and delivers these updates once more.
        """

    def on_turn(self, stats: TurnStats) -> None:
        """Receive the statistics of a turn that ran something, after its updates, perhaps a few turns late."""

    def on_failure(self, error: BaseException) -> None:
        """Handle an engine failure: accepted sequences fail right after this; no more are accepted until a restart."""
