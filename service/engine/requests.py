"""The live sequences (accepted and not ended), wherever they are, and the one update that each gets."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from service.domain.errors import ServiceError
from service.domain.translation import FinishReason
from service.engine.coalescing import Coalescing
from service.engine.deadlines import Deadlines
from service.engine.integrity import expect
from service.engine.sequence import (
    DecodedHypothesis,
    Sequence,
    SequenceProgress,
    SequenceStatus,
    SequenceUpdate,
)
from service.engine.waiting import WaitingQueue


class Requests:
    """The accepted sequences: those in the queue (`waiting`), those that are decoded or share a decoding
    (`coalescing`), and their `deadlines`. Each gets exactly one update, which `take_updates` returns.

    Not thread-safe: the engine's threads use it under one lock. Query the parts directly, but make changes through this
    class only.
    """

    def __init__(
        self, max_waiting: int, clock: Callable[[], float], rows_of: Callable[[Sequence], float] = lambda _: 0.0
    ) -> None:
        """Use `rows_of` to estimate the number of row-steps of a sequence."""
        self._clock = clock
        self._rows_of = rows_of
        self.waiting = WaitingQueue(max_waiting)
        self.coalescing = Coalescing()
        self.deadlines = Deadlines()
        self.live: set[Sequence] = set()
        self._followers: list[Sequence] = []
        self.updates: list[SequenceUpdate] = []

    def __contains__(self, sequence: Sequence) -> bool:
        return sequence in self.live

    def candidates(self) -> Iterator[Sequence]:
        """Return the waiting sequences in the order in which they should run; of identical ones only the first."""
        return self.coalescing.distinct(self.waiting.candidates())

    def admit(self, sequences: Iterable[Sequence]) -> None:
        """Accept sequences: each will get its update. They wait, or share a decoding under way."""
        for sequence in sequences:
            self.live.add(sequence)
            self.deadlines.add(sequence)
            if self.coalescing.join(sequence, self._rows_of(sequence)):
                self._followers.append(sequence)
            else:
                self.waiting.admit([sequence])

    def start(self, leaders: Iterable[Sequence]) -> None:
        """Record that sequences get slots; waiting ones identical to them share their decoding."""
        for leader in leaders:
            self.waiting.take([leader])
            leader.status = SequenceStatus.RUNNING
            for follower in self.coalescing.lead(leader):
                self.waiting.drop(follower)
                self._followers.append(follower)

    def take_followers(self) -> list[Sequence]:
        """Return the sequences that began to share a running decoding since the last call."""
        followers, self._followers = self._followers, []
        return followers

    def progress(self, leader: Sequence, token_ids: tuple[int, ...]) -> list[SequenceProgress]:
        """Return the progress messages for a leader's watchers, now that these tokens are certain."""
        return [
            SequenceProgress(sequence, token_ids)
            for sequence in self.coalescing.news(leader, len(token_ids))
            if sequence in self.live  # otherwise all were failed meanwhile
        ]

    def drop(self, sequence: Sequence, error: ServiceError, reason: FinishReason) -> Sequence | None:
        """End a sequence early, wherever it is; has no effect on one that is unknown or has ended.

        Returns:
            The sequence that nothing waits for any more and whose decoding should be given up; otherwise `None`.
        """
        if sequence not in self.live:
            return None
        leader = None
        if sequence in self.waiting:
            self.waiting.drop(sequence)
            self.coalescing.leave_queue(sequence)
        else:
            leader = self.coalescing.give_up(sequence)
        self._end(sequence, reason, error=error)
        return leader

    def finish(self, leader: Sequence, hypotheses: tuple[DecodedHypothesis, ...]) -> None:
        """Give a decoded sequence's outcome to all that wait for it."""
        for sequence in self.coalescing.end(leader):
            self._end(sequence, hypotheses[0].finish_reason, hypotheses)

    def fail(self, leader: Sequence, error: ServiceError) -> None:
        """Fail all that wait for a sequence that could not be decoded."""
        for sequence in self.coalescing.end(leader):
            self._end(sequence, error=error)

    def fail_all(self, error: ServiceError) -> None:
        """Fail all live sequences."""
        for sequence in list(self.live):
            self._end(sequence, error=error)

    def take_updates(self) -> list[SequenceUpdate]:
        """Return the updates since the last call."""
        updates, self.updates = self.updates, []
        return updates

    def put_back(self, updates: Iterable[SequenceUpdate]) -> None:
        """Put back updates that were taken and could not be delivered."""
        self.updates = [*updates, *self.updates]

    def check_integrity(self) -> None:
        """Check that each accepted sequence is in exactly one place and that no sequence gets two updates.

        Raises:
            IntegrityError: the state is inconsistent; says how.
        """
        self.waiting.check_integrity()
        waiting = list(self.waiting.candidates())
        self.coalescing.check_integrity(waiting)
        members = [sequence for leader in self.coalescing.leaders for sequence in self.coalescing.members(leader)]
        places = Counter((*waiting, *members))
        twice = [sequence.call.request_id for sequence, count in places.items() if count > 1]
        expect(not twice, f"sequences of {twice} are in two places")
        lost = [sequence.call.request_id for sequence in self.live if sequence not in places]
        expect(not lost, f"sequences of {lost} are nowhere and would get no update")
        ended = [sequence.call.request_id for sequence in places if sequence not in self.live]
        expect(not ended, f"sequences of {ended} have had their update and are still here")
        told = [update.sequence for update in self.updates]
        expect(len(set(told)) == len(told), "a sequence gets two updates")
        expect(not self.live.intersection(told), "a sequence that gets its update continues")
        self.deadlines.check_integrity((*waiting, *members))

    def _end(
        self,
        sequence: Sequence,
        reason: FinishReason | None = None,
        hypotheses: tuple[DecodedHypothesis, ...] = (),
        error: ServiceError | None = None,
    ) -> None:
        if sequence not in self.live:  # all were failed meanwhile
            return
        self.live.remove(sequence)
        if sequence.status is SequenceStatus.WAITING:  # otherwise its worker releases it, perhaps before it joins
            sequence.status = SequenceStatus.FINISHED
        self.updates.append(SequenceUpdate(sequence, reason, hypotheses, error, self._clock()))
