"""A sequence: one source being decoded, from submission to its one terminal update."""

import enum
import threading
from dataclasses import dataclass, field

import numpy as np
from numpy import typing as npt

from service.domain.call import Call, Origin
from service.domain.errors import ServiceError
from service.domain.options import RATIO_ALLOWANCE, DecodingOptions
from service.domain.translation import FinishReason, Priority

_GAMMA = 0x9E3779B97F4A7C15  # of `stream_seed`
_MASK = 2**64 - 1

Attention = npt.NDArray[np.float32]


class SequenceStatus(enum.Enum):
    """The state of a sequence. Only the engine's thread changes it."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(slots=True, eq=False)
class Sequence:
    """One source to decode and its options; created by the translator, owned by the engine from `submit` to its update.

    `source_ids` include the language pair's prefix and end with the end-of-sentence token; `target_prefix_ids` are
    forced at the start of the output and don't appear in the hypotheses. `output_prefix_ids`, the caller's beginning of
    the translation, are forced after those, part of every hypothesis and of `max_output_tokens`, but not of scores. A
    sequence is at most one sample: each of several has its own seed. Times are on `time.monotonic()`'s clock. Turns are
    taken by the call's origin (`waiting`), no part of which callers may choose; its request id, which they may, is for
    messages only. The engine ignores `joint_updates`. With `wants_attention`, hypotheses have theirs, if the runner
    records it.
    """

    source_ids: tuple[int, ...]
    options: DecodingOptions
    arrived_seconds: float
    target_prefix_ids: tuple[int, ...] = ()
    deadline_seconds: float | None = None
    reserved_seconds: float = 0.0
    is_continued: bool = False
    priority: Priority = Priority.NORMAL
    output_prefix_ids: tuple[int, ...] = ()
    wants_progress: bool = False
    wants_attention: bool = False
    joint_updates: "JointUpdates | None" = None
    call: Call = field(default_factory=Call)
    status: SequenceStatus = SequenceStatus.WAITING
    expected_rows: float = 0.0  # row-steps, estimated when the engine accepted it
    slots: list[int] = field(default_factory=list)  # rows of the arena, one per live hypothesis
    admitted_seconds: float = 0.0  # 0 until it joins a turn, like the two below
    encoded_seconds: float = 0.0
    first_token_seconds: float = 0.0
    origin: Origin = field(init=False)  # whose call it belongs to
    max_tokens: int = field(init=False)  # of a hypothesis, limited by `max_output_tokens` or `max_length_ratio`
    num_slots: int = field(init=False)  # rows that it needs while it runs
    forced_ids: tuple[int, ...] = field(init=False)  # what every hypothesis begins with, not chosen by the model

    def __post_init__(self) -> None:
        options = self.options
        self.origin = self.call.origin
        self.num_slots = options.beam_size
        self.forced_ids = self.target_prefix_ids + self.output_prefix_ids
        self.max_tokens = options.max_output_tokens
        if options.max_length_ratio:
            by_ratio = int(options.max_length_ratio * len(self.source_ids)) + RATIO_ALLOWANCE
            self.max_tokens = min(self.max_tokens, len(self.output_prefix_ids) + by_ratio)

    @property
    def limit_reason(self) -> FinishReason:
        """Return the finish reason of a hypothesis of `max_tokens` tokens."""
        return FinishReason.LENGTH if self.max_tokens == self.options.max_output_tokens else FinishReason.RATIO


@dataclass(frozen=True, slots=True)
class DecodedHypothesis:
    """Token ids of one finished candidate, without start token, prefix and end-of-sentence token.

    `score` is its length-normalized log-probability (NaN unless requested in greedy search), including that of a
    removed repetition. `attention` (T, S), if wanted and recorded, is how much tokens attended to source tokens; rows
    sum to 1.
    """

    token_ids: tuple[int, ...]
    score: float
    finish_reason: FinishReason
    attention: Attention | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SequenceProgress:
    """The tokens of a running sequence that are certain: its best hypothesis begins with them. They only grow."""

    sequence: Sequence
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SequenceUpdate:
    """The one terminal message about a sequence.

    Either `error` is set, `Cancelled` or `DeadlineExceeded` for an aborted or expired one, or `hypotheses`, best first.
    """

    sequence: Sequence
    finish_reason: FinishReason | None
    hypotheses: tuple[DecodedHypothesis, ...] = ()
    error: ServiceError | None = None
    finished_seconds: float = 0.0


class JointUpdates:
    """Keeps the updates of sequences whose caller needs them all, until the last one or an error. Thread-safe."""

    __slots__ = ("_has_failed", "_lock", "_num_left", "_updates")

    def __init__(self, num_sequences: int) -> None:
        self._num_left = num_sequences
        self._has_failed = False
        self._updates: list[SequenceUpdate] = []
        self._lock = threading.Lock()

    def add(self, update: SequenceUpdate) -> list[SequenceUpdate]:
        """Return the updates to tell the caller now: all so far if this was the last, or once one has an error."""
        with self._lock:
            self._updates.append(update)
            self._num_left -= 1
            self._has_failed = self._has_failed or update.error is not None
            if self._num_left > 0 and not self._has_failed:
                return []
            updates, self._updates = self._updates, []
            return updates


def stream_seed(seed: int, sample: int) -> int:
    """Return the seed of one sample's random stream, modulo 2 ** 64; `search/sampling.cpp` draws from it."""
    return mixed((mixed((seed + _GAMMA) & _MASK) + sample) & _MASK)


def mixed(word: int) -> int:
    """Return a word of 64 bits that depends on all bits of another (SplitMix64: Steele, Lea, Flood 2014)."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _MASK
    return word ^ (word >> 31)
