"""Admission control: estimates how long new sequences would wait and decode, and rejects those that take too long."""

from collections.abc import Sequence as Sequence_

from service.domain.call import Origin
from service.domain.errors import Overloaded, TooLate
from service.domain.translation import Priority
from service.engine.controlled_delay import ControlledDelay
from service.engine.requests import Requests
from service.engine.sequence import Sequence
from service.engine.throughput import Throughput

# The default target delay of a standing queue: a fraction of a sequence's time in a full batch, so that admitted
# sequences finish not much later than without a queue.
_QUEUE_SHARE = 0.25
_LEAST_QUEUE_SECONDS = 0.25
_BENEFIT_OF_DOUBT = 0.75  # fraction of an estimate that must fit into the time a call has left
_HINT_SECONDS = (0.1, 60.0)
_LATER = "try again later"


class Admission:
    """Measures the queue by work, not by calls: the estimated row-steps that wait, times the measured seconds of each.

    Callers take turns, and so do each caller's calls (`waiting`). A new call therefore does not wait for the whole
    queue: ahead of it are at most as many sequences of each other caller as of its own caller, and as many of each of
    its caller's other calls as it has itself. So excess demand leads to rejections of the caller that causes it, not of
    others. Estimates describe typical sequences: a long queue comes close to them, while a single text may finish much
    sooner or later and is given the benefit of the doubt. Until something has been measured, calls are rejected only if
    the queue is full.

    Not thread-safe, except `wait_seconds` and `check_queue`, which may read values from slightly different moments.
    """

    def __init__(self, requests: Requests, throughput: Throughput, max_waiting: int, max_queue_seconds: float) -> None:
        """Allow at most `max_waiting` waiting sequences, and reject calls that would wait longer than
        `max_queue_seconds` for a first slot; 0 means the limit given by `ControlledDelay`, whose target is a quarter of
        a sequence's time in a full batch, at least a quarter of a second."""
        self._requests = requests
        self._throughput = throughput
        self._max_waiting = max_waiting
        self._max_queue_seconds = max_queue_seconds
        self._delays = {priority: ControlledDelay() for priority in Priority}

    def wait_seconds(self, num_free_slots: int, priority: Priority = Priority.NORMAL) -> float:
        """Return the length of the queue: the wait for a first slot if all calls took turns, regardless of caller."""
        return self._seconds_for(self._requests.waiting.num_calls_ahead(priority), num_free_slots)

    def check_queue(self, num_free_slots: int, priority: Priority, origin: Origin, now_seconds: float) -> None:
        """Reject a call based only on its priority and origin, before anything else is known about it.

        Raises:
            Overloaded: any call from this origin would wait too long.
        """
        wait = self._seconds_for(self._requests.waiting.num_ahead(priority, origin), num_free_slots)
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
        """Accept or reject the sequences of one call as a whole; `num_rows` is the average number of used rows per
        worker.

        Raises:
            Overloaded: too many sequences wait, in total or for this caller, or the wait would be too long, in general
                or for the call's deadline.
            TooLate: the call could not meet its deadline even on an idle server.
        """
        if not sequences:
            return
        priority, origin = sequences[0].priority, sequences[0].origin
        room = self._requests.waiting.room(origin)
        if (excess := len(sequences) - room) > 0:
            raise Overloaded(
                "the call has {number} sequences, {num_waiting} of at most {most} are waiting, and this caller may add "
                "{room}",
                _hint(self._seconds_for(excess, 0)),
                number=len(sequences),
                num_waiting=len(self._requests.waiting),
                most=self._max_waiting,
                room=room,
                advice=_LATER,
            )
        self.check_queue(num_free_slots, priority, origin, now_seconds)
        deadlines = [each.deadline_seconds for each in sequences if each.deadline_seconds is not None]
        if deadlines:
            self._check_deadline(sequences, num_free_slots, num_rows, min(deadlines) - now_seconds)

    def _check_deadline(
        self, sequences: Sequence_[Sequence], num_free_slots: int, num_rows: int, left_seconds: float
    ) -> None:
        num_slots = sequences[0].num_slots
        tokens = [self._throughput.expected_tokens(sequence) for sequence in sequences]
        work = (num_slots * sum(tokens), max(tokens))
        alone = self._decode_seconds(*work, num_slots)
        if _BENEFIT_OF_DOUBT * alone > left_seconds:
            raise TooLate(
                "the call has {left:.2f} s left and takes about {needed:.2f} s",
                left=max(left_seconds, 0.0),
                needed=alone,
                advice="allow more time, or send less text per call",
            )
        num_ahead = self._requests.waiting.num_ahead(sequences[0].priority, sequences[0].origin, len(sequences))
        wait = self._seconds_for(num_ahead, num_free_slots)
        seconds = wait + self._decode_seconds(*work, num_rows + num_slots)
        if _BENEFIT_OF_DOUBT * seconds > left_seconds:
            raise Overloaded(
                "the call has {left:.2f} s left and would take about {needed:.2f} s, including {wait:.2f} s of waiting "
                "for earlier calls",
                _hint(seconds - left_seconds),
                left=left_seconds,
                needed=seconds,
                wait=wait,
                advice="try again later, or allow more time",
            )

    def _limit_seconds(self, num_free_slots: int, priority: Priority, now_seconds: float) -> float:
        """Return the longest acceptable wait for a first slot."""
        if self._max_queue_seconds:
            return self._max_queue_seconds
        typical = self._throughput.typical_tokens * self._throughput.full_turn_seconds
        target = max(_QUEUE_SHARE * typical, _LEAST_QUEUE_SECONDS)
        return self._delays[priority].limit_seconds(now_seconds, self.wait_seconds(num_free_slots, priority), target)

    def _decode_seconds(self, rows: float, longest: float, num_rows: int) -> float:
        """Estimate how long `rows` row-steps take once they have slots, with `num_rows` rows in use in each worker;
        `longest` is the number of steps of the longest sequence."""
        throughput = self._throughput
        return max(rows * throughput.seconds_per_row, longest * throughput.turn_seconds(num_rows))

    def _seconds_for(self, num_ahead: int, num_free_slots: int) -> float:
        """Estimate the time until `num_ahead` waiting sequences and one more have slots."""
        num_waiting, typical = len(self._requests.waiting), self._throughput.typical_tokens
        rows = self._requests.coalescing.waiting_rows / num_waiting if num_waiting else typical
        total = (num_ahead + 1) * rows - num_free_slots * typical
        return max(total, 0.0) * self._throughput.seconds_per_row


def _hint(seconds: float) -> float:
    """Round to tenths and clamp: it is only an estimate, and equal hints make equal responses, which cost less."""
    least, most = _HINT_SECONDS
    return min(max(round(seconds, 1), least), most)
