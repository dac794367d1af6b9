"""Who was accepted and has not ended, whether waiting, decoding or following a twin; and what each is told at last."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from service.domain.errors import ServiceError
from service.domain.origin import Origin
from service.domain.translation import FinishReason, Priority
from service.engine.deadlines import Deadlines
from service.engine.integrity import expect
from service.engine.sequence import (
    DecodedHypothesis,
    Sequence,
    SequenceProgress,
    SequenceStatus,
    SequenceUpdate,
)
from service.engine.twins import Twins
from service.engine.waiting import WaitingQueue


class Roster:
    """The accepted sequences. Each gets exactly one update, which `take_updates` gives out.

    Not thread-safe: the engine's threads use it under one lock.
    """

    def __init__(
        self, max_waiting: int, clock: Callable[[], float], rows_of: Callable[[Sequence], float] = lambda _: 0.0
    ) -> None:
        """`rows_of` estimates how many rows of steps a sequence will take."""
        self._clock = clock
        self._rows_of = rows_of
        self._waiting = WaitingQueue(max_waiting)
        self._twins = Twins()
        self._deadlines = Deadlines()
        self._live: set[Sequence] = set()
        self._followers: list[Sequence] = []
        self._updates: list[SequenceUpdate] = []

    def __contains__(self, sequence: Sequence) -> bool:
        return sequence in self._live

    @property
    def num_waiting(self) -> int:
        """Sequences that wait for slots."""
        return len(self._waiting)

    @property
    def num_waiting_tokens(self) -> int:
        """Source tokens of the sequences that wait for slots."""
        return self._waiting.num_tokens

    @property
    def waiting_rows(self) -> float:
        """How many rows of steps those who wait will probably take; twins are decoded once."""
        return self._twins.waiting_rows

    def room(self, origin: Origin) -> int:
        """How many more sequences from there may wait."""
        return self._waiting.room(origin)

    def num_ahead(self, priority: Priority, origin: Origin, num_sequences: int = 1) -> int:
        """How many of those who wait have their turn before the last of so many that a new call from there brings."""
        return self._waiting.num_ahead(priority, origin, num_sequences)

    def num_calls_ahead(self, priority: Priority) -> int:
        """How many would have their turn before a new call's first if all calls took turns, whosesoever they are."""
        return self._waiting.num_calls_ahead(priority)

    def candidates(self) -> Iterator[Sequence]:
        """Those who wait, in the order in which they should run; of twins only the first."""
        return self._twins.distinct(self._waiting.candidates())

    def admit(self, sequences: Iterable[Sequence]) -> None:
        """Take sequences in: each will get its update. They wait, or follow a twin that is being decoded."""
        for sequence in sequences:
            self._live.add(sequence)
            self._deadlines.add(sequence)
            if self._twins.follow(sequence):
                self._followers.append(sequence)
            else:
                self._waiting.admit([sequence])
                self._twins.wait(sequence, self._rows_of(sequence))

    def start(self, leaders: Iterable[Sequence]) -> None:
        """Sequences get slots; their waiting twins follow them without."""
        for leader in leaders:
            self._waiting.take([leader])
            leader.status = SequenceStatus.RUNNING
            for twin in self._twins.lead(leader):
                self._waiting.drop(twin)
                self._followers.append(twin)

    def take_followers(self) -> list[Sequence]:
        """Those who began to follow a twin since the last call."""
        followers, self._followers = self._followers, []
        return followers

    @property
    def leaders(self) -> list[Sequence]:
        """The sequences that are being decoded and for whose outcome somebody waits."""
        return self._twins.leaders

    def followed_by(self, leader: Sequence) -> list[Sequence]:
        """All who wait for the outcome of a sequence that is being decoded."""
        return self._twins.members(leader)

    @property
    def watched(self) -> Iterable[Sequence]:
        """The sequences being decoded of whose progress somebody wants to hear."""
        return self._twins.watched

    def progress(self, leader: Sequence, token_ids: tuple[int, ...]) -> list[SequenceProgress]:
        """What to tell those who watch a sequence, now that these tokens are certain."""
        return [
            SequenceProgress(sequence, token_ids)
            for sequence in self._twins.news(leader, len(token_ids))
            if sequence in self._live  # else all were failed meanwhile
        ]

    def pop_expired(self, now_seconds: float) -> list[Sequence]:
        """Sequences whose deadline is not after `now_seconds`; each is given out once and should be dropped."""
        return self._deadlines.pop_expired(now_seconds)

    def drop(self, sequence: Sequence, error: ServiceError, reason: FinishReason) -> Sequence | None:
        """End a sequence before its time, wherever it stands; one that is unknown or has ended is left alone.

        Returns:
            The sequence that nobody waits for now and whose decoding should be given up; else `None`.
        """
        if sequence not in self._live:
            return None
        leader = None
        if sequence in self._waiting:
            self._waiting.drop(sequence)
            self._twins.leave_queue(sequence)
        else:
            leader = self._twins.give_up(sequence)
        self._end(sequence, reason, error=error)
        return leader

    def finish(self, leader: Sequence, hypotheses: tuple[DecodedHypothesis, ...]) -> None:
        """A sequence was decoded: give its outcome to all who wait for it."""
        for sequence in self._twins.end(leader):
            self._end(sequence, hypotheses[0].finish_reason, hypotheses)

    def fail(self, leader: Sequence, error: ServiceError) -> None:
        """A sequence could not be decoded: tell all who wait for it."""
        for sequence in self._twins.end(leader):
            self._end(sequence, error=error)

    def fail_all(self, error: ServiceError) -> None:
        """Nobody will be decoded any more."""
        for sequence in list(self._live):
            self._end(sequence, error=error)

    def take_updates(self) -> list[SequenceUpdate]:
        """The updates since the last call."""
        updates, self._updates = self._updates, []
        return updates

    def put_back(self, updates: Iterable[SequenceUpdate]) -> None:
        """These were taken and could not be told."""
        self._updates = [*updates, *self._updates]

    def check_integrity(self) -> None:
        """Check that each accepted sequence is in one place, will be told, and nobody is told twice.

        Raises:
            IntegrityError: it is not so; says what is wrong.
        """
        self._waiting.check_integrity()
        waiting = list(self._waiting.candidates())
        self._twins.check_integrity(waiting)
        members = [sequence for leader in self._twins.leaders for sequence in self._twins.members(leader)]
        places = Counter((*waiting, *members))
        twice = [sequence.request_id for sequence, count in places.items() if count > 1]
        expect(not twice, f"sequences of {twice} are in two places")
        lost = [sequence.request_id for sequence in self._live if sequence not in places]
        expect(not lost, f"sequences of {lost} are nowhere and would never be told")
        ended = [sequence.request_id for sequence in places if sequence not in self._live]
        expect(not ended, f"sequences of {ended} have been told and are still here")
        told = [update.sequence for update in self._updates]
        expect(len(set(told)) == len(told), "a sequence is told twice")
        expect(not self._live.intersection(told), "a sequence that is told goes on")
        self._deadlines.check_integrity((*waiting, *members))

    def _end(
        self,
        sequence: Sequence,
        reason: FinishReason | None = None,
        hypotheses: tuple[DecodedHypothesis, ...] = (),
        error: ServiceError | None = None,
    ) -> None:
        if sequence not in self._live:  # all were failed meanwhile
            return
        self._live.remove(sequence)
        if sequence.status is SequenceStatus.WAITING:  # else its lane lets it go, and has perhaps yet to take it in
            sequence.status = SequenceStatus.FINISHED
        self._updates.append(SequenceUpdate(sequence, reason, hypotheses, error, self._clock()))
