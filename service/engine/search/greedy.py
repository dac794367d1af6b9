"""Greedy search: the graph chooses the most probable tokens, in any number of steps per run."""

from typing import Any

from service.engine.batch import Batch
from service.engine.repeats import Ids
from service.engine.runner import RunOutput
from service.engine.search.single_rows import Scores, SingleRows

_ANY_NUMBER = 2**31


class Greedy(SingleRows):
    """A `Strategy`: the most probable token of each step."""

    def max_steps(self, batch: Batch) -> int:
        """Return 1 while tokens are forced, which a run can't do by itself; otherwise no limit."""
        if batch.num_forced and (batch.lengths[: batch.num_rows] < batch.forced_lengths[: batch.num_rows]).any():
            return 1
        return _ANY_NUMBER

    def choose(self, batch: Batch, rows: Any, output: RunOutput, step: int) -> tuple[Ids, Scores | None]:
        """See `SingleRows.choose`."""
        assert output.next_ids is not None
        log_probs = output.next_log_probs
        return output.next_ids[rows, step], None if log_probs is None else log_probs[rows, step]
