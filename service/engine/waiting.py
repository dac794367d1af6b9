"""The queue in front of the engine: bounded, fair between callers and between each one's calls, in order within one."""

from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator

from service.domain.origin import Origin
from service.domain.translation import Priority
from service.engine.integrity import expect
from service.engine.sequence import Sequence, SequenceStatus

# Of sequences that wait in each priority, so many are taken in turn: a higher one goes first, and a lower one never
# starves. What is counted is a class's distance to its next turn.
_SHARES = {Priority.HIGH: 16, Priority.NORMAL: 4, Priority.LOW: 1}
_STRIDES = {priority: max(_SHARES.values()) // share for priority, share in _SHARES.items()}

# Who waits already may have so many times what is left of the queue's room.
_OF_FREE = 8


class WaitingQueue:
    """Sequences that wait for slots.

    Priorities share the slots 16 : 4 : 1 as long as each has somebody waiting (stride scheduling: Waldspurger, Weihl,
    1995). Within one, turns are taken along the `origin` of sequences: callers take turns (a queue for each source:
    Nagle, "On Packet Switches With Infinite Storage", RFC 970, 1985), within a caller its parts, and so on (Bennett,
    Zhang, "Hierarchical packet fair queueing algorithms", SIGCOMM 1996), down to the sequences of a call, which are
    taken in order. Each time one of its sequences is taken, whoever it comes from goes to the back of his round. So a
    call with a thousand sentences delays a single one by one sentence, and a caller with a thousand calls another
    caller's by one, not by a thousand.

    Room is shared out by what is free of it (Choudhury, Hahne, "Dynamic queue length thresholds for shared-memory
    packet switches", IEEE/ACM Transactions on Networking 6 (2), 1998): who fills the queue leaves some to others.

    All operations are constant in the number of waiting sequences, but for `candidates`, which is lazy, and
    `num_ahead`, which looks at the different sizes that callers' and calls' shares of the queue have: of n sequences
    these are at most the square root of 2 n.
    """

    def __init__(self, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._classes = {priority: _Class() for priority in _STRIDES}
        self._clock = 0  # the distance at which a class was last taken from
        self._num_waiting = 0
        self.num_tokens = 0  # of the sources that wait

    def __len__(self) -> int:
        return self._num_waiting

    def __contains__(self, sequence: Sequence) -> bool:
        return sequence in self._classes[sequence.priority].round

    def can_admit(self, num_sequences: int) -> bool:
        """Whether `admit` would take so many more."""
        return self._num_waiting + num_sequences <= self._max_waiting

    def room(self, origin: Origin) -> int:
        """How many more from there should be admitted, never more than `admit` would take.

        Who has nobody waiting may have all that is free; else what is free bounds what he has, so that some is left.
        """
        room = free = self._max_waiting - self._num_waiting
        per_newcomer = 1  # by so much is less free, here, for each that is admitted
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
        """Append sequences. The caller asked `room` or `can_admit` first, and none of them waits already."""
        for sequence in sequences:
            assert self.can_admit(1), "admit without can_admit"
            assert sequence not in self, "a sequence waits once"
            class_ = self._classes[sequence.priority]
            if not class_.round.size:  # time without anybody waiting is not saved up
                class_.next_turn = max(class_.next_turn, self._clock)
            class_.num_calls += class_.round.add(sequence)
            self._num_waiting += 1
            self.num_tokens += len(sequence.source_ids)

    def num_ahead(self, priority: Priority, origin: Origin, num_sequences: int = 1) -> int:
        """How many of those who wait are taken, at most, before the last of so many that a new call brings; those that
        come later are left out. Any thread may ask."""
        ahead = self._classes[priority].round.num_ahead(origin, num_sequences)
        return self._with_other_classes(priority, ahead, num_sequences)

    def num_calls_ahead(self, priority: Priority) -> int:
        """How many would be taken before a new call's first if all calls took turns, whosesoever they are: how long the
        queue is, for those who are not its only caller's. Any thread may ask."""
        return self._with_other_classes(priority, self._classes[priority].num_calls, 1)

    def _with_other_classes(self, priority: Priority, num_ahead: int, num_sequences: int) -> int:
        shares = sum(share for each, share in _SHARES.items() if each is priority or self._classes[each].round.size)
        others = (num_ahead + num_sequences) * (shares - _SHARES[priority]) // _SHARES[priority]
        return min(num_ahead + others, self._num_waiting)

    def candidates(self) -> Iterator[Sequence]:
        """Sequences in the order in which they should run: priorities by their shares, and within each the first of
        each caller's first call, then the first of each one's second...

        Reads only; the queue must not change while the iterator is in use.
        """
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
        """Remove sequences that start to run; who they come from goes to the back of the round."""
        for sequence in sequences:
            class_ = self._classes[sequence.priority]
            self._clock = max(self._clock, class_.next_turn)
            class_.next_turn += _STRIDES[sequence.priority]
            self.drop(sequence)
            class_.round.end_turn(sequence.origin)

    def drop(self, sequence: Sequence) -> None:
        """Remove a sequence that needs no slots; those it comes from keep their places. It must be waiting."""
        class_ = self._classes[sequence.priority]
        class_.num_calls -= class_.round.remove(sequence)
        self._num_waiting -= 1
        self.num_tokens -= len(sequence.source_ids)

    def check_integrity(self) -> None:
        """Check that the queue is within its bound, counts right, and holds each sequence in its place.

        Raises:
            IntegrityError: it is not so; says what is wrong.
        """
        waiting = []
        for priority, class_ in self._classes.items():
            calls = set()
            for origin, sequence in class_.round.check_integrity():
                place = (sequence.priority, sequence.origin)
                expect(place == (priority, origin), f"{place} waits as {(priority, origin)}")
                is_waiting = sequence.status is SequenceStatus.WAITING and not sequence.slots
                expect(is_waiting, f"a {sequence.status.value} sequence waits")
                waiting.append(sequence)
                calls.add(origin)
            expect(len(calls) == class_.num_calls, f"{len(calls)} calls wait, {class_.num_calls} are counted")
        expect(len(waiting) == self._num_waiting, f"{len(waiting)} wait, {self._num_waiting} are counted")
        expect(len(waiting) <= self._max_waiting, f"{len(waiting)} wait, allowed are {self._max_waiting}")
        tokens = sum(len(sequence.source_ids) for sequence in waiting)
        expect(tokens == self.num_tokens, f"{tokens} tokens wait, {self.num_tokens} are counted")


class _Class:
    """The sequences of one priority."""

    def __init__(self) -> None:
        self.round = _Round()
        self.num_calls = 0  # of which somebody waits
        self.next_turn = 0  # in strides; the class with the least is next


class _Round:
    """Those who take turns with each other: callers, say, each with a round of his own, or the sequences of a call."""

    __slots__ = ("_sizes", "size", "turns")

    def __init__(self) -> None:
        self.turns: OrderedDict[Hashable, _Round | Sequence] = OrderedDict()  # the front one is next
        self.size = 0  # sequences in all
        self._sizes: dict[int, int] = {}  # how many of those who take turns have so many sequences

    def __contains__(self, sequence: Sequence) -> bool:
        part: _Round | Sequence | None = self
        for key in (*sequence.origin, sequence):
            part = part.turns.get(key) if isinstance(part, _Round) else None
        return part is sequence

    def add(self, sequence: Sequence, depth: int = 0) -> bool:
        """Append a sequence whose origin leads here after `depth` steps; returns whether nobody of its call waited."""
        if depth == len(sequence.origin):
            self.turns[sequence] = sequence
            self._resized(0, 1)
            return self.size == 1
        key = sequence.origin[depth]
        part = self.turns.get(key)
        if part is None:
            part = self.turns[key] = _Round()
        assert isinstance(part, _Round), "an origin is no sequence"
        is_new = part.add(sequence, depth + 1)
        self._resized(part.size - 1, part.size)
        return is_new

    def remove(self, sequence: Sequence, depth: int = 0) -> bool:
        """The reverse of `add`; returns whether nobody of its call is left."""
        if depth == len(sequence.origin):
            del self.turns[sequence]
            self._resized(1, 0)
            return not self.size
        key = sequence.origin[depth]
        part = self.turns[key]
        assert isinstance(part, _Round), "an origin is no sequence"
        is_last = part.remove(sequence, depth + 1)
        if not part.size:
            del self.turns[key]
        self._resized(part.size + 1, part.size)
        return is_last

    def end_turn(self, origin: Origin) -> None:
        part: _Round | Sequence | None = self
        for key in origin:
            if not isinstance(part, _Round) or key not in part.turns:
                return
            part.turns.move_to_end(key)
            part = part.turns[key]

    def num_ahead(self, origin: Origin, num_sequences: int) -> int:
        """As `WaitingQueue.num_ahead`, among these."""
        path: list[tuple[_Round, int]] = []  # each round on the way, and what the one next on the way has
        part: _Round | Sequence | None = self
        for key in origin:
            if not isinstance(part, _Round):
                break
            within, part = part, part.turns.get(key)
            path.append((within, part.size if isinstance(part, _Round) else 0))
        turns = num_sequences  # that are taken within a round up to the last newcomer, who is behind all others there
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

    def check_integrity(self, origin: Origin = ()) -> Iterator[tuple[Origin, Sequence]]:
        """Check what is counted here; gives each sequence with its place."""
        sizes: Counter[int] = Counter()
        for key, part in self.turns.items():
            if isinstance(part, _Round):
                expect(part.size, f"{key} has a turn, and nobody waits")
                yield from part.check_integrity((*origin, key))
                sizes[part.size] += 1
            else:
                yield origin, part
                sizes[1] += 1
        expect(sizes == self._sizes, f"sizes within {origin} are {dict(sizes)}, not {dict(self._sizes)}")
        total = sum(size * count for size, count in sizes.items())
        expect(total == self.size, f"{total} wait within {origin}, {self.size} are counted")

    def _resized(self, before: int, after: int) -> None:
        """One of those who take turns has so many sequences now."""
        self.size += after - before
        if after:
            self._sizes[after] = self._sizes.get(after, 0) + 1
        if before:
            self._sizes[before] -= 1
            if not self._sizes[before]:
                del self._sizes[before]
