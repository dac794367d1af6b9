"""Admission control: rejects sequences that can never run, and those that would wait or decode too long."""

import math
from collections.abc import Sequence as Sequence_

from service.domain.call import Origin
from service.domain.errors import InvalidRequest, Overloaded, Path, Public, TooLate, TooLong, TooMany, counted
from service.domain.translation import Priority
from service.engine.costs import Costs
from service.engine.request_queue import RequestQueue
from service.engine.runner import RunnerSpec
from service.engine.sequence import Sequence, SequenceStatus

_HINT_SECONDS = (0.1, 60.0)
_LATER = "try again later"
_MAX_OUTPUT_TOKENS = Path("options", "max_output_tokens")
# Beside others a call must have so many times its estimated time, which leaves out those who join after it. On a busy
# server the calls that are accepted are those that just fit: without a margin nearly all of them are a little late.
_MARGIN = 1.15
_AMPLE = 4.0  # times the longest time that a sequence may take: a call with more time left needs no estimate

# `BURST_SECONDS` is the longest wait for a first slot during a burst, if the call's deadline allows it; the part of a
# burst that arrives after `INTERVAL_SECONDS` meets the limit of a standing queue. So the first is how much an idle
# server accepts at once, and the second for how long it does so. When an overload of n times the capacity begins
# suddenly, the queue grows to n - 1 intervals, if that is less.
BURST_SECONDS = 30.0
INTERVAL_SECONDS = 2.0
# A queue that is held at its limit is shorter again and again, for a part of the time. So what it used up as a long one
# comes back at this speed only.
_RECOVERY = 0.25
# The limit of a standing queue is this fraction of a sequence's time in a full batch, so that admitted sequences finish
# not much later than without a queue; but not less than `_LEAST_SECONDS`.
_QUEUE_SHARE = 0.25
_LEAST_SECONDS = 0.25


class BurstAllowance:
    """A leaky bucket of `INTERVAL_SECONDS`: the time for which a queue may still be long.

    Bursts become throughput, while a queue that stays long only adds delay. Times may come from any monotonic clock.
    """

    def __init__(self) -> None:
        self._used_seconds = 0.0
        self._last_seconds = math.inf  # when it was last noted

    def note(self, now_seconds: float, *, is_long: bool) -> None:
        """Learn how long the queue is, at each arrival: in between it can only get shorter."""
        if is_long or self._used_seconds:
            passed = max(now_seconds - self._last_seconds, 0.0)
            used = self._used_seconds + (passed if is_long else -_RECOVERY * passed)
            self._used_seconds = min(max(used, 0.0), INTERVAL_SECONDS)
        self._last_seconds = now_seconds

    @property
    def is_used_up(self) -> bool:
        return self._used_seconds >= INTERVAL_SECONDS


def check_possible(sequences: Sequence_[Sequence], max_waiting: int, max_slots: int, spec: RunnerSpec) -> None:
    """Reject sequences that could not run even on an idle server; `max_slots` is that of the largest worker."""
    if len(sequences) > max_waiting:
        raise TooMany(
            "{path} have {number} segments, counting each sample of one",
            "texts",
            number=len(sequences),
            allowed=f"{max_waiting} per call",
            advice="send less text per call",
        )
    if len(set(sequences)) != len(sequences):
        raise ValueError("a sequence was submitted twice")
    for sequence in sequences:
        if sequence.status is not SequenceStatus.WAITING:
            raise ValueError(f"a sequence was submitted that is {sequence.status.value} already")
        length, slots, given = len(sequence.source_ids), sequence.num_slots, len(sequence.output_prefix_ids)
        room = spec.kv_capacity - len(sequence.target_prefix_ids)
        if not 1 <= length <= spec.max_source_tokens:
            allowed = f"1 to {spec.max_source_tokens}"
            raise TooLong("a source has {number} tokens", number=length, allowed=allowed, advice="split the text")
        if not 1 <= sequence.options.max_output_tokens <= room:
            value = sequence.options.max_output_tokens
            raise InvalidRequest("{path} is {value}", _MAX_OUTPUT_TOKENS, value=value, allowed=f"1 to {room}")
        if given and given >= sequence.options.max_output_tokens:
            raise InvalidRequest(
                "a target prefix has {tokens}, and {limit} is {value}",
                "target_prefixes",
                tokens=Public(counted(given, "token")),
                limit=_MAX_OUTPUT_TOKENS,
                value=sequence.options.max_output_tokens,
                allowed=f"up to {sequence.options.max_output_tokens - 1}",
                advice="shorten the prefix",
            )
        if sequence.options.changes_scores and not spec.has_logits:
            raise InvalidRequest("the model's graph does not return the logits that these options change")
        if not 1 <= slots <= max_slots:
            allowed = f"1 to {max_slots} on this server"
            raise InvalidRequest("{path} is {value}", Path("options", "beam_size"), value=slots, allowed=allowed)


