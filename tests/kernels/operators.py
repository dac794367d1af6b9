"""The operators of fused graphs in ONNX Runtime, with the arrays that they read and write."""

from collections.abc import Sequence as Several
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy import typing as npt

from service.bundle import fused_io
from service.bundle.manifest_parts import ModelShape
from service.engine.batch import SearchState
from service.engine.runner import RunnerSpec
from service.engine.runtime.session import Binding, GraphSession, SessionConfig
from service.engine.sequence import Sequence
from tests.kernels.fused_graphs import EOS_ID, START_ID, Graph, Shape, decode_graph, encode_graph
from tests.references import bfloat16
from tests.unit.engine.reference_search import most_repeats

Ids = tuple[int, ...]
Floats = npt.NDArray[np.float32]
PLAIN = Shape().model  # without shortlists


def open_encoder(library: Path, path: Path, model: ModelShape = PLAIN) -> GraphSession:
    """Open the graph of an `Encode`."""
    return _open(library, path, fused_io.inputs_of(fused_io.ENCODE, model), fused_io.ENCODE_OUTPUTS)


def open_decoder(library: Path, path: Path, model: ModelShape = PLAIN) -> GraphSession:
    """Open the graph of a `Decode`."""
    return _open(library, path, fused_io.inputs_of(fused_io.DECODE, model), fused_io.DECODE_OUTPUTS)


def _open(library: Path, path: Path, inputs: Several[str], outputs: Several[str]) -> GraphSession:
    return GraphSession(path, SessionConfig(intra_op_threads=1), inputs, outputs, operators=library)


class State:
    """The arrays of the search."""

    def __init__(self, num_slots: int, capacity: int) -> None:
        self.control = np.zeros((), fused_io.CONTROL)
        self.rows = np.zeros(num_slots, fused_io.ROW)
        self.output_ids = np.zeros((num_slots, capacity), np.int64)
        self.history = np.zeros((3 * num_slots, capacity), np.int32)
        self.hypotheses = np.zeros(2 * num_slots, fused_io.HYPOTHESIS)
        self.hypothesis_ids = np.zeros((2 * num_slots, capacity), np.int64)
        self.num_slots, self.capacity = num_slots, capacity

    def join(self, sequence: Sequence, rows: Several[int], slots: Several[int], spec: RunnerSpec) -> None:
        """Reset `rows`, anywhere and in any order, for a sequence's first step."""
        made, own = SearchState.empty(len(rows), self.capacity), list(rows)
        made.begin(0, sequence, spec.decoder_start_id)
        self.rows[own], self.output_ids[own] = made.rows, made.output_ids
        self.rows["slot"][own] = slots
        self.rows["beam_rows"][rows[0], : len(rows)] = rows
        if sequence.options.max_repeats:
            self.rows["max_repeats"][own] = max(sequence.options.max_repeats, most_repeats(sequence.source_ids))


