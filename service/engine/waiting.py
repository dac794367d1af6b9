"""The engine's queue: bounded, fair between callers and between each caller's calls, in order within a call."""

import math
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator

from service.domain.call import Origin
from service.domain.translation import Priority
from service.engine.integrity import IntegrityError, expect
from service.engine.sequence import Sequence, SequenceStatus

# Slots per priority in each cycle: a higher priority goes first, and a lower one never starves. The stride is a
# priority's distance to its next turn.
_SHARES = {Priority.HIGH: 16, Priority.NORMAL: 4, Priority.LOW: 1}
_STRIDES = {priority: max(_SHARES.values()) // share for priority, share in _SHARES.items()}

# An origin with waiting sequences may have up to this multiple of the queue's free room.
_OF_FREE = 8


class WaitingQueue:
    """Sequences that wait for slots.

    Priorities share the slots 16 : 4 : 1 as long as each has waiting sequences (stride scheduling: Waldspurger, Weihl,
    1995). Within a priority, turns follow the `origin` of sequences: callers take turns (a queue for each source:
    Nagle, "On Packet Switches With Infinite Storage", RFC 970, 1985), within a caller its parts, and so on (Bennett,
    Zhang, "Hierarchical packet fair queueing algorithms", SIGCOMM 1996), down to the sequences of a call, in order.
    Taking a sequence sends every level of its origin to the back of its round. So a call with a thousand sentences
    delays a single one by one sentence, and a caller with a thousand calls delays another caller's call by one.

    Room is limited in proportion to what is free (Choudhury, Hahne, "Dynamic queue length thresholds for shared-memory
    packet switches", IEEE/ACM Transactions on Networking 6 (2), 1998): a caller that fills the queue leaves room for
    others.

    All operations take constant time in the number of waiting sequences, except `candidates`, which is lazy, and
    `num_ahead`, which visits the distinct sizes of callers' and calls' shares of the queue: for n sequences at most the
    square root of 2 n.
    """

    def __init__(self, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._classes = {priority: _Class() for priority in _STRIDES}
        self._clock = 0  # the distance at which a class last had a turn
        self.num_sequences = 0
        self.num_tokens = 0  # source tokens of the waiting sequences
        self.expected_rows = 0.0  # row-steps, estimated when they were accepted

    def __contains__(self, sequence: Sequence) -> bool:
        return sequence in self._classes[sequence.priority].round

    def room(self, origin: Origin) -> int:
        """Return how many more sequences of this origin should be admitted, never more than `admit` would take.

        Without waiting sequences it may have all that is free; else free room bounds its share, to leave some for
        others.
        """
        room = free = self._max_waiting - self.num_sequences
        per_newcomer = 1  # the decrease of `free`, here, per admitted sequence
        rounds = [class_.round for class_ in self._classes.values()]
        for key in origin[:-1]:
            rounds = [part for each in rounds if isinstance(part := each.turns.get(key), _Round)]
            if not rounds:
                return max(room, 0)
            free = _OF_FREE * free - sum(part.size for part in rounds)
            per_newcomer = _OF_FREE * per_newcomer + 1
            room = min(room, free)
        return max(min(room, free // per_newcomer), 0)

    def admit(self, sequences: Iterable[Sequence]) -> None:
        """Append sequences. Requires `room`, and that none of them already waits."""
        for sequence in sequences:
            assert self.num_sequences < self._max_waiting, "admit without room"
            class_ = self._classes[sequence.priority]
            if not class_.round.size:  # time without waiting sequences is not saved up
                class_.next_turn = max(class_.next_turn, self._clock)
            class_.num_calls += class_.round.add(sequence)
            self.num_sequences += 1
            self.num_tokens += len(sequence.source_ids)
            self.expected_rows += sequence.expected_rows

    def num_ahead(self, priority: Priority, origin: Origin, num_sequences: int = 1) -> int:
        """Return the most sequences before the last of a new call's `num_sequences`, if none arrives. Thread-safe."""
        ahead = self._classes[priority].round.num_ahead(origin, num_sequences)
        return self._with_other_classes(priority, ahead, num_sequences)

    def num_calls_ahead(self, priority: Priority) -> int:
        """Return how many sequences would be taken before a new call's first if all calls took turns, regardless of
        caller: the queue's length from the point of view of another caller. Thread-safe."""
        return self._with_other_classes(priority, self._classes[priority].num_calls, 1)

    def _with_other_classes(self, priority: Priority, num_ahead: int, num_sequences: int) -> int:
        shares = sum(share for each, share in _SHARES.items() if each is priority or self._classes[each].round.size)
        others = (num_ahead + num_sequences) * (shares - _SHARES[priority]) // _SHARES[priority]
        return min(num_ahead + others, self.num_sequences)

    def candidates(self) -> Iterator[Sequence]:
        """Yield sequences in the order in which they should run: priorities by shares, first sequences of callers'
        first calls, of their second ones, ... The queue must not change while the iterator is in use."""
        waiting = [class_ for class_ in self._classes.values() if class_.round.size]
        if len(waiting) == 1:  # as nearly always
            yield from waiting[0].round.candidates()
            return
        classes = {priority: class_.round.candidates() for priority, class_ in self._classes.items()}
        turns = {priority: class_.next_turn for priority, class_ in self._classes.items() if class_.round.size}
        while turns:
            priority = min(turns, key=lambda waiting: (turns[waiting], _STRIDES[waiting]))
            sequence = next(classes[priority], None)
            if sequence is None:
                del turns[priority]
                continue
            turns[priority] += _STRIDES[priority]
            yield sequence

    def take(self, sequences: Iterable[Sequence]) -> None:
        """Remove sequences that start to run; their origins go to the back of the round."""
        for sequence in sequences:
            class_ = self._classes[sequence.priority]
            self._clock = max(self._clock, class_.next_turn)
            class_.next_turn += _STRIDES[sequence.priority]
            self.drop(sequence)
            class_.round.end_turn(sequence.origin)

    def drop(self, sequence: Sequence) -> None:
        """Remove a waiting sequence that needs no slots; its origin keeps its place in the round."""
        class_ = self._classes[sequence.priority]
        class_.num_calls -= class_.round.remove(sequence)
        self.num_sequences -= 1
        self.num_tokens -= len(sequence.source_ids)
        self.expected_rows = self.expected_rows - sequence.expected_rows if self.num_sequences else 0.0  # drops errors

    def check_integrity(self) -> None:
        waiting = []
        for priority, class_ in self._classes.items():
            found = class_.round.check_integrity()
            for origin, sequence in found:
                if sequence.priority is not priority or sequence.origin != origin:
                    place = (sequence.priority, sequence.origin)
                    raise IntegrityError(f"{place} waits as {(priority, origin)}")
                if sequence.status is not SequenceStatus.WAITING or sequence.slots:
                    raise IntegrityError(f"a {sequence.status.value} sequence waits")
                waiting.append(sequence)
            num_calls = len({origin for origin, _ in found})
            expect(num_calls == class_.num_calls, f"{num_calls} calls wait, {class_.num_calls} are counted")
        expect(len(waiting) == self.num_sequences, f"{len(waiting)} wait, {self.num_sequences} are counted")
        expect(len(waiting) <= self._max_waiting, f"{len(waiting)} wait, allowed: {self._max_waiting}")
        tokens = sum(len(sequence.source_ids) for sequence in waiting)
        expect(tokens == self.num_tokens, f"{tokens} tokens wait, {self.num_tokens} are counted")
        rows = sum(sequence.expected_rows for sequence in waiting)
        is_right = math.isclose(rows, self.expected_rows, abs_tol=1e-6)
        expect(is_right, f"{rows} rows wait, {self.expected_rows} are counted")


class _Class:
    """The sequences of one priority."""

    def __init__(self) -> None:
        self.round = _Round()
        self.num_calls = 0  # with waiting sequences
        self.next_turn = 0  # in strides; the class with the lowest is next


class _Round:
    """Members that take turns: callers, for example, each with a round of its own, or the sequences of a call."""

    __slots__ = ("_sizes", "size", "turns")

    def __init__(self) -> None:
        self.turns: OrderedDict[Hashable, _Round | Sequence] = OrderedDict()  # the first one is next
        self.size = 0  # total sequences
        self._sizes: dict[int, int] = {}  # number of sequences -> how many members have as many

    def __contains__(self, sequence: Sequence) -> bool:
        part: _Round | Sequence | None = self
        for key in (*sequence.origin, sequence):
            part = part.turns.get(key) if isinstance(part, _Round) else None
        return part is sequence

    def add(self, sequence: Sequence) -> bool:
        """Append a sequence to the round that its origin leads to; return whether it is its call's only one."""
        within = self
        for key in sequence.origin:
            part = within.turns.get(key)
            if part is None:
                part = within.turns[key] = _Round()
            assert isinstance(part, _Round), "an origin is no sequence"
            within._resized(part.size, part.size + 1)
            within = part
        within.turns[sequence] = sequence
        within._resized(0, 1)
        return within.size == 1

    def remove(self, sequence: Sequence) -> bool:
        """Remove a sequence, reversing `add`; return whether none of its call is left."""
        within = self
        for key in sequence.origin:
            part = within.turns[key]
            assert isinstance(part, _Round), "an origin is no sequence"
            within._resized(part.size, part.size - 1)
            if part.size == 1:
                del within.turns[key]
            within = part
        del within.turns[sequence]
        within._resized(1, 0)
        return not within.size

    def end_turn(self, origin: Origin) -> None:
        part: _Round | Sequence | None = self
        for key in origin:
            if not isinstance(part, _Round) or key not in part.turns:
                return
            part.turns.move_to_end(key)
            part = part.turns[key]

    def num_ahead(self, origin: Origin, num_sequences: int) -> int:
        path: list[tuple[_Round, int]] = []  # each round along the origin, and the size of its member there
        part: _Round | Sequence | None = self
        for key in origin:
            if not isinstance(part, _Round):
                break
            within, part = part, part.turns.get(key)
            path.append((within, part.size if isinstance(part, _Round) else 0))
        turns = num_sequences  # taken within a round up to the last new sequence, which is behind all others there
        for within, own in reversed(path):
            others = sum(min(size, turns) * count for size, count in within._sizes.copy().items())
            turns += others - min(own, turns)
        return turns - num_sequences

    def candidates(self) -> Iterator[Sequence]:
        round_ = deque[Iterator[Sequence]]()
        for part in self.turns.values():
            if not isinstance(part, _Round):
                yield part
                continue
            sequences = part.candidates()
            yield next(sequences)
            round_.append(sequences)
        while round_:
            sequences = round_.popleft()
            for sequence in sequences:
                yield sequence
                round_.append(sequences)
                break

    def check_integrity(self, origin: Origin = ()) -> list[tuple[Origin, Sequence]]:
        """Check the counts of this round; return each sequence with its origin."""
        found: list[tuple[Origin, Sequence]] = []
        sizes: dict[int, int] = {}
        total = 0
        for key, part in self.turns.items():
            size = 1
            if isinstance(part, _Round):
                size = part.size
                if not size:
                    raise IntegrityError(f"{key} has a turn, and nobody waits")
                found += part.check_integrity((*origin, key))
            else:
                found.append((origin, part))
            sizes[size] = sizes.get(size, 0) + 1
            total += size
        if sizes != self._sizes:
            raise IntegrityError(f"sizes within {origin} are {sizes}, not {self._sizes}")
        if total != self.size:
            raise IntegrityError(f"{total} wait within {origin}, {self.size} are counted")
        return found

    def _resized(self, before: int, after: int) -> None:
        self.size += after - before
        if after:
            self._sizes[after] = self._sizes.get(after, 0) + 1
        if before:
            self._sizes[before] -= 1
            if not self._sizes[before]:
                del self._sizes[before]
