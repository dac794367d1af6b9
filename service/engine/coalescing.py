"""Coalescing of identical sequences: one of them is decoded, and all get its answer."""

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from service.engine.integrity import IntegrityError, expect
from service.engine.sequence import Sequence

Key = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], object, bool]


@dataclass(slots=True, eq=False)
class _Group:
    """Identical sequences that wait for slots, or for the outcome of their leader, which has some.

    `rows` is the estimated number of row-steps that decoding one of them takes. The leader is no member once it was
    given up.
    """

    key: Key
    rows: float
    leader: Sequence | None = None
    members: dict[Sequence, None] = field(default_factory=dict)


class Coalescing:
    """Identical sequences among those that wait and those that run.

    Identical sequences have the same source, prefixes and options, seed included, and want attention or do not, so that
    one answer is right for all.
    The first to get slots is the leader; the others follow it without slots of their own. A leader that is given up is
    still decoded as long as it has followers. Any of them may request progress, whichever leads.
    """

    def __init__(self) -> None:
        self._groups: dict[Key, _Group] = {}
        self._group_of: dict[Sequence, _Group] = {}  # of members and leaders: hashing a key takes long
        self.num_waiting = 0  # groups
        self.waiting_rows = 0.0  # estimated for the waiting sequences, identical ones counted once
        self.watched_by: dict[Sequence, dict[Sequence, int]] = {}  # leader -> watchers -> tokens reported

    @property
    def watched(self) -> Collection[Sequence]:
        """Return the leaders for which at least one sequence wants progress."""
        return self.watched_by.keys()

    @property
    def num_decoding(self) -> int:
        return len(self._groups) - self.num_waiting

    def join(self, sequence: Sequence, rows: float) -> bool:
        """Add a new sequence, with an estimate of its row-steps.

        Returns:
            Whether it follows an identical one that is being decoded; otherwise it waits for slots.
        """
        key = _key(sequence)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(key, rows)
            self.num_waiting += 1
            self.waiting_rows += rows
        group.members[sequence] = None
        self._group_of[sequence] = group
        if group.leader is None:
            return False
        self._watch(group.leader, sequence)
        return True

    def leave_queue(self, sequence: Sequence) -> None:
        """Remove a sequence that no longer waits and will not run."""
        group = self._group_of.pop(sequence)
        del group.members[sequence]
        if not group.members:
            del self._groups[group.key]
            self._stop_waiting(group)

    def distinct(self, candidates: Iterable[Sequence]) -> Iterator[Sequence]:
        """Yield only the first of identical candidates: once it runs, the others follow it."""
        seen: set[_Group] = set()
        for sequence in candidates:
            group = self._group_of[sequence]
            if group not in seen:
                seen.add(group)
                yield sequence

    def lead(self, leader: Sequence) -> list[Sequence]:
        """Record that a waiting sequence gets slots; returns the identical waiting ones, which now follow it."""
        group = self._group_of[leader]
        group.leader = leader
        self._stop_waiting(group)
        for sequence in group.members:
            self._watch(leader, sequence)
        return [sequence for sequence in group.members if sequence is not leader]

    def members(self, leader: Sequence) -> list[Sequence]:
        return list(self._group_of[leader].members)

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
        group = self._group_of[sequence]
        leader = group.leader
        assert leader is not None, "a sequence that waits is not given up, but leaves the queue"
        del group.members[sequence]
        if sequence is not leader:
            del self._group_of[sequence]
        self._unwatch(leader, sequence)
        if group.members:
            return None
        del self._groups[group.key]
        del self._group_of[leader]
        return leader

    def end(self, leader: Sequence) -> list[Sequence]:
        """Remove a leader that has left the batch; returns all sequences that get its outcome."""
        self.watched_by.pop(leader, None)
        group = self._group_of[leader]
        del self._groups[group.key]
        del self._group_of[leader]
        members = list(group.members)
        for sequence in members:
            self._group_of.pop(sequence, None)
        return members

    @property
    def leaders(self) -> list[Sequence]:
        return [group.leader for group in self._groups.values() if group.leader is not None]

    def check_integrity(self, waiting: Collection[Sequence]) -> None:
        """Check that `waiting` sequences are known, and each leader's members are identical and its watchers right."""
        groups = [group for group in self._groups.values() if group.leader is None]
        noted = [sequence for group in groups for sequence in group.members]
        expect(len(noted) == len(waiting), f"{len(waiting)} wait, of whom {len(noted)} are known to be coalesced")
        expect(set(noted) == set(waiting), "others wait than those that are known to be coalesced")
        expect(all(group.members for group in groups), "a decoding waits for which nobody is left")
        expect(len(groups) == self.num_waiting, f"{len(groups)} decodings wait, {self.num_waiting} are counted")
        total = sum(group.rows for group in groups)
        expect(math.isclose(self.waiting_rows, total, abs_tol=1e-6), f"{self.waiting_rows} rows wait, not {total}")
        watched: dict[Sequence, set[Sequence]] = {}
        known: dict[Sequence, _Group] = {}
        for key, group in self._groups.items():
            leader = group.leader
            own = [*group.members] if leader is None else [leader, *group.members]
            for sequence in own:
                known[sequence] = group
                if group.key != key or _key(sequence) != key:
                    request_id = own[0].call.request_id
                    raise IntegrityError(f"{request_id} is followed by one that asks for something else")
            if leader is not None:
                expect(group.members, f"nobody waits for {leader.call.request_id}, which is being decoded")
                if watchers := {sequence for sequence in group.members if sequence.wants_progress}:
                    watched[leader] = watchers
        expect(known == self._group_of, f"{len(known)} sequences are coalesced, {len(self._group_of)} know with whom")
        told = {leader: set(watchers) for leader, watchers in self.watched_by.items()}
        expect(told == watched, f"{len(told)} leaders are watched, {len(watched)} should be")

    def _stop_waiting(self, group: _Group) -> None:
        self.num_waiting -= 1
        self.waiting_rows = self.waiting_rows - group.rows if self.num_waiting else 0.0  # drops rounding errors

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
    return (
        sequence.source_ids,
        sequence.target_prefix_ids,
        sequence.output_prefix_ids,
        sequence.options,
        sequence.wants_attention,
    )
