"""What one call did and when, noted on its way: for its trailers, its line in the access log and its spans.

The record of the call at hand is found by `current`, from whichever of its tasks; only the event loop's thread notes.
"""

import enum
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from service.domain.translation import Translation

TIMING_KEY = "server-timing"


class Phase(enum.Enum):
    """What a call does, in this order; parts of it, such as texts of different languages, each by itself."""

    TOKENIZE = "tokenize"
    QUEUE = "queue"  # until the first of its sequences has slots
    ENCODE = "encode"  # the encoder run of that one
    DECODE = "decode"  # from there until the last of its sequences has ended
    DETOKENIZE = "detokenize"


ENGINE_PHASES = (Phase.QUEUE, Phase.ENCODE, Phase.DECODE)


class Interval(NamedTuple):
    """When a phase began and ended, on `time.monotonic()`'s clock."""

    phase: Phase
    began_seconds: float
    ended_seconds: float


@dataclass(slots=True, eq=False)
class CallRecord:
    """One call. `caller` is the name of the caller's key, `trace_id` that of a trace that is kept, both empty without.

    Where a call leads to several models it is the first one that is named. Tokens are those of its translations,
    the kept ones included, and 0 for a call that failed.
    """

    method: str = ""
    request_id: str = "-"
    began_seconds: float = field(default_factory=time.monotonic)
    ended_seconds: float = 0.0
    code: str = "OK"  # the name of its gRPC status
    message: str = ""  # what went wrong, without the texts that the caller gave
    caller: str = ""
    trace_id: str = ""
    model: str = ""
    model_version: str = ""
    texts: Sequence[str] = ()
    num_source_tokens: int = 0
    num_output_tokens: int = 0
    intervals: list[Interval] = field(default_factory=list)

    @property
    def total_seconds(self) -> float:
        """From its arrival to its end, or, before that, to now."""
        return (self.ended_seconds or time.monotonic()) - self.began_seconds

    def uses(self, model: str, version: str) -> None:
        """It was found which model translates."""
        if not self.model:
            self.model, self.model_version = model, version

    def took(self, phase: Phase, began_seconds: float, ended_seconds: float) -> None:
        """A phase is over."""
        self.intervals.append(Interval(phase, began_seconds, ended_seconds))

    def end(self) -> None:
        """The answer is there, or the error. Idempotent."""
        self.ended_seconds = self.ended_seconds or time.monotonic()

    def translated(self, translations: Iterable[Translation]) -> None:
        """Some of its texts are translated."""
        for each in translations:
            self.num_source_tokens += each.num_source_tokens
            self.num_output_tokens += each.hypotheses[0].num_tokens

    def seconds(self, phase: Phase) -> float:
        """How long any part of the call was in a phase; what went on side by side counts once."""
        intervals = [each for each in self.intervals if each[0] is phase]
        if len(intervals) > 1:
            intervals.sort()
        total = until = 0.0
        for _, began, ended in intervals:
            total += max(ended - max(began, until), 0.0)
            until = max(until, ended)
        return total


_current: ContextVar[CallRecord | None] = ContextVar("call_record", default=None)


def begin(record: CallRecord) -> None:
    """From now on this task, and those that it starts, work for the call of this record.

    One that is a part of another, such as a request on a stream, has the caller of that.
    """
    if (outer := _current.get()) is not None:
        record.caller = outer.caller
    _current.set(record)


def current() -> CallRecord:
    """The record of the call that this task serves; outside of one a record that nobody reads."""
    return _current.get() or CallRecord()


def server_timing(seconds: Callable[[Phase], float], total_seconds: float) -> str:
    """The phases in the engine and the whole call in milliseconds, in W3C's Server-Timing syntax."""
    queue, encode, decode = map(seconds, ENGINE_PHASES)
    return (
        f"queue;dur={1000 * queue:.1f}, encode;dur={1000 * encode:.1f}, decode;dur={1000 * decode:.1f}, "
        f"total;dur={1000 * total_seconds:.1f}"
    )
