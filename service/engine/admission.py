"""Who is let in: estimates how long newcomers would wait and decode, and refuses those for whom that is too long."""

from collections.abc import Sequence as Sequence_

from service.domain.errors import Overloaded, TooLate
from service.domain.origin import Origin
from service.domain.translation import Priority
from service.engine.controlled_delay import ControlledDelay
from service.engine.requests import Requests
from service.engine.sequence import Sequence
from service.engine.throughput import Throughput

# Where the limit is left open, of a queue that has stood: a part of what a sequence takes in a full batch, so that
# whoever gets in is done not much later than without a queue.
_QUEUE_SHARE = 0.25
_LEAST_QUEUE_SECONDS = 0.25
_BENEFIT_OF_DOUBT = 0.75  # of an estimate must fit into the time that a call has left
_HINT_SECONDS = (0.1, 60.0)


class Admission:
    """Counts work, not calls: estimated steps of rows that wait, at the measured seconds of each.

    As callers take turns, and within each his calls (`waiting`), what a newcomer waits for is not the whole queue: of
    other callers as many sequences each as of his own, and of his other calls as many each as the new one has. So who
    asks for too much is refused, and not who asks beside him. Estimates are about what is typical: a queue of many
    comes close to them, a single text may be done much sooner or later, so it has the benefit of the doubt. While
    nothing has been measured nobody is refused but for a full queue.

    Not thread-safe but for `wait_seconds` and `check_queue`, which read numbers of slightly different moments.
    """

    def __init__(self, requests: Requests, throughput: Throughput, max_waiting: int, max_queue_seconds: float) -> None:
        """At most `max_waiting` sequences wait, and nobody comes in who would wait longer than `max_queue_seconds` for
        a first slot; 0: longer than `ControlledDelay` allows, whose target is a quarter of a second, and of what a
        sequence takes in a full batch."""
        self._requests = requests
        self._throughput = throughput
        self._max_waiting = max_waiting
        self._max_queue_seconds = max_queue_seconds
        self._delays = {priority: ControlledDelay() for priority in Priority}

    def wait_seconds(self, num_free_slots: int, priority: Priority = Priority.NORMAL) -> float:
        """How long the queue is: the wait for a first slot if all calls took turns, whosesoever they are."""
        return self._seconds_for(self._requests.waiting.num_calls_ahead(priority), num_free_slots)

    def check_queue(self, num_free_slots: int, priority: Priority, origin: Origin, now_seconds: float) -> None:
        """Refuse a call before anything is known of it but its priority and whose it is.

        Raises:
            Overloaded: whatever it is, it would wait too long.
        """
        wait = self._seconds_for(self._requests.waiting.num_ahead(priority, origin), num_free_slots)
        limit = self._limit_seconds(num_free_slots, priority, now_seconds)
        if wait > limit:
            raise Overloaded(
                f"A call that comes now would wait about {wait:.1f} s for its turn, and {limit:.1f} s is the longest "
                "that is allowed; try again later.",
                _hint(wait - limit / 2),
            )

    def check(self, sequences: Sequence_[Sequence], num_free_slots: int, num_rows: int, now_seconds: float) -> None:
        """Refuse the sequences of one call, or none. `num_rows` are in use in each lane, on the average.

        Raises:
            Overloaded: too many wait, of all or of this caller's, or too long, be it for the call's own deadline.
            TooLate: the call could not be done in time if nobody else were here.
        """
        if not sequences:
            return
        priority, origin = sequences[0].priority, sequences[0].origin
        room = self._requests.waiting.room(origin)
        if (excess := len(sequences) - room) > 0:
            raise Overloaded(
                f"{len(sequences)} sequences found {len(self._requests.waiting)} of at most {self._max_waiting} "
                f"waiting, which leaves room for {room} of this caller's; try again later.",
                _hint(self._seconds_for(excess, 0)),
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
                f"The call has {max(left_seconds, 0.0):.2f} s left and takes about {alone:.2f} s; allow more time, or "
                "send less text per call."
            )
        num_ahead = self._requests.waiting.num_ahead(sequences[0].priority, sequences[0].origin, len(sequences))
        wait = self._seconds_for(num_ahead, num_free_slots)
        seconds = wait + self._decode_seconds(*work, num_rows + num_slots)
        if _BENEFIT_OF_DOUBT * seconds > left_seconds:
            raise Overloaded(
                f"The call has {left_seconds:.2f} s left and would take about {seconds:.2f} s, {wait:.2f} s of it for "
                "others that came before; try again later, or allow more time.",
                _hint(seconds - left_seconds),
            )

    def _limit_seconds(self, num_free_slots: int, priority: Priority, now_seconds: float) -> float:
        """The longest that anybody should wait for a first slot."""
        if self._max_queue_seconds:
            return self._max_queue_seconds
        typical = self._throughput.typical_tokens * self._throughput.full_turn_seconds
        target = max(_QUEUE_SHARE * typical, _LEAST_QUEUE_SECONDS)
        return self._delays[priority].limit_seconds(now_seconds, self.wait_seconds(num_free_slots, priority), target)

    def _decode_seconds(self, rows: float, longest: float, num_rows: int) -> float:
        """How long so many rows of steps take once it is their turn, beside so many rows of others in each lane;
        `longest` is how many steps the longest sequence takes."""
        throughput = self._throughput
        return max(rows * throughput.seconds_per_row, longest * throughput.turn_seconds(num_rows))

    def _seconds_for(self, num_ahead: int, num_free_slots: int) -> float:
        """How long it takes until so many sequences that wait have slots, and one more can have some."""
        num_waiting, typical = len(self._requests.waiting), self._throughput.typical_tokens
        rows = self._requests.coalescing.waiting_rows / num_waiting if num_waiting else typical
        total = (num_ahead + 1) * rows - num_free_slots * typical
        return max(total, 0.0) * self._throughput.seconds_per_row


def _hint(seconds: float) -> float:
    """In tenths: it is an estimate, and equal ones make equal answers, which cost less."""
    least, most = _HINT_SECONDS
    return min(max(round(seconds, 1), least), most)