class Admission:
    """Measures the queue by work, not by calls: the estimated row-steps that wait, times the measured seconds of each.

    Callers take turns, and so do each caller's calls (`waiting`), so a new call does not wait for the whole queue:
    ahead of it are at most as many sequences of each other caller as of its own caller, and as many of each of its
    caller's other calls as it has itself. Excess demand thus rejects the caller that causes it. Estimates describe
    typical sequences: a long queue comes close to them, a single text may differ much. Until something was measured,
    only a full queue rejects. Not thread-safe, except `wait_seconds` and `check_queue`, which may read values from
    slightly different moments.
    """

    def __init__(self, queue: RequestQueue, costs: Costs, max_waiting: int, max_queue_seconds: float) -> None:
        """Allow at most `max_waiting` waiting sequences, and reject calls that would wait longer than
        `max_queue_seconds` for a first slot; 0 means a limit for bursts, and a low one for a queue that stays long."""
        self._queue = queue
        self._costs = costs
        self._max_waiting = max_waiting
        self._max_queue_seconds = max_queue_seconds
        self._bursts = {priority: BurstAllowance() for priority in Priority}

    def wait_seconds(self, num_free_slots: int, priority: Priority = Priority.NORMAL) -> float:
        """Return the length of the queue: the wait for a first slot if all calls took turns, regardless of caller."""
        return self._seconds_for(self._queue.waiting.num_calls_ahead(priority), num_free_slots)

    def check_queue(self, num_free_slots: int, priority: Priority, origin: Origin, now_seconds: float) -> None:
        """Reject a call based only on its priority and origin, before anything else is known about it."""
        has_room = self._has_room(num_free_slots)
        self._check_wait(num_free_slots, priority, origin, now_seconds, has_room=has_room)

    def _check_wait(
        self, num_free_slots: int, priority: Priority, origin: Origin, now_seconds: float, *, has_room: bool
    ) -> None:
        if has_room:
            self._bursts[priority].note(now_seconds, is_long=False)
            return
        wait = self._seconds_for(self._queue.waiting.num_ahead(priority, origin), num_free_slots)
        limit = self._limit_seconds(num_free_slots, priority, now_seconds)
        if wait > limit:
            raise Overloaded(
                "a call that arrives now would wait about {wait:.1f} s, and at most {limit:.1f} s is allowed",
                _hint(wait - limit / 2),
                wait=wait,
                limit=limit,
                advice=_LATER,
            )

    def check(self, sequences: Sequence_[Sequence], num_free_slots: int, num_rows: int, now_seconds: float) -> None:
        """Accept or reject all sequences of one call and deadline; `num_rows` is the mean of used rows per worker."""
        if not sequences:
            return
        priority, origin = sequences[0].priority, sequences[0].origin
        waiting = self._queue.waiting
        room = waiting.room(origin) if self._queue.waiting.num_sequences else self._max_waiting
        if (excess := len(sequences) - room) > 0:
            raise Overloaded(
                "the call has {sequences}, {num_waiting} of at most {most} are waiting, and this caller may add {room}",
                _hint(self._seconds_for(excess, 0)),
                sequences=Public(counted(len(sequences), "sequence")),
                num_waiting=self._queue.waiting.num_sequences,
                most=self._max_waiting,
                room=room,
                advice=_LATER,
            )
        has_room = self._has_room(num_free_slots)
        if not sequences[0].is_continued:
            self._check_wait(num_free_slots, priority, origin, now_seconds, has_room=has_room)
        if (deadline_seconds := sequences[0].deadline_seconds) is not None:
            left_seconds = deadline_seconds - now_seconds
            self._check_deadline(sequences, num_free_slots, num_rows, left_seconds, has_room=has_room)

    def _check_deadline(
        self, sequences: Sequence_[Sequence], num_free_slots: int, num_rows: int, left_seconds: float, *, has_room: bool
    ) -> None:
        first = sequences[0]
        reserved, num_slots = first.reserved_seconds, first.num_slots
        if len(sequences) == 1 and has_room:
            longest_seconds = first.max_tokens * self._costs.turn_seconds(self._costs.max_rows)
            if left_seconds - reserved > _AMPLE * longest_seconds > 0.0:  # as for most calls, without an estimate
                return
        work = self._work(sequences)
        alone = reserved + self._decode_seconds(*work, num_slots)
        if alone > left_seconds:
            raise TooLate(
                "the call has {left:.2f} s left and takes about {needed:.2f} s",
                left=max(left_seconds, 0.0),
                needed=alone,
                advice="allow more time, or send less text per call",
            )
        wait = 0.0
        if not has_room:
            num_ahead = self._queue.waiting.num_ahead(first.priority, first.origin, len(sequences))
            wait = self._seconds_for(num_ahead, num_free_slots)
        num_joining = self._queue.waiting.num_sequences // self._costs.num_workers
        seconds = wait + reserved + self._decode_seconds(*work, num_rows + num_joining + num_slots)
        if seconds > alone:
            seconds *= _MARGIN
        if seconds > left_seconds:
            raise Overloaded(
                "the call has {left:.2f} s left and would take about {needed:.2f} s, including {wait:.2f} s of waiting "
                "for earlier calls",
                _hint(seconds - left_seconds),
                left=left_seconds,
                needed=seconds,
                wait=wait,
                advice="try again later, or allow more time",
            )

    def alone_seconds(self, sequences: Sequence_[Sequence]) -> float:
        return self._decode_seconds(*self._work(sequences), sequences[0].num_slots) if sequences else 0.0

    def _work(self, sequences: Sequence_[Sequence]) -> tuple[float, float]:
        """Estimate the row-steps of sequences of equal options, and the steps of the longest."""
        tokens = [self._costs.expected_tokens(sequence) for sequence in sequences]
        return sequences[0].num_slots * sum(tokens), max(tokens)

    def _limit_seconds(self, num_free_slots: int, priority: Priority, now_seconds: float) -> float:
        if self._max_queue_seconds:
            return self._max_queue_seconds
        typical = self._costs.typical_tokens * self._costs.full_turn_seconds
        limit, burst = max(_QUEUE_SHARE * typical, _LEAST_SECONDS), self._bursts[priority]
        burst.note(now_seconds, is_long=self.wait_seconds(num_free_slots, priority) >= limit)
        return limit if burst.is_used_up else max(BURST_SECONDS, limit)

    def _decode_seconds(self, rows: float, longest: float, num_rows: int) -> float:
        """Estimate the time of `rows` row-steps, the longest sequence `longest` steps, with `num_rows` per worker."""
        costs = self._costs
        return max(rows * costs.seconds_per_row, longest * costs.turn_seconds(num_rows))

    def _has_room(self, num_free_slots: int) -> bool:
        """Return whether a call would start at once: `_seconds_for` is 0 even behind all others. True of most calls."""
        queue = self._queue
        num_waiting = queue.waiting.num_sequences
        if not num_waiting:
            return num_free_slots > 0
        places = num_waiting * num_free_slots * self._costs.typical_tokens
        return (num_waiting + 1) * queue.waiting.expected_rows <= places

    def _seconds_for(self, num_ahead: int, num_free_slots: int) -> float:
        """Estimate the time until `num_ahead` waiting sequences and one more have slots."""
        num_waiting, typical = self._queue.waiting.num_sequences, self._costs.typical_tokens
        rows = self._queue.waiting.expected_rows / num_waiting if num_waiting else typical
        total = (num_ahead + 1) * rows - num_free_slots * typical
        return max(total, 0.0) * self._costs.seconds_per_row


def _hint(seconds: float) -> float:
    """Round to tenths and clamp: it is only an estimate, and equal hints make equal responses, which cost less."""
    least, most = _HINT_SECONDS
    return min(max(round(seconds, 1), least), most)
