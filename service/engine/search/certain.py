"""The tokens of running sequences that no later step can change."""

import numpy as np

from service.engine.batch import Batch
from service.engine.sequence import Sequence


def certain_of_row(batch: Batch, sequence: Sequence) -> tuple[int, ...]:
    """Return the output of a sequence of one row so far, without the model's prefix and what may be an excess."""
    (row,) = sequence.slots
    end = int(batch.lengths[row])
    if end <= batch.forced_lengths[row]:
        return ()
    if sequence.options.max_repeats:
        end -= _doubtful(batch, row)
    return tuple(batch.output_ids[row, len(sequence.target_prefix_ids) : end].tolist())


def certain_of_beams(batch: Batch, sequence: Sequence, best_finished: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the common prefix of a sequence's beams and its best finished hypothesis, which has the model's prefix."""
    rows = sequence.slots
    start, end = len(sequence.target_prefix_ids), int(batch.lengths[rows[0]])
    if end <= batch.forced_lengths[rows[0]]:
        return ()
    alive = np.isfinite(batch.log_probs[rows])
    rows = [row for row, is_alive in zip(rows, alive.tolist(), strict=True) if is_alive or not alive.any()]
    if sequence.options.max_repeats:
        end -= max(_doubtful(batch, row) for row in rows)
    outputs = [tuple(batch.output_ids[row, start:end].tolist()) for row in rows]
    if best_finished is not None:
        outputs.append(best_finished[start:])
    return _common_beginning(outputs)


def _doubtful(batch: Batch, row: int) -> int:
    """Return how many tokens at the end of a row may turn out to be an excess."""
    runs: list[int] = batch.runs[row].tolist()
    allowed = int(batch.max_repeats[row]) - 1
    return max(0, *(run - allowed * period for period, run in enumerate(runs, 1)))


def _common_beginning(outputs: list[tuple[int, ...]]) -> tuple[int, ...]:
    for place, tokens in enumerate(zip(*outputs, strict=False)):
        if any(token != tokens[0] for token in tokens):
            return outputs[0][:place]
    return min(outputs, key=len)
