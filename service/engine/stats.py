"""What a turn of the engine did, in plain numbers; turned into metrics elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


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

    `num_waiting_tokens` counts the source tokens of those who wait, `wait_seconds` estimates how long a call that comes
    now would, about, if all calls took turns, whosesoever they are: 0 while there are free slots.
    """

    num_waiting: int
    num_waiting_tokens: int
    wait_seconds: float
    num_running: int
    slots_used: int
    max_slots: int
    is_alive: bool
    turn_seconds: float
