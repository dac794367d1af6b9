"""Which call waits for which sequences, and what they have answered so far. Lives on the event loop's thread."""

import asyncio
from collections.abc import Iterable
from collections.abc import Sequence as Sequence_

from service.engine.sequence import Sequence, SequenceUpdate


class PendingCall:
    """One call's sequences on their way through the engine."""

    def __init__(self, sequences: Sequence_[Sequence]) -> None:
        self.sequences = sequences
        self._updates: dict[Sequence, SequenceUpdate] = {}
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self) -> list[SequenceUpdate]:
        """Wait until every sequence has finished; return their updates in the order of `sequences`.

        Raises:
            ServiceError: what the first sequence that failed carried; the others may still be running.
        """
        await self._done
        return [self._updates[sequence] for sequence in self.sequences]

    def unfinished(self) -> list[Sequence]:
        """Sequences that have not answered yet."""
        return [sequence for sequence in self.sequences if sequence not in self._updates]

    def accept(self, update: SequenceUpdate) -> None:
        """Take in one sequence's terminal update."""
        self._updates[update.sequence] = update
        if self._done.done():  # failed or cancelled already
            return
        if update.error is not None:
            self._done.set_exception(update.error)
        elif len(self._updates) == len(self.sequences):
            self._done.set_result(None)


class PendingCalls:
    """All calls that wait for an engine."""

    def __init__(self) -> None:
        self._calls: dict[Sequence, PendingCall] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def open(self, sequences: Sequence_[Sequence]) -> PendingCall:
        """Expect updates of `sequences`; do this before they are submitted."""
        call = PendingCall(sequences)
        self._calls.update(dict.fromkeys(sequences, call))
        return call

    def close(self, call: PendingCall) -> None:
        """Forget the call: later updates of its sequences are dropped."""
        for sequence in call.sequences:
            self._calls.pop(sequence, None)

    def deliver(self, updates: Iterable[SequenceUpdate]) -> None:
        """Hand each update to the call that waits for it, if it still does."""
        for update in updates:
            call = self._calls.pop(update.sequence, None)
            if call is not None:
                call.accept(update)
