"""The queue in front of the engine: bounded, fair between requests, first come first served within one."""

import heapq
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator

from service.engine.sequence import Sequence


class WaitingQueue:
    """Sequences that wait for slots.

    Requests take turns: each time one of its sequences is taken, a request goes to the back of the round, so a call
    with a thousand sentences delays a single one by one sentence, not by a thousand. All operations are constant in
    the number of waiting sequences, but for `candidates`, which is lazy, and the deadline heap (logarithmic).
    """

    def __init__(self, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._requests: OrderedDict[str, OrderedDict[Sequence, None]] = OrderedDict()  # the front one is next
        self._num_waiting = 0
        self._deadlines: list[tuple[float, int, Sequence]] = []  # a heap; entries of sequences that left are stale
        self._num_added = 0  # breaks ties in the heap

    def __len__(self) -> int:
        return self._num_waiting

    def __contains__(self, sequence: Sequence) -> bool:
        return sequence in self._requests.get(sequence.request_id, ())

    def can_admit(self, num_sequences: int) -> bool:
        """Whether `admit` would take so many more."""
        return self._num_waiting + num_sequences <= self._max_waiting

    def admit(self, sequences: Iterable[Sequence]) -> None:
        """Append sequences. The caller asked `can_admit` first, and none of them waits already."""
        for sequence in sequences:
            assert self.can_admit(1), "admit without can_admit"
            assert sequence not in self, "a sequence waits once"
            self._requests.setdefault(sequence.request_id, OrderedDict())[sequence] = None
            self._num_waiting += 1
            if sequence.deadline_seconds is not None:
                self._num_added += 1
                heapq.heappush(self._deadlines, (sequence.deadline_seconds, self._num_added, sequence))
        if len(self._deadlines) > 2 * self._num_waiting + 64:  # mostly stale: far deadlines of sequences long gone
            self._deadlines = [entry for entry in self._deadlines if entry[-1] in self]
            heapq.heapify(self._deadlines)

    def candidates(self) -> Iterator[Sequence]:
        """Sequences in the order in which they should run: the first of each request, then the second of each...

        Reads only; the queue must not change while the iterator is in use.
        """
        round_ = deque[Iterator[Sequence]]()
        for request in self._requests.values():
            sequences = iter(request)
            yield next(sequences)
            round_.append(sequences)
        while round_:
            sequences = round_.popleft()
            for sequence in sequences:
                yield sequence
                round_.append(sequences)
                break

    def take(self, sequences: Iterable[Sequence]) -> None:
        """Remove sequences that start to run; their requests go to the back of the round."""
        for sequence in sequences:
            self.drop(sequence)
            if sequence.request_id in self._requests:
                self._requests.move_to_end(sequence.request_id)

    def drop(self, sequence: Sequence) -> None:
        """Remove a sequence that will not run; its request keeps its place. It must be waiting."""
        request = self._requests[sequence.request_id]
        del request[sequence]
        if not request:
            del self._requests[sequence.request_id]
        self._num_waiting -= 1

    def drop_expired(self, now_seconds: float) -> list[Sequence]:
        """Remove and return the sequences whose deadline is not after `now_seconds`."""
        expired = []
        while self._deadlines and self._deadlines[0][0] <= now_seconds:
            sequence = heapq.heappop(self._deadlines)[-1]
            if sequence in self:
                self.drop(sequence)
                expired.append(sequence)
        return expired
