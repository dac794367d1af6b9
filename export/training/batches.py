"""Batches whose sources all have the same length: without source padding, attention needs no masks and runs faster."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from export.training.corpus import EncodedCorpus


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one step. `target_ids` starts with the decoder's start id and is padded on the right."""

    source_ids: npt.NDArray[np.int64]  # (B, S)
    target_ids: npt.NDArray[np.int64]  # (B, T + 1)

    @property
    def num_tokens(self) -> int:
        return self.source_ids.size + self.target_ids.size


def epoch_batches(corpus: EncodedCorpus, batch_tokens: int, start_id: int, pad_id: int, seed: int) -> Iterator[Batch]:
    """Yield one epoch: draw pairs by weight, group by source length, sort by target length, shuffle the batches."""
    rng = np.random.default_rng(seed)
    repeats = np.floor(corpus.weights + rng.random(len(corpus))).astype(np.int64)
    drawn = np.repeat(np.arange(len(corpus)), repeats)
    if not len(drawn):
        raise ValueError("No pair is drawn: the recipe's weights are zero for every set of the data.")
    for rows in _shuffled_groups(corpus, drawn, batch_tokens, rng):
        yield make_batch(corpus, rows, start_id, pad_id)


def make_batch(corpus: EncodedCorpus, rows: npt.NDArray[np.int64], start_id: int, pad_id: int) -> Batch:
    source = np.stack([corpus.source[corpus.source_starts[i] : corpus.source_starts[i + 1]] for i in rows])
    targets = [corpus.target[corpus.target_starts[i] : corpus.target_starts[i + 1]] for i in rows]
    target = np.full((len(rows), 1 + max(map(len, targets))), pad_id, dtype=np.int64)
    target[:, 0] = start_id
    for row, ids in zip(target, targets, strict=True):
        row[1 : 1 + len(ids)] = ids
    return Batch(source.astype(np.int64), target)


def _shuffled_groups(
    corpus: EncodedCorpus, drawn: npt.NDArray[np.int64], batch_tokens: int, rng: np.random.Generator
) -> list[npt.NDArray[np.int64]]:
    source_lengths = np.diff(corpus.source_starts)[drawn]
    # Jitter on the target length: every epoch forms new batches, at the cost of little padding.
    target_lengths = np.diff(corpus.target_starts)[drawn] + rng.uniform(-1.0, 1.0, len(drawn))
    order = drawn[np.lexsort((target_lengths, source_lengths))]
    lengths = np.diff(corpus.source_starts)
    widths = np.diff(corpus.target_starts)
    groups: list[npt.NDArray[np.int64]] = []
    start = 0
    widest = 0
    for end, row in enumerate(order):
        widest_with = max(widest, int(widths[row]) + 1)
        same_length = lengths[row] == lengths[order[start]]
        fits = (end - start + 1) * (int(lengths[row]) + widest_with) <= batch_tokens
        if same_length and fits:
            widest = widest_with
            continue
        groups.append(order[start:end])
        start, widest = end, int(widths[row]) + 1
    groups.append(order[start:])
    groups = [group for group in groups if len(group) > 1]  # torch.compile would specialise on a single row
    rng.shuffle(groups)
    return groups
