"""Sequences that ask for the very same thing: one of them is decoded, and its answer is that of all."""

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from service.engine.integrity import expect
from service.engine.sequence import Sequence

Key = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], object]


@dataclass(slots=True)
class _Waiting:
    """Sequences that ask for the same, none of which has slots yet.

    `rows` are how many rows of steps the one that gets some will probably take.
    """

    rows: float
    members: dict[Sequence, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Decoding:
    """A sequence in the batch, and who waits for its outcome: itself too, unless it was given up."""

    leader: Sequence
    members: dict[Sequence, None]


class Coalescing:
    """Which ask for the same, among the sequences that wait and those that run.

    Equal ones have the same source, prefixes and options, seed included, so that one answer is right for all. The
    first to get slots leads; the others follow it without slots of their own. A leader that is given up is decoded on
    as long as it has followers. Any of them may want to hear of progress, whoever leads.
    """

    def __init__(self) -> None:
        self.waiting: dict[Key, _Waiting] = {}
        self.waiting_rows = 0.0  # that those who wait will take, equal ones counted once
        self.running: dict[Key, _Decoding] = {}
        self.watched_by: dict[Sequence, dict[Sequence, int]] = {}  # leaders -> readers, and tokens told so far

    @property
    def watched(self) -> Collection[Sequence]:
        """The leaders of whose progress somebody wants to hear."""
        return self.watched_by.keys()

    def wait(self, sequence: Sequence, rows: float) -> None:
        """Note a sequence that begins to wait, and how many rows of steps it will probably take."""
        key = _key(sequence)
        if key not in self.waiting:
            self.waiting[key] = _Waiting(rows)
            self.waiting_rows += rows
        self.waiting[key].members[sequence] = None

    def leave_queue(self, sequence: Sequence) -> None:
        """Forget a sequence that waits no longer and will not run."""
        key = _key(sequence)
        group = self.waiting[key]
        del group.members[sequence]
        if not group.members:
            self._leave(key)

    def distinct(self, candidates: Iterable[Sequence]) -> Iterator[Sequence]:
        """Of candidates that ask for the same only the first: once it runs, the others follow."""
        seen: set[Key] = set()
        for sequence in candidates:
            key = _key(sequence)
            if key not in seen:
                seen.add(key)
                yield sequence

    def lead(self, leader: Sequence) -> list[Sequence]:
        """A waiting sequence gets slots; returns those that wait for the same, which follow it from now on."""
        key = _key(leader)
        members = self._leave(key)
        self.running[key] = _Decoding(leader, members)
        for sequence in members:
            self._watch(leader, sequence)
        return [sequence for sequence in members if sequence is not leader]

    def follow(self, sequence: Sequence) -> bool:
        """Let a new sequence share a decoding of the same that runs already; false where there is none."""
        decoding = self.running.get(_key(sequence))
        if decoding is None:
            return False
        decoding.members[sequence] = None
        self._watch(decoding.leader, sequence)
        return True

    def members(self, leader: Sequence) -> list[Sequence]:
        """All who wait for the outcome of a sequence in the batch."""
        return list(self.running[_key(leader)].members)

    def news(self, leader: Sequence, num_certain: int) -> list[Sequence]:
        """Who wants to hear that so many tokens of a watched leader are certain, and has not heard of as many."""
        told = self.watched_by[leader]
        behind = [sequence for sequence, num_told in told.items() if num_told < num_certain]
        told.update(dict.fromkeys(behind, num_certain))
        return behind

    def give_up(self, sequence: Sequence) -> Sequence | None:
        """A running sequence, or one that follows, wants no answer any more.

        Returns:
            The sequence in the batch that nobody waits for now and that should leave it; else `None`.
        """
        key = _key(sequence)
        decoding = self.running[key]
        del decoding.members[sequence]
        self._unwatch(decoding.leader, sequence)
        if decoding.members:
            return None
        del self.running[key]
        return decoding.leader

    def end(self, leader: Sequence) -> list[Sequence]:
        """A sequence has left the batch; returns all whom its outcome concerns."""
        self.watched_by.pop(leader, None)
        return list(self.running.pop(_key(leader)).members)

    @property
    def leaders(self) -> list[Sequence]:
        """The sequences that are being decoded and for whose outcome somebody waits."""
        return [decoding.leader for decoding in self.running.values()]

    def check_integrity(self, waiting: Collection[Sequence]) -> None:
        """Check that those of `waiting` are known, and that each leader has members, who are like it, and watchers.

        Raises:
            IntegrityError: it is not so; says what is wrong.
        """
        noted = [sequence for group in self.waiting.values() for sequence in group.members]
        expect(len(noted) == len(waiting), f"{len(waiting)} wait, of whom {len(noted)} are known to be coalesced")
        expect(set(noted) == set(waiting), "others wait than those that are known to be coalesced")
        expect(all(group.members for group in self.waiting.values()), "a decoding waits for which nobody is left")
        total = sum(group.rows for group in self.waiting.values())
        expect(math.isclose(self.waiting_rows, total, abs_tol=1e-6), f"{self.waiting_rows} rows wait, not {total}")
        expect(not self.waiting.keys() & self.running.keys(), "a sequence waits that should share a decoding")
        watched: dict[Sequence, set[Sequence]] = {}
        for key, decoding in self.running.items():
            expect(decoding.members, f"nobody waits for {decoding.leader.request_id}, which is being decoded")
            alike = all(_key(sequence) == key for sequence in (decoding.leader, *decoding.members))
            expect(alike, f"{decoding.leader.request_id} is followed by one that asks for something else")
            if watchers := {sequence for sequence in decoding.members if sequence.wants_progress}:
                watched[decoding.leader] = watchers
        told = {leader: set(watchers) for leader, watchers in self.watched_by.items()}
        expect(told == watched, f"{len(told)} leaders are watched, {len(watched)} should be")

    def _leave(self, key: Key) -> dict[Sequence, None]:
        group = self.waiting.pop(key)
        self.waiting_rows = self.waiting_rows - group.rows if self.waiting else 0.0  # without what rounding has left
        return group.members

    def _watch(self, leader: Sequence, sequence: Sequence) -> None:
        if sequence.wants_progress:
            self.watched_by.setdefault(leader, {})[sequence] = 0

    def _unwatch(self, leader: Sequence, sequence: Sequence) -> None:
        if sequence.wants_progress:
            told = self.watched_by[leader]
            del told[sequence]
            if not told:
                del self.watched_by[leader]


def _key(sequence: Sequence) -> Key:
    return sequence.source_ids, sequence.target_prefix_ids, sequence.output_prefix_ids, sequence.options
