"""Who was accepted and has not ended, whether waiting, decoding or following a twin; and what each is told at last."""

from collections.abc import Callable, Iterable, Iterator

from service.engine.deadlines import Deadlines
from service.engine.sequence import DecodedHypothesis, Sequence, SequenceProgress, SequenceStatus, SequenceUpdate
from service.engine.twins import Twins
from service.engine.waiting import WaitingQueue
from service.errors import ServiceError
from service.translation import FinishReason


class Roster:
    """The accepted sequences. Each gets exactly one update, which `take_updates` gives out.

    Not thread-safe: the engine's threads use it under one lock.
    """

    def __init__(self, max_waiting: int, clock: Callable[[], float]) -> None:
        self._clock = clock
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

    def candidates(self) -> Iterator[Sequence]:
        """Those who wait, in the order in which they should run; of twins only the first."""
        return self._twins.distinct(self._waiting.candidates())

    def accept(self, sequences: Iterable[Sequence]) -> None:
        """Take sequences in, from now on each will get its update; `admit` them next."""
        self._live.update(sequences)

    def admit(self, sequences: Iterable[Sequence]) -> None:
        """Let accepted sequences wait, or follow a twin that is being decoded."""
        for sequence in sequences:
            self._deadlines.add(sequence)
            if self._twins.follow(sequence):
                self._followers.append(sequence)
            else:
                self._waiting.admit([sequence])
                self._twins.wait(sequence)

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
