"""Alignment of finished translations with their sources: one teacher-forced run, only on request."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy import typing as npt

from service.bundle import graph_io
from service.bundle.manifest import Manifest
from service.domain.checkpoint import paced
from service.domain.errors import Unavailable
from service.engine.runner import RunTerminated
from service.engine.runtime.session import Array, GraphSession, SessionConfig
from service.engine.runtime.shared_graph import SharedGraph
from service.engine.runtime.weights import Weights
from service.engine.sequence import Attention

_MAX_TOKENS = 1024  # per run, padding included, on either side: bounds the memory for the encoder's output
_WIDTH = 8  # sources are padded to multiples: at other widths the attention kernel sums in another order

Pair = tuple[Sequence[int], Sequence[int]]  # source ids; target prefix and output ids, without start and end


class Aligner:
    """Runs a bundle's alignment graph.

    Thread-safe: it keeps no state between calls. The engine's encoder encodes sources again, as finished rows are gone
    from the caches: a second copy of its weights is not worth it.
    """

    def __init__(self, encoder: SharedGraph, alignment: GraphSession, manifest: Manifest) -> None:
        self._encoder = encoder
        self._alignment = alignment
        self._pad_id = manifest.tokenizer.pad_id
        self._names = graph_io.cross_names(manifest.graphs.alignment_layer + 1)[:-1]
        self._heads = (manifest.model.num_heads, manifest.model.head_size)
        self._dtype = alignment.input_dtype(self._names[0])

    @classmethod
    def load(
        cls,
        directory: Path,
        manifest: Manifest,
        encoder: SharedGraph | None,
        session_config: SessionConfig,
        weights: Weights | None = None,
    ) -> "Aligner | None":
        """Open the bundle's alignment graph, or return `None`. For `weights` see `GraphSession`."""
        graphs = manifest.graphs
        if not graphs.alignment:
            return None
        assert encoder is not None, "a bundle that aligns needs its encoder"
        inputs = graph_io.alignment_inputs(graphs.alignment_layer)
        # Each caller runs on its own thread; with more threads per run, runs would wait for each other and for the
        # workers.
        session_config = dataclasses.replace(session_config, intra_op_threads=1)
        path = directory / graphs.alignment
        constants = weights.of(graphs.alignment) if weights else None
        session = GraphSession(path, session_config, inputs, [graph_io.ATTENTION], weights=constants)
        return cls(encoder, session, manifest)

    def align(self, pairs: Sequence[Pair]) -> list[Attention]:
        """Return (T, S) float32 per pair, rows summing to 1: how much target tokens attended to source tokens.

        Runs on the caller's thread, similar lengths together, about 1,024 tokens after each checkpoint.
        """
        aligned = [np.zeros((len(target), len(source)), np.float32) for source, target in pairs]
        for batch in paced(_batches(pairs), every=1):
            try:
                attention = self._run([pairs[index] for index in batch])
            except RunTerminated as error:
                raise Unavailable("the engine has stopped", advice="try another server") from error
            for row, index in zip(attention, batch, strict=True):
                num_targets, num_sources = aligned[index].shape
                aligned[index] = row[:num_targets, :num_sources].copy()
        return aligned

    def _run(self, pairs: Sequence[Pair]) -> Attention:
        """Return the attention (B, T, S) of pairs that have a target."""
        lengths = np.array([len(source) for source, _ in pairs], np.int32)
        width = -(-int(lengths.max()) // _WIDTH) * _WIDTH
        source_ids = _padded([source for source, _ in pairs], width, self._pad_id)
        target_ids = _padded([target for _, target in pairs], max(len(target) for _, target in pairs), self._pad_id)
        num_heads, head_size = self._heads
        cross: dict[str, Array] = {
            name: np.empty((len(pairs), num_heads, width, head_size), self._dtype) for name in self._names
        }
        encoder = self._encoder.session(is_alone=False)
        encoder.run(encoder.bind({graph_io.SOURCE_IDS: source_ids, graph_io.SOURCE_LENGTHS: lengths}, cross))
        attention = np.empty((*target_ids.shape, width), np.float32)
        inputs: dict[str, Array] = {graph_io.TARGET_IDS: target_ids, graph_io.SOURCE_LENGTHS: lengths, **cross}
        self._alignment.run(self._alignment.bind(inputs, {graph_io.ATTENTION: attention}))
        return attention


def _batches(pairs: Sequence[Pair]) -> Iterator[list[int]]:
    """Yield the indices of pairs that have a target, similar lengths together, each batch within the maximum tokens."""
    ordered = sorted(
        (index for index, (_, target) in enumerate(pairs) if target),
        key=lambda index: (len(pairs[index][0]), len(pairs[index][1])),
    )
    batch: list[int] = []
    longest = 0
    for index in ordered:
        longest_with = max(longest, *map(len, pairs[index]))
        if batch and (len(batch) + 1) * longest_with > _MAX_TOKENS:
            yield batch
            batch, longest_with = [], max(map(len, pairs[index]))
        batch.append(index)
        longest = longest_with
    if batch:
        yield batch


def _padded(rows: Sequence[Sequence[int]], width: int, pad_id: int) -> npt.NDArray[np.int64]:
    padded = np.full((len(rows), width), pad_id, np.int64)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return padded
