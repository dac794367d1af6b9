"""Finds sequences whose deadlines have passed without visiting the others."""

import heapq
from collections.abc import Collection

from service.engine.integrity import expect
from service.engine.sequence import Sequence, SequenceStatus

_MIN_COMPACTED = 64


class Deadlines:
    """Deadlines of waiting and running sequences; those of finished ones are removed lazily."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Sequence]] = []
        self._num_added = 0  # breaks ties in the heap
        self._compact_at = _MIN_COMPACTED

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, sequence: Sequence) -> None:
        """Watch a sequence's deadline, if it has one."""
        if sequence.deadline_seconds is None:
            return
        self._num_added += 1
        heapq.heappush(self._heap, (sequence.deadline_seconds, self._num_added, sequence))
        if len(self._heap) > self._compact_at:  # mostly far deadlines of sequences long gone
            self._heap = [entry for entry in self._heap if entry[-1].status is not SequenceStatus.FINISHED]
            heapq.heapify(self._heap)
            self._compact_at = 2 * len(self._heap) + _MIN_COMPACTED

    def pop_expired(self, now_seconds: float) -> list[Sequence]:
        """Return the sequences whose deadline is not after `now_seconds`, earliest first, each once."""
        expired = []
        while self._heap and self._heap[0][0] <= now_seconds:
            sequence = heapq.heappop(self._heap)[-1]
            if sequence.status is not SequenceStatus.FINISHED:
                expired.append(sequence)
        return expired

    def next_seconds(self) -> float | None:
        """Return the earliest deadline of a sequence that has not ended; `None` if there is none."""
        while self._heap and self._heap[0][2].status is SequenceStatus.FINISHED:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def check_integrity(self, live: Collection[Sequence]) -> None:
        """Check that the deadline of each of `live` is watched, and none twice.

        Raises:
            IntegrityError: a deadline would be missed, or would expire twice.
        """
        watched = [id(sequence) for _, _, sequence in self._heap]
        expect(len(set(watched)) == len(watched), "a deadline is watched twice")
        known = set(watched)
        for sequence in live:
            if sequence.deadline_seconds is not None and id(sequence) not in known:
                is_over = sequence.status is SequenceStatus.FINISHED
                expect(is_over, f"the deadline of {sequence.call.request_id} is not watched")