class Operators:
    """An encoder and a decoder, and what they share: arrays of `num_slots` rows of `capacity` tokens."""

    def __init__(self, library: Path, encoder: Path, decoder: Path, model: ModelShape,
                 num_slots: int = 20, capacity: int = 40, source_tokens: int = 64,
                 start_id: int = START_ID, records: bool = False) -> None:  # fmt: skip
        self._encoder = open_encoder(library, encoder, model)
        self._decoder = open_decoder(library, decoder, model)
        num_layers, num_heads, head_size = model.num_decoder_layers, model.num_heads, model.head_size
        block = (num_heads, 2, 16 * (-(-head_size // 16) * 16))
        self._model = model
        of_layer = fused_io.state(model.state_size) if model.is_recurrent else (-(-capacity // 16), *block)
        self.self_cache = np.full((num_slots, num_layers, *of_layer), bfloat16.NAN)
        self.cross_cache = np.full((num_slots, num_layers, -(-source_tokens // 16), *block), bfloat16.NAN)
        self.shortlists = np.full((num_slots, model.shortlist_size + 1), -1, np.int32)
        recorded = (num_slots, capacity, source_tokens) if records else (0, 0, 0)
        self.attention = np.full(recorded, np.nan, np.float32)
        self.state = State(num_slots, capacity)
        self.state.rows["status"] = fused_io.STOPPED
        self.spec = RunnerSpec(num_slots, capacity, source_tokens, EOS_ID, start_id, 1, has_logits=True)
        self.num_threads = 1
        self._binding: Binding | None = None

    @classmethod
    def tiny(cls, library: Path, folder: Path, shape: Shape, seed: int = 0, **sizes: Any) -> Self:
        """Write and open small graphs; attention is recorded if the shape has heads for that."""
        folder.mkdir(parents=True, exist_ok=True)
        sizes = {"records": bool(shape.recorded_heads)} | sizes
        return cls.of(library, folder, encode_graph(shape, seed), decode_graph(shape, seed), **sizes)

    @classmethod
    def of(cls, library: Path, folder: Path, encoder: Graph, decoder: Graph, **sizes: Any) -> Self:
        """Write and open graphs."""
        paths = encoder.save(folder / "encoder.onnx"), decoder.save(folder / "decoder.onnx")
        return cls(library, *paths, decoder.shape.model, **sizes)

    def encode(self, sources: Several[Ids], slots: Several[int]) -> tuple[list[int], list[int]]:
        """Encode sources to rows of the cache; return which are finite, and their most repeats."""
        outputs = {name: np.full(len(sources), -1, np.int32) for name in fused_io.ENCODE_OUTPUTS}
        self._encoder.run(self._encoder.bind(self.encoder_inputs(sources, slots), outputs))
        return outputs["is_finite"].tolist(), outputs["most_repeats"].tolist()

    def join(self, sequence: Sequence, rows: Several[int], slots: Several[int], source_slot: int) -> None:
        """Let a sequence, which is encoded, start in some rows."""
        self.state.join(sequence, rows, slots, self.spec)
        self.state.rows["source_slot"][list(rows)] = source_slot

    def run(self, max_steps: int = 1000, *, num_rows: int | None = None, returns_after: int = 0) -> int:
        """Run the decoder; return the number of steps."""
        control = self.state.control
        control["num_rows"] = self.state.num_slots if num_rows is None else num_rows
        control["max_steps"], control["returns_after"] = max_steps, returns_after
        control["num_threads"] = self.num_threads
        control["eos_id"], control["decoder_start_id"] = self.spec.eos_id, self.spec.decoder_start_id
        if self._binding is None:
            self._num_steps = np.zeros(1, np.int32)
            arrays = self.decoder_inputs()
            self._binding = self._decoder.bind(arrays, {fused_io.DECODE_OUTPUTS[0]: self._num_steps})
        self._decoder.run(self._binding)
        assert self._num_steps[0] == control["num_steps"]
        return int(self._num_steps[0])

    def encoder_inputs(self, sources: Several[Ids], slots: Several[int]) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of sources by the names of the encoder's inputs."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "token_ids": np.array([token for source in sources for token in source], np.int64),
            "ends": np.cumsum([len(source) for source in sources]).astype(np.int32),
            "slots": np.array(slots, np.int32),
            "cross_cache": self.cross_cache,
            "num_threads": np.array([self.num_threads], np.int32),
            fused_io.SHORTLISTS: self.shortlists,
        }
        return {name: arrays[name] for name in fused_io.inputs_of(fused_io.ENCODE, self._model)}

    def decoder_inputs(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by the names of the decoder's inputs."""
        state = self.state
        arrays = (
            state.control.reshape(1).view(np.int32),
            state.rows.view(np.uint8).reshape(state.num_slots, -1),
            state.output_ids,
            state.history,
            state.hypotheses.view(np.uint8).reshape(2 * state.num_slots, -1),
            state.hypothesis_ids,
            self.self_cache,
            self.cross_cache,
            self.attention,
            self.shortlists,
        )
        return dict(zip(fused_io.inputs_of(fused_io.DECODE, self._model), arrays, strict=False))

    def output(self, row: int) -> Ids:
        """Return a row's tokens."""
        return tuple(self.state.output_ids[row, : self.state.rows["length"][row]].tolist())

    def cached(self, slot: int, layer: int, num_tokens: int, head_size: int) -> tuple[Floats, Floats]:
        """Return the keys and values of a row of the cross-attention cache, each (S, H D)."""
        blocks = bfloat16.from_bits(self.cross_cache[slot, layer, : -(-num_tokens // 16)])
        num_heads, padded = blocks.shape[1], blocks.shape[3] // 16
        keys = blocks[:, :, 0].reshape(-1, num_heads, padded, 16).transpose(0, 3, 1, 2)
        values = blocks[:, :, 1].reshape(-1, num_heads, 16, padded).transpose(0, 2, 1, 3)
        both = (part.reshape(-1, num_heads, padded)[:num_tokens, :, :head_size] for part in (keys, values))
        found, other = (part.reshape(num_tokens, -1) for part in both)
        return found, other
