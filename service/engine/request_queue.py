"""The engine's queue: the live sequences (accepted and not ended), wherever they are, and the one update of each."""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator

from service.domain.errors import Cancelled, DeadlineExceeded, ServiceError
from service.domain.translation import FinishReason
from service.engine.integrity import expect
from service.engine.sequence import DecodedHypothesis, Sequence, SequenceStatus, SequenceUpdate
from service.engine.waiting import WaitingQueue

_MIN_COMPACTED = 64

Unwanted = tuple[Sequence, ServiceError, FinishReason]  # who is to be dropped, and why


class RequestQueue:
    """The accepted sequences, those that wait for slots (`waiting`) and those being decoded, with deadlines and aborts.

    Each gets exactly one update, which `take_updates` returns. Not thread-safe: the engine's threads use it under one
    lock. Query the parts directly, but make changes through this class only.
    """

    def __init__(
        self, max_waiting: int, clock: Callable[[], float], tokens_of: Callable[[Sequence], float] = lambda _: 0.0
    ) -> None:
        self._clock = clock
        self._tokens_of = tokens_of
        self.waiting = WaitingQueue(max_waiting)
        self.live: set[Sequence] = set()
        self.aborted: list[Sequence] = []  # by their callers, to be dropped in the next turn
        self.updates: list[SequenceUpdate] = []
        self._deadlines: list[tuple[float, int, Sequence]] = []  # a heap; those of ended sequences are removed lazily
        self._num_deadlines = 0  # so far; breaks ties in the heap
        self._compact_at = _MIN_COMPACTED

    def __contains__(self, sequence: Sequence) -> bool:
        return sequence in self.live

    def admit(self, sequences: Iterable[Sequence]) -> None:
        for sequence in sequences:
            self.live.add(sequence)
            if sequence.deadline_seconds is not None:
                self._watch_deadline(sequence, sequence.deadline_seconds)
            sequence.expected_rows = sequence.num_slots * self._tokens_of(sequence)
            self.waiting.admit([sequence])

    def start(self, sequences: Iterable[Sequence]) -> None:
        for sequence in sequences:
            self.waiting.take([sequence])
            sequence.status = SequenceStatus.RUNNING

    def abort(self, sequences: Iterable[Sequence]) -> bool:
        """Note that callers gave up sequences; return whether any of them is live."""
        aborted = [sequence for sequence in sequences if sequence in self.live]
        self.aborted.extend(aborted)
        return bool(aborted)

    def take_unwanted(self, now_seconds: float) -> Iterator[Unwanted]:
        """Yield sequences to drop: those newly given up, then expired ones, earliest first. One may come twice."""
        aborted, self.aborted = self.aborted, []
        for sequence in aborted:
            yield sequence, Cancelled("the caller cancelled the call."), FinishReason.CANCELLED
        for sequence in self._take_expired(now_seconds):
            yield sequence, DeadlineExceeded("the call's deadline passed."), FinishReason.DEADLINE

    def next_deadline(self) -> float | None:
        while self._deadlines and self._deadlines[0][-1].status is SequenceStatus.FINISHED:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def drop(self, sequence: Sequence, error: ServiceError, reason: FinishReason) -> None:
        """End a sequence early, wherever it is; has no effect on one that is unknown or has ended."""
        if sequence in self.waiting:
            self.waiting.drop(sequence)
        self._end(sequence, reason, error=error)

    def finish(self, sequence: Sequence, hypotheses: tuple[DecodedHypothesis, ...]) -> None:
        self._end(sequence, hypotheses[0].finish_reason, hypotheses)

    def fail(self, sequence: Sequence, error: ServiceError) -> None:
        self._end(sequence, error=error)

    def fail_all(self, error: ServiceError) -> None:
        for sequence in list(self.live):
            self._end(sequence, error=error)

    def take_updates(self) -> list[SequenceUpdate]:
        updates, self.updates = self.updates, []
        return updates

    def put_back(self, updates: Iterable[SequenceUpdate]) -> None:
        self.updates = [*updates, *self.updates]

    def check_integrity(self, assigned: Iterable[Sequence]) -> None:
        """Check that each sequence is waiting or `assigned`, has one update at most, and one watched deadline."""
        self.waiting.check_integrity()
        places = Counter((*self.waiting.candidates(), *assigned))
        twice = [sequence.call.request_id for sequence, count in places.items() if count > 1]
        expect(not twice, f"sequences of {twice} are in two places")
        lost = [sequence.call.request_id for sequence in self.live if sequence not in places]
        expect(not lost, f"sequences of {lost} are nowhere and would get no update")
        ended = [sequence.call.request_id for sequence in places if sequence not in self.live]
        expect(not ended, f"sequences of {ended} have had their update and are still here")
        told = [update.sequence for update in self.updates]
        expect(len(set(told)) == len(told), "a sequence gets two updates")
        expect(not self.live.intersection(told), "a sequence that gets its update continues")
        self._check_deadlines(places)

    def _check_deadlines(self, live: Collection[Sequence]) -> None:
        watched = [sequence for _, _, sequence in self._deadlines]
        known = set(watched)
        expect(len(known) == len(watched), "a deadline is watched twice")
        for sequence in live:
            if sequence.deadline_seconds is not None and sequence not in known:
                is_over = sequence.status is SequenceStatus.FINISHED
                expect(is_over, f"the deadline of {sequence.call.request_id} is not watched")

    def _watch_deadline(self, sequence: Sequence, deadline_seconds: float) -> None:
        self._num_deadlines += 1
        heapq.heappush(self._deadlines, (deadline_seconds, self._num_deadlines, sequence))
        if len(self._deadlines) > self._compact_at:  # mostly far deadlines of sequences long gone
            self._deadlines = [entry for entry in self._deadlines if entry[-1].status is not SequenceStatus.FINISHED]
            heapq.heapify(self._deadlines)
            self._compact_at = 2 * len(self._deadlines) + _MIN_COMPACTED

    def _take_expired(self, now_seconds: float) -> Iterator[Sequence]:
        while self._deadlines and self._deadlines[0][0] <= now_seconds:
            sequence = heapq.heappop(self._deadlines)[-1]
            if sequence.status is not SequenceStatus.FINISHED:
                yield sequence

    def _end(
        self,
        sequence: Sequence,
        reason: FinishReason | None = None,
        hypotheses: tuple[DecodedHypothesis, ...] = (),
        error: ServiceError | None = None,
    ) -> None:
        if sequence not in self.live:  # it was given up, or all were failed, meanwhile
            return
        self.live.remove(sequence)
        if sequence.status is SequenceStatus.WAITING:  # otherwise its worker releases it, perhaps before it joins
            sequence.status = SequenceStatus.FINISHED
        self.updates.append(SequenceUpdate(sequence, reason, hypotheses, error, self._clock()))
