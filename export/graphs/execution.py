"""Runs the exported graphs with numpy input and output: a reference, not built for speed."""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from export.graphs.weights_file import has_large_weights
from service.bundle import graph_io
from service.bundle.manifest_parts import ModelShape, TokenizerSpec

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # as service/engine/runtime/session.py, if this is imported first
import onnxruntime

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class GraphPair:
    """The two graphs of a bundle on ONNX Runtime's CPU provider."""

    def __init__(self, encoder: Path, decoder_step: Path, shape: ModelShape, num_threads: int = 0) -> None:
        self._encoder = _open(encoder, num_threads)
        self._step = _open(decoder_step, num_threads)
        self.shape = shape

    def start(self, sources: Sequence[Sequence[int]], pad_id: int, capacity: int) -> "DecodingState":
        """Encode sources of any lengths in one padded batch; `capacity` is the maximum number of tokens fed per row."""
        shape = self.shape
        names = graph_io.source_names(shape.num_decoder_layers, has_shortlists=shape.has_shortlists)
        cross = dict(zip(names, self.fetch_encoded(sources, pad_id, names), strict=True))
        lengths = np.array([len(source) for source in sources], dtype=np.int32)
        return DecodingState(self._step, shape, lengths, cross, capacity)

    def fetch_encoded(self, sources: Sequence[Sequence[int]], pad_id: int, names: Sequence[str]) -> list[Any]:
        lengths = np.array([len(source) for source in sources], dtype=np.int32)
        inputs = {graph_io.SOURCE_IDS: _padded(sources, pad_id), graph_io.SOURCE_LENGTHS: lengths}
        return list(self._encoder.run(list(names), inputs))


class AlignmentRun:
    """A bundle's alignment graph, run on its encoder graph's output."""

    def __init__(self, alignment: Path, pair: GraphPair, num_threads: int = 0) -> None:
        self._session = _open(alignment, num_threads)
        self._pair = pair
        inputs = [item.name for item in self._session.get_inputs()]
        self._cross_names = [name for name in inputs if name.startswith("cross_")]

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], pad_id: int
    ) -> list[npt.NDArray[np.float32]]:
        """Return a (T, S) array for each source and its target (prefix and output), from one padded batch."""
        (attention,) = self.fetch(sources, targets, pad_id, [graph_io.ATTENTION])
        return [
            attention[row, : len(target), : len(source)]
            for row, (source, target) in enumerate(zip(sources, targets, strict=True))
        ]

    def fetch(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], pad_id: int, names: Sequence[str]
    ) -> list[Any]:
        cross = self._pair.fetch_encoded(sources, pad_id, self._cross_names)
        inputs = {
            graph_io.TARGET_IDS: _padded(targets, pad_id),
            graph_io.SOURCE_LENGTHS: np.array([len(source) for source in sources], dtype=np.int32),
            **dict(zip(self._cross_names, cross, strict=True)),
        }
        return list(self._session.run(list(names), inputs))


class DecodingState:
    """The state of a batch being decoded: what the encoder made of sources, caches, and the length of each row."""

    def __init__(
        self,
        step: onnxruntime.InferenceSession,
        shape: ModelShape,
        source_lengths: npt.NDArray[np.int32],
        cross: dict[str, Any],
        capacity: int,
    ) -> None:
        self._step, self._source_lengths, self.cross = step, source_lengths, cross
        layers, is_recurrent = shape.num_decoder_layers, shape.is_recurrent
        self._past_names = graph_io.past_names(layers, is_recurrent=is_recurrent)
        self._present_names = graph_io.present_names(layers, is_recurrent=is_recurrent)
        arena: tuple[int, ...] = (len(source_lengths), shape.num_heads, capacity, shape.head_size)
        if is_recurrent:
            arena = (len(source_lengths), shape.state_size)
        kinds = {item.name: item.type for item in step.get_inputs()}
        dtype = np.float16 if kinds[self._past_names[0]] == "tensor(float16)" else np.float32
        self._past: dict[str, Any] = {name: np.zeros(arena, dtype) for name in self._past_names}
        self.lengths = np.zeros(len(source_lengths), dtype=np.int32)

    def next_ids(self, token_ids: Ids) -> Ids:
        """Feed one token per row (B,) and return the most probable next ones (B,)."""
        (ids,) = self._advance(token_ids, 1, [graph_io.NEXT_IDS])
        return np.asarray(ids, dtype=np.int64)

    def candidates(self, token_ids: Ids, num_candidates: int) -> tuple[Ids, Floats]:
        """Feed one token per row (B,) and return the best candidates' ids and log-probabilities, each (B, K)."""
        names = [graph_io.CANDIDATE_IDS, graph_io.CANDIDATE_LOG_PROBS]
        ids, log_probs = self._advance(token_ids, num_candidates, names)
        return np.asarray(ids, dtype=np.int64), np.asarray(log_probs, dtype=np.float32)

    def fetch(self, token_ids: Ids, names: Sequence[str]) -> list[Any]:
        return self._advance(token_ids, 1, list(names))

    def reorder(self, rows: Sequence[int]) -> None:
        """Continue with the given rows, in that order; rows may be repeated or left out."""
        chosen = np.asarray(rows)
        self.lengths, self._source_lengths = self.lengths[chosen], self._source_lengths[chosen]
        for arrays in (self._past, self.cross):
            for name, array in arrays.items():
                arrays[name] = array[chosen]

    def _advance(self, token_ids: Ids, num_candidates: int, wanted: list[str]) -> list[Any]:
        inputs = {
            graph_io.TOKEN_IDS: np.asarray(token_ids, dtype=np.int64),
            graph_io.LENGTHS: self.lengths,
            graph_io.TOTAL_LENGTH: self.lengths.max(keepdims=True) + np.int32(1),
            graph_io.SOURCE_LENGTHS: self._source_lengths,
            graph_io.NUM_CANDIDATES: np.array([num_candidates], dtype=np.int64),
            **self._past,
            **self.cross,
        }
        results = self._step.run([*wanted, *self._present_names], inputs)
        self._past = dict(zip(self._past_names, results[len(wanted) :], strict=True))
        self.lengths = self.lengths + np.int32(1)
        return list(results[: len(wanted)])


def _open(path: Path, num_threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = num_threads
    # Spinning threads starve other processes on the machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Without VNNI, x86 adds up pairs of int8 products in 16 bits, where they saturate unless the weights are unsigned:
    # then ONNX Runtime makes them so. Elsewhere it has no effect.
    options.add_session_config_entry("session.x64quantprecision", "1")
    if has_large_weights(path.parent):
        # Weights of gigabytes are used as mapped from the file, without a prepacked copy for the kernels.
        options.add_session_config_entry("session.disable_prepacking", "1")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _padded(rows: Sequence[Sequence[int]], pad_id: int) -> Ids:
    padded = np.full((len(rows), max(map(len, rows))), pad_id, dtype=np.int64)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return padded


def decode_cached(
    graphs: GraphPair, spec: TokenizerSpec, rows: Sequence[tuple[Sequence[int], Sequence[int], int]]
) -> list[tuple[int, ...]]:
    """Translate rows of (source ids, target prefix ids, maximum output tokens), of any lengths, in one greedy batch.

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
