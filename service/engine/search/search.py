"""The interface of search: how a worker advances its sequences, whoever chooses their tokens."""

from collections.abc import Collection
from typing import Protocol, cast

from service.engine.batch import Batch
from service.engine.runner import RunLimits, Runner, SearchRunner, StepRunner
from service.engine.search.fused import FusedSearch
from service.engine.search.stepwise import StepwiseSearch
from service.engine.search.strategy import Outcome
from service.engine.sequence import Sequence


class Search(Protocol):
    """Continues the sequences that joined it, which have rows in its batch."""

    @property
    def num_kept(self) -> int:
        """Return the number of sequences that something is kept for."""
        ...

    def join(self, sequence: Sequence) -> None:
        """Add a sequence that has joined the batch."""
        ...

    def leave(self, sequence: Sequence) -> None:
        """Remove a sequence that leaves the batch, however it ended."""
        ...

    def run(self, limits: RunLimits) -> Outcome:
        """Append the tokens of one run to every running sequence; no sequence leaves the batch."""
        ...

    def interrupt(self) -> None:
        """Make a long run end soon (`SearchRunner.interrupt`). Thread-safe."""
        ...

    def interrupt_for_newcomers(self) -> None:
        """Make a long run end once it has made enough steps (`SearchRunner.interrupt_for_newcomers`). Thread-safe."""
        ...

    def clear_interrupt(self) -> None:
        """Undo `interrupt` (`SearchRunner.clear_interrupt`)."""
        ...

    def certain(self, sequence: Sequence) -> tuple[int, ...]:
        """Return the tokens that the best hypothesis will begin with, without the model's prefix; the result only
        grows."""
        ...

    def check_integrity(self, running: Collection[Sequence]) -> None:
        """Check what is kept for the `running` sequences, and that nothing is kept for others.

        Raises:
            IntegrityError: the state is inconsistent; says how.
        """
        ...


def new_search(runner: Runner, batch: Batch) -> Search:
    """Create the search for a worker's batch, according to who chooses the tokens."""
    if runner.spec.searches:
        return FusedSearch(cast(SearchRunner, runner), batch)
    return StepwiseSearch(cast(StepRunner, runner), batch)
