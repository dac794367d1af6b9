"""What a turn of the engine did, in plain numbers; turned into metrics elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_HALF_LIFE_SECONDS = 10.0


class TurnStats(NamedTuple):
    """One turn that ran something. Counts of the encoder are 0 when it did not run, those of the step likewise.

    `encoded_tokens` counts live source tokens and `padded_tokens` the area that was computed (rows times longest
    source, so at least `encoded_tokens`). `num_followers` counts sequences that will get the answer of a twin that is
    being decoded. `num_generated` counts one token per running sequence, however wide its
    beam, forced prefix tokens left out.
    """

    ended_seconds: float  # on the engine's clock
    encode_seconds: float
    num_encoded: int
    num_followers: int
    encoded_tokens: int
    padded_tokens: int
    step_seconds: float
    batch_size: int
    num_generated: int
    queue_seconds: Sequence[float]  # arrival -> admission, per sequence that left the queue in this turn
    first_token_seconds: Sequence[float]  # arrival -> first token, per sequence that got it in this turn


@dataclass(frozen=True, slots=True)
class EngineSnapshot:
    """Where the engine stands now. `turn_seconds` is the age of the turn under way, 0 when idle: a watchdog's input.

    `num_waiting_tokens` counts the source tokens of those who wait, `wait_seconds` estimates how long one who comes now
    will: 0 while nobody waits, else as the hint to callers who are refused.
    """

    num_waiting: int
    num_waiting_tokens: int
    wait_seconds: float
    num_running: int
    slots_used: int
    max_slots: int
    is_alive: bool
    turn_seconds: float


class DepartureRate:
    """Sequences that leave the queue per second, averaged over about the last ten seconds of work."""

    def __init__(self) -> None:
        self._departed = 0.0
        self._seconds = 0.0

    def add(self, num_departed: int, seconds: float) -> None:
        """Count a turn: how many left, and how long it took."""
        keep = 0.5 ** (seconds / _HALF_LIFE_SECONDS)
        self._departed = self._departed * keep + num_departed
        self._seconds = self._seconds * keep + seconds

    def seconds_until(self, num_departed: int) -> float:
        """Estimate how long it takes until `num_departed` more have left; between 0.1 s and 60 s, 1 s when unknown."""
        if not self._departed:
            return 1.0
        return min(max(num_departed * self._seconds / self._departed, 0.1), 60.0)
