"""A sequence: one source being decoded, from submission to its one terminal update."""

import enum
from dataclasses import dataclass, field

from service.domain.errors import ServiceError
from service.domain.origin import Origin
from service.domain.translation import RATIO_ALLOWANCE, DecodingOptions, FinishReason, Priority


class SequenceStatus(enum.Enum):
    """Where a sequence stands. Only the engine's thread moves it on."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(slots=True, eq=False)
class Sequence:
    """What to decode and for whom; created by the translator, owned by the engine from `submit` to its update.

    `source_ids` ends with the end-of-sentence token and holds the language pair's prefix; `target_prefix_ids` are
    forced at the start of the output and don't appear in the hypotheses. `output_prefix_ids` are the caller's own
    beginning of the translation: forced after those, part of every hypothesis and of `max_output_tokens`, but not of
    scores, which are about what the model chose. A sequence is one sample at most: where `options` ask for several,
    each is a sequence of its own with a seed of its own. Times are on `time.monotonic()`'s clock. Turns are taken by
    `origin` (`waiting`), of which callers must not choose anything; `request_id`, which they may, is for messages only.
    """

    request_id: str
    source_ids: tuple[int, ...]
    options: DecodingOptions
    arrived_seconds: float
    target_prefix_ids: tuple[int, ...] = ()
    deadline_seconds: float | None = None
    priority: Priority = Priority.NORMAL
    output_prefix_ids: tuple[int, ...] = ()
    wants_progress: bool = False
    origin: Origin = ()
    status: SequenceStatus = SequenceStatus.WAITING
    slots: list[int] = field(default_factory=list)  # rows of the arena, one per live hypothesis
    admitted_seconds: float = 0.0  # 0 until it joins a turn, as the two below
    encoded_seconds: float = 0.0
    first_token_seconds: float = 0.0
    max_tokens: int = field(init=False)  # of a hypothesis: by `max_output_tokens`, or `max_length_ratio`

    def __post_init__(self) -> None:
        options = self.options
        self.max_tokens = options.max_output_tokens
        if options.max_length_ratio:
            by_ratio = int(options.max_length_ratio * len(self.source_ids)) + RATIO_ALLOWANCE
            self.max_tokens = min(self.max_tokens, len(self.output_prefix_ids) + by_ratio)

    @property
    def num_slots(self) -> int:
        """Rows that the sequence needs while it runs."""
        return self.options.beam_size

    @property
    def forced_ids(self) -> tuple[int, ...]:
        """What every hypothesis begins with, chosen by nobody."""
        return self.target_prefix_ids + self.output_prefix_ids

    @property
    def limit_reason(self) -> FinishReason:
        """Why a hypothesis of `max_tokens` ends."""
        return FinishReason.LENGTH if self.max_tokens == self.options.max_output_tokens else FinishReason.RATIO


@dataclass(frozen=True, slots=True)
class DecodedHypothesis:
    """Token ids of one finished candidate, without start and prefix and without the end-of-sentence token.

    `score` is its length-normalised log-probability (NaN where scores were not asked for under greedy search), with
    that of a repetition that was taken off.
    """

    token_ids: tuple[int, ...]
    score: float
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True)
class SequenceProgress:
    """All tokens of a running sequence that are certain by now: its best hypothesis will begin with them.

    Each message holds what the one before held, and more.
    """

    sequence: Sequence
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SequenceUpdate:
    """The one terminal message about a sequence.

    Either `error` is set, or `hypotheses` holds `num_hypotheses` candidates, best first. A sequence that was
    aborted or expired carries `Cancelled` or `DeadlineExceeded` as its error, and that finish reason.
    """

    sequence: Sequence
    finish_reason: FinishReason | None
    hypotheses: tuple[DecodedHypothesis, ...] = ()
    error: ServiceError | None = None
    finished_seconds: float = 0.0
