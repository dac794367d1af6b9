"""Greedy search: the graph chose the most probable tokens, in as many steps of one run as it likes."""

from typing import Any

from service.engine.batch import Batch
from service.engine.repeats import Ids
from service.engine.runner import RunOutput
from service.engine.search.single_rows import Scores, SingleRows

_ANY_NUMBER = 2**31


class Greedy(SingleRows):
    """A `Strategy`: the most probable token of each step."""

    def max_steps(self, batch: Batch) -> int:
        """Let a run go on until it must be told a forced token."""
        if batch.num_forced and (batch.lengths[: batch.num_rows] < batch.forced_lengths[: batch.num_rows]).any():
            return 1
        return _ANY_NUMBER

    def choose(self, batch: Batch, rows: Any, output: RunOutput, step: int) -> tuple[Ids, Scores | None]:
        """See `SingleRows.choose`."""
        assert output.next_ids is not None
        log_probs = output.next_log_probs
        return output.next_ids[rows, step], None if log_probs is None else log_probs[rows, step]
