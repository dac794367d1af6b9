"""The queue in front of the engine: bounded, fair between requests, first come first served within one."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator

from service.engine.integrity import expect
from service.engine.sequence import Sequence, SequenceStatus
from service.translation import Priority

# Of sequences that wait in each priority, so many are taken in turn: a higher one goes first, and a lower one never
# starves. What is counted is a class's distance to its next turn.
_SHARES = {Priority.HIGH: 16, Priority.NORMAL: 4, Priority.LOW: 1}
_STRIDES = {priority: max(_SHARES.values()) // share for priority, share in _SHARES.items()}


class WaitingQueue:
    """Sequences that wait for slots.

    Priorities share the slots 16 : 4 : 1 as long as each has somebody waiting (stride scheduling: Waldspurger, Weihl,
    1995). Within one, requests take turns: each time one of its sequences is taken, a request goes to the back of the
    round, so a call with a thousand sentences delays a single one by one sentence, not by a thousand. All operations
    are constant in the number of waiting sequences, but for `candidates`, which is lazy.
    """

    def __init__(self, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._classes = {priority: _Round() for priority in _STRIDES}
        self._clock = 0  # the distance at which a class was last taken from
        self._num_waiting = 0
        self.num_tokens = 0  # of the sources that wait

    def __len__(self) -> int:
        return self._num_waiting

    def __contains__(self, sequence: Sequence) -> bool:
        return sequence in self._classes[sequence.priority]

    def can_admit(self, num_sequences: int) -> bool:
        """Whether `admit` would take so many more."""
        return self._num_waiting + num_sequences <= self._max_waiting

    def admit(self, sequences: Iterable[Sequence]) -> None:
        """Append sequences. The caller asked `can_admit` first, and none of them waits already."""
        for sequence in sequences:
            assert self.can_admit(1), "admit without can_admit"
            assert sequence not in self, "a sequence waits once"
            class_ = self._classes[sequence.priority]
            if not class_.requests:  # time without anybody waiting is not saved up
                class_.next_turn = max(class_.next_turn, self._clock)
            class_.add(sequence)
            self._num_waiting += 1
            self.num_tokens += len(sequence.source_ids)

    def num_ahead(self, priority: Priority, num_sequences: int = 1) -> int:
        """How many of those who wait are taken before the last of so many that one new request brings."""
        requests = self._classes[priority].requests
        if num_sequences == 1:
            ahead = len(requests)
        else:
            ahead = sum(min(len(request), num_sequences) for request in list(requests.values()))
        shares = sum(share for each, share in _SHARES.items() if each is priority or self._classes[each].requests)
        others = (ahead + num_sequences) * (shares - _SHARES[priority]) // _SHARES[priority]
        return min(ahead + others, self._num_waiting)

    def candidates(self) -> Iterator[Sequence]:
        """Sequences in the order in which they should run: priorities by their shares, and within each the first of
        each request, then the second of each...

        Reads only; the queue must not change while the iterator is in use.
        """
        classes = {priority: class_.candidates() for priority, class_ in self._classes.items()}
        turns = {priority: class_.next_turn for priority, class_ in self._classes.items() if class_.requests}
        while turns:
            priority = min(turns, key=lambda waiting: (turns[waiting], _STRIDES[waiting]))
            sequence = next(classes[priority], None)
            if sequence is None:
                del turns[priority]
                continue
            turns[priority] += _STRIDES[priority]
            yield sequence

    def take(self, sequences: Iterable[Sequence]) -> None:
        """Remove sequences that start to run; their requests go to the back of the round."""
        for sequence in sequences:
            class_ = self._classes[sequence.priority]
            self._clock = max(self._clock, class_.next_turn)
            class_.next_turn += _STRIDES[sequence.priority]
            self.drop(sequence)
            class_.end_turn(sequence.request_id)

    def drop(self, sequence: Sequence) -> None:
        """Remove a sequence that needs no slots; its request keeps its place. It must be waiting."""
        self._classes[sequence.priority].remove(sequence)
        self._num_waiting -= 1
        self.num_tokens -= len(sequence.source_ids)

    def check_integrity(self) -> None:
        """Check that the queue is within its bound, counts right, and holds each sequence in its place.

        Raises:
            IntegrityError: it is not so; says what is wrong.
        """
        waiting = []
        for priority, class_ in self._classes.items():
            for request_id, sequences in class_.requests.items():
                expect(sequences, f"request {request_id} has a turn, and nobody waits")
                for sequence in sequences:
                    place = (sequence.priority, sequence.request_id)
                    expect(place == (priority, request_id), f"{place} waits as {(priority, request_id)}")
                    is_waiting = sequence.status is SequenceStatus.WAITING and not sequence.slots
                    expect(is_waiting, f"a {sequence.status.value} sequence waits")
                    waiting.append(sequence)
        expect(len(waiting) == self._num_waiting, f"{len(waiting)} wait, {self._num_waiting} are counted")
        expect(len(waiting) <= self._max_waiting, f"{len(waiting)} wait, allowed are {self._max_waiting}")
        tokens = sum(len(sequence.source_ids) for sequence in waiting)
        expect(tokens == self.num_tokens, f"{tokens} tokens wait, {self.num_tokens} are counted")


class _Round:
    """The waiting requests of one priority, in the order of their turns."""

    def __init__(self) -> None:
        self.requests: OrderedDict[str, OrderedDict[Sequence, None]] = OrderedDict()  # the front one is next
        self.next_turn = 0  # in strides; the class with the least is next

    def __contains__(self, sequence: Sequence) -> bool:
        return sequence in self.requests.get(sequence.request_id, ())

    def add(self, sequence: Sequence) -> None:
        self.requests.setdefault(sequence.request_id, OrderedDict())[sequence] = None

    def remove(self, sequence: Sequence) -> None:
        request = self.requests[sequence.request_id]
        del request[sequence]
        if not request:
            del self.requests[sequence.request_id]

    def end_turn(self, request_id: str) -> None:
        if request_id in self.requests:
            self.requests.move_to_end(request_id)

    def candidates(self) -> Iterator[Sequence]:
        round_ = deque[Iterator[Sequence]]()
        for request in self.requests.values():
            sequences = iter(request)
            yield next(sequences)
            round_.append(sequences)
        while round_:
            sequences = round_.popleft()
            for sequence in sequences:
                yield sequence
                round_.append(sequences)
                break
