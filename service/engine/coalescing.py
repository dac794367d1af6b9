"""Coalescing of identical sequences: one of them is decoded, and all get its answer."""

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from service.engine.integrity import expect
from service.engine.sequence import Sequence

Key = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], object]


@dataclass(slots=True)
class _Waiting:
    """Identical sequences, none of which has slots yet.

    `rows` is the estimated number of row-steps that decoding one of them takes.
    """

    rows: float
    members: dict[Sequence, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Decoding:
    """A sequence in the batch and the sequences that wait for its outcome, itself included unless it was given up."""

    leader: Sequence
    members: dict[Sequence, None]


class Coalescing:
    """Identical sequences among those that wait and those that run.

    Identical sequences have the same source, prefixes and options, seed included, so that one answer is right for all.
    The first to get slots is the leader; the others follow it without slots of their own. A leader that is given up is
    still decoded as long as it has followers. Any of them may request progress, whichever leads.
    """

    def __init__(self) -> None:
        self.waiting: dict[Key, _Waiting] = {}
        self.waiting_rows = 0.0  # estimated for the waiting sequences, identical ones counted once
        self.running: dict[Key, _Decoding] = {}
        self.watched_by: dict[Sequence, dict[Sequence, int]] = {}  # leader -> watchers -> tokens reported

    @property
    def watched(self) -> Collection[Sequence]:
        """Return the leaders for which at least one sequence wants progress."""
        return self.watched_by.keys()

    def wait(self, sequence: Sequence, rows: float) -> None:
        """Add a sequence that begins to wait, with an estimate of its row-steps."""
        key = _key(sequence)
        if key not in self.waiting:
            self.waiting[key] = _Waiting(rows)
            self.waiting_rows += rows
        self.waiting[key].members[sequence] = None

    def leave_queue(self, sequence: Sequence) -> None:
        """Remove a sequence that no longer waits and will not run."""
        key = _key(sequence)
        group = self.waiting[key]
        del group.members[sequence]
        if not group.members:
            self._leave(key)

    def distinct(self, candidates: Iterable[Sequence]) -> Iterator[Sequence]:
        """Yield only the first of identical candidates: once it runs, the others follow it."""
        seen: set[Key] = set()
        for sequence in candidates:
            key = _key(sequence)
            if key not in seen:
                seen.add(key)
                yield sequence

    def lead(self, leader: Sequence) -> list[Sequence]:
        """Record that a waiting sequence gets slots; returns the identical waiting ones, which now follow it."""
        key = _key(leader)
        members = self._leave(key)
        self.running[key] = _Decoding(leader, members)
        for sequence in members:
            self._watch(leader, sequence)
        return [sequence for sequence in members if sequence is not leader]

    def follow(self, sequence: Sequence) -> bool:
        """Let a new sequence follow an identical one that is being decoded; returns false if there is none."""
        decoding = self.running.get(_key(sequence))
        if decoding is None:
            return False
        decoding.members[sequence] = None
        self._watch(decoding.leader, sequence)
        return True

    def members(self, leader: Sequence) -> list[Sequence]:
        """Return all sequences that wait for the outcome of a sequence in the batch."""
        return list(self.running[_key(leader)].members)

    def news(self, leader: Sequence, num_certain: int) -> list[Sequence]:
        """Return a leader's watchers that know of fewer than `num_certain` tokens, and mark them as informed."""
        told = self.watched_by[leader]
        behind = [sequence for sequence, num_told in told.items() if num_told < num_certain]
        told.update(dict.fromkeys(behind, num_certain))
        return behind

    def give_up(self, sequence: Sequence) -> Sequence | None:
        """Remove a running sequence or a follower whose answer is no longer wanted.

        Returns:
            The sequence in the batch that nothing waits for any more and that should leave it; otherwise `None`.
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
        """Remove a leader that has left the batch; returns all sequences that get its outcome."""
        self.watched_by.pop(leader, None)
        return list(self.running.pop(_key(leader)).members)

    @property
    def leaders(self) -> list[Sequence]:
        """Return the sequences that are being decoded and whose outcome is still wanted."""
        return [decoding.leader for decoding in self.running.values()]

    def check_integrity(self, waiting: Collection[Sequence]) -> None:
        """Check that the `waiting` sequences are known, and each leader's members are identical and its watchers right.

        Raises:
            IntegrityError: the state is inconsistent; says how.
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
            expect(decoding.members, f"nobody waits for {decoding.leader.call.request_id}, which is being decoded")
            alike = all(_key(sequence) == key for sequence in (decoding.leader, *decoding.members))
            expect(alike, f"{decoding.leader.call.request_id} is followed by one that asks for something else")
            if watchers := {sequence for sequence in decoding.members if sequence.wants_progress}:
                watched[decoding.leader] = watchers
        told = {leader: set(watchers) for leader, watchers in self.watched_by.items()}
        expect(told == watched, f"{len(told)} leaders are watched, {len(watched)} should be")

    def _leave(self, key: Key) -> dict[Sequence, None]:
        group = self.waiting.pop(key)
        self.waiting_rows = self.waiting_rows - group.rows if self.waiting else 0.0  # drops accumulated rounding errors
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
