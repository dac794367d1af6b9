"""Greedy decoding with the exported graphs and their caches, in one batch; no scheduling, not built for speed."""

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from export.graphs.execution import GraphPair
from service.bundle.manifest_parts import TokenizerSpec


def decode_cached(
    graphs: GraphPair, spec: TokenizerSpec, rows: Sequence[tuple[Sequence[int], Sequence[int], int]]
) -> list[tuple[int, ...]]:
    """Translate rows of (source ids, target prefix ids, maximum output tokens), of any lengths, in one batch.

    Outputs exclude start and prefix, and include the end-of-sentence id unless cut off.
    """
    forced = [(spec.decoder_start_id, *prefix) for _, prefix, _ in rows]
    limits = [limit for _, _, limit in rows]
    outputs: list[list[int]] = [[] for _ in rows]
    state = graphs.start([source for source, _, _ in rows], spec.pad_id, max(map(len, forced)) + max(limits))
    tokens: npt.NDArray[np.int64] = np.array([ids[0] for ids in forced], dtype=np.int64)
    num_steps = 0
    while not all(map(_is_done, outputs, limits, itertools.repeat(spec.eos_id))):
        tokens = state.next_ids(tokens)
        num_steps += 1
        for row, output in enumerate(outputs):
            if num_steps < len(forced[row]):
                tokens[row] = forced[row][num_steps]
            elif not _is_done(output, limits[row], spec.eos_id):
                output.append(int(tokens[row]))
    return [tuple(output) for output in outputs]


def _is_done(output: Sequence[int], limit: int, eos_id: int) -> bool:
    return len(output) >= limit or eos_id in output[-1:]
