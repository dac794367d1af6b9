"""What the fused graphs mean, in NumPy: products of integers, and everything else in float32.

Reads the nodes' attributes and constants in the order of `kernels/README.md`; the operators are compared with it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy import typing as npt
from onnx import numpy_helper

from export.quantization.weights import unpack
from service.bundle import fused_io
from tests.references.bfloat16 import rounded
from tests.references.shortlists import allowed_tokens

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer[Any]]
_ERF = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True, slots=True)
class Dense:
    """x W^T + b for rows x in 8 bits, each with a scale of its own."""

    weight: npt.NDArray[np.float64]  # (out, in): sums of such integers are exact, and faster than in an integer type
    scales: Floats
    bias: Floats
    largest: int = 127  # the level of a row's largest magnitude

    def __call__(self, x: Floats) -> Floats:
        """Map (..., in) to (..., out)."""
        levels, scale = self.quantized(x)
        products = levels.astype(np.float64) @ self.weight.T
        return products.astype(np.float32) * scale * self.scales + self.bias

    def quantized(self, x: Floats) -> tuple[Ints, Floats]:
        """Return the levels of (..., in) and each row's scale (..., 1)."""
        magnitude, most = np.abs(x).max(axis=-1, keepdims=True), np.float32(self.largest)
        inverse = most / np.maximum(magnitude, np.float32(1e-30))
        levels: Ints = np.rint(x * inverse).astype(np.int32)
        return levels, magnitude / most


@dataclass(frozen=True, slots=True)
class Norm:
    """The norms of `export.architecture.layers`: `vector`, `scalar` or `rms`."""

    gain: Floats
    bias: Floats
    epsilon: np.float32
    kind: str

    def __call__(self, x: Floats) -> Floats:
        """Map (..., d) to (..., d)."""
        centered = x if self.kind == "rms" else x - x.mean(axis=-1, keepdims=True)
        squares = (centered * centered).sum(axis=-1, keepdims=True)
        if self.kind == "scalar":
            norm_per_std = np.float32(math.sqrt(x.shape[-1] - 1))
            normalized = centered / (np.sqrt(squares) + self.epsilon * norm_per_std)
            scalar: Floats = normalized * (self.gain * norm_per_std) + self.bias
            return scalar
        vector: Floats = centered / np.sqrt(squares / np.float32(x.shape[-1]) + self.epsilon) * self.gain + self.bias
        return vector


Norms = tuple[Norm, Norm | None, Norm | None]


@dataclass(frozen=True, slots=True)
class Projection:
    """A dense layer of parts side by side, the first of which are queries or keys.

    Their heads are normed, then pairs (i, i + half) rotated by `angles` (P, rotary_size): each if there is any.
    """

    dense: Dense
    num_parts: int
    num_heads: int
    norms: list[Norm | None]
    angles: Floats | None

    def __call__(self, x: Floats, position: int = 0) -> list[Floats]:
        """Map (L, d) at `position` and after to the parts, each (L, H D)."""
        parts = np.split(self.dense(x), self.num_parts, axis=1)
        formed = [self._formed(part, norm, position) for part, norm in zip(parts, self.norms, strict=False)]
        return [*formed, *parts[len(formed) :]]

    def _formed(self, part: Floats, norm: Norm | None, position: int) -> Floats:
        heads = part.reshape(len(part), self.num_heads, -1)
        heads = heads if norm is None else norm(heads)
        if self.angles is not None:
            own = self.angles[position : position + len(part), None]
            half = own.shape[-1] // 2
            (a, b, rest), (cosines, sines) = np.split(heads, [half, 2 * half], axis=-1), np.split(own, 2, axis=-1)
            heads = np.concatenate([a * cosines - b * sines, b * cosines + a * sines, rest], axis=-1)
        return heads.reshape(part.shape)


class Node:
    """The node of a fused graph; its constants are read in their order, and all of them have to be."""

    def __init__(self, path: Path, operator: str, inputs: Sequence[str]) -> None:
        graph = onnx.load(path).graph
        (node,) = graph.node
        assert (node.domain, node.op_type) == (fused_io.FUSED_DOMAIN, operator)
        self.attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        if self.attributes.get("shortlists"):
            inputs = [*inputs, fused_io.SHORTLISTS]
        assert tuple(node.input[: len(inputs)]) == tuple(inputs)
        stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self._constants = [stored[name] for name in node.input[len(inputs) :]]

    def __getitem__(self, attribute: str) -> int:
        return int(self.attributes[attribute])

    def flag(self, attribute: str) -> int:
        """Return an attribute that a node need not have."""
        return int(self.attributes.get(attribute, 0))

    @property
    def heads_width(self) -> int:
        return self["num_heads"] * self["head_size"]

    @property
    def width(self) -> int:
        return self.flag("width") or self.heads_width

    def array(self) -> npt.NDArray[Any]:
        """Return the next constant."""
        return self._constants.pop(0)

    def dense(self, num_inputs: int, largest: int = 127) -> Dense:
        scales, packed, bias = self.array(), self.array(), self.array()
        assert packed.dtype == np.int8
        assert scales.dtype == bias.dtype == np.float32
        assert scales.shape == bias.shape
        return Dense(unpack(packed, len(scales), num_inputs).astype(np.float64), scales, bias, largest)

    def feed_forward(self) -> tuple["Norms", Dense | None, Dense, Dense]:
        """Return norms, gate, inner and outer layer."""
        norm = self.norms(ends_layer=True)
        gate = self.dense(self.width) if self.flag("gated") else None
        inner = self.dense(self.width)
        # What ReLU leaves is not negative: all 255 levels above zero are its own.
        is_relu = self.attributes["activation"] == b"relu" and gate is None
        return norm, gate, inner, self.dense(len(inner.scales), largest=255 if is_relu else 127)

    def norms(self, *, ends_layer: bool = False) -> "Norms":
        """Return the norms of a residual connection: its own, its output's, and that at the end of a layer."""
        has_block_norm = ends_layer and self.flag("block_norm")
        return (
            self.norm(),
            self.norm() if self.flag("sandwich_norm") else None,
            self.norm() if has_block_norm else None,
        )

    def norm(self) -> Norm:
        gain, epsilon = self.array(), np.float32(self.attributes["epsilon"])
        if self.flag("rms_norm"):
            return Norm(gain, np.zeros_like(gain), epsilon, "rms")
        return Norm(gain, self.array(), epsilon, "scalar" if self["scalar_norm"] else "vector")

    def projection(
        self, num_parts: int, num_formed: int, angles: Floats | None = None, num_heads: int = 0
    ) -> Projection:
        """Return a layer for the node's own heads, or for so many of the decoder's."""
        dense, kind = self.dense(self.width), self.flag("qk_norm")
        norms = [self._head_norm(kind) if kind else None for _ in range(num_formed)]
        return Projection(dense, num_parts, num_heads or self["num_heads"], norms, angles)

    def _head_norm(self, kind: int) -> Norm:
        gain, epsilon = self.array(), np.float32(self.attributes["epsilon"])
        return Norm(gain, self.array() if kind == 2 else np.zeros_like(gain), epsilon, ("rms", "vector")[kind - 1])

    def output(self) -> Dense | None:
        return self.dense(self.heads_width) if self["output_projection"] else None

    def final_norm(self) -> Norm | None:
        return self.norm() if self["final_norm"] else None

    def end(self) -> None:
        assert not self._constants


class _Part:
    """What encoder and decoder share."""

    def __init__(self, path: Path, operator: str, inputs: Sequence[str]) -> None:
        node = self.node = Node(path, operator, inputs)
        self._num_heads, self._head_size, self._pre_norm = node["num_heads"], node["head_size"], node["pre_norm"]
        self._scale = np.float32(node.attributes["scale"])
        self._activation = node.attributes["activation"].decode()
        self._scales, packed, self._positions = node.array(), node.array(), node.array()
        self._tokens = unpack(packed, len(self._scales), node.width)
        self._angles = node.array() if node.flag("rotary_size") else None
        self._embedding_norm = node.norm() if node.flag("embedding_norm") else None
        num_tables = node.flag("relative_biases")
        tables = [node.array() for _ in range(num_tables)]
        self.biases = tables * node["num_layers"] if num_tables == 1 else tables

    def _embed(self, token_ids: Sequence[int], position: int) -> Floats:
        ids = np.array(token_ids)
        rows = self._tokens[ids].astype(np.float32) * self._scales[ids, None]
        result: Floats = rows + self._positions[position : position + len(ids)]
        return result if self._embedding_norm is None else self._embedding_norm(result)

    def _bias(self, layer: int, num_queries: int, num_keys: int) -> Floats:
        """Return what a layer adds to scores (H, Q, S) of the last positions' queries."""
        if not self.biases:
            return np.zeros((self._num_heads, 1, 1), np.float32)
        first = num_keys - num_queries
        places = np.arange(num_keys) - np.arange(first, num_keys)[:, None] + len(self._positions) - 1
        bias: Floats = self.biases[layer][:, places]
        return bias

    def _attend(
        self, queries: Floats, keys: Floats, values: Floats, output: Dense | None, bias: Floats | None = None
    ) -> Floats:
        """Attend from (Q, H D) to (S, H D), from each query to all keys."""
        weights = self._weights(queries, keys, bias)
        heads = np.einsum("hqs,shd->qhd", weights, self._heads(values)).reshape(len(queries), -1)
        return heads if output is None else output(heads)

    def _weights(self, queries: Floats, keys: Floats, bias: Floats | None = None) -> Floats:
        """Return how much each head attends from (Q, H D) to (S, H D): (H, Q, S)."""
        scores = np.einsum("qhd,shd->hqs", self._heads(queries), self._heads(keys)) * self._scale
        scores = scores if bias is None else scores + bias
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        result: Floats = weights / weights.sum(axis=-1, keepdims=True)
        return result

    def _heads(self, x: Floats) -> Floats:
        return x.reshape(len(x), self._num_heads, self._head_size)

    def _activated(self, x: Floats) -> Floats:
        if self._activation == "relu":
            return np.maximum(x, np.float32(0.0))
        if self._activation == "gelu":
            above: Floats = _ERF(x / math.sqrt(2.0)).astype(np.float32)
            gelu: Floats = x * np.float32(0.5) * (np.float32(1.0) + above)
            return gelu
        if self._activation == "gelu_tanh":
            inner = np.float32(math.sqrt(2.0 / math.pi)) * (x + np.float32(0.044715) * x**3)
            tanh: Floats = (x * np.float32(0.5) * (np.float32(1.0) + np.tanh(inner))).astype(np.float32)
            return tanh
        if self._activation == "silu":
            silu: Floats = (x / (np.float32(1.0) + np.exp(-x))).astype(np.float32)
            return silu
        assert self._activation == "identity"
        return x

    def _feed_forward(self, x: Floats, norm: Norms, gate: Dense | None, inner: Dense, outer: Dense) -> Floats:
        def hidden(y: Floats) -> Floats:
            return self._activated(inner(y)) if gate is None else self._activated(gate(y)) * inner(y)

        return self._residual(x, norm, lambda y: outer(hidden(y)))

    def _residual(self, x: Floats, norms: Norms, sublayer: Any) -> Floats:
        norm, output_norm, block_norm = norms
        if self._pre_norm:
            added = sublayer(norm(x))
            x = x + (added if output_norm is None else output_norm(added))
        else:
            x = norm(x + sublayer(x))
        return x if block_norm is None else block_norm(x)


class FusedEncoder(_Part):
    """The meaning of `Encode`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, fused_io.ENCODE, fused_io.ENCODE_INPUTS)
        node = self.node
        self._layers = [
            (node.norms(), node.projection(3, 2, self._angles), node.output(), *node.feed_forward())
            for _ in range(node["num_layers"])
        ]
        self._final_norm = node.final_norm()
        num_heads = node.flag("decoder_num_heads")
        self._cross = [node.projection(2, 1, num_heads=num_heads) for _ in range(node["num_decoder_layers"])]
        self._shortlists = [node.array() for _ in range(3)] if node.attributes.get("shortlists") else None
        node.end()

    def allowed(self, source_ids: Sequence[int]) -> npt.NDArray[np.bool_] | None:
        """Return which tokens (V,) the translation of a source may consist of; `None`: all."""
        if self._shortlists is None:
            return None
        size, has_one = self.node["vocabulary_size"], bool(self.node["one_vocabulary"])
        always, offsets, ids = self._shortlists
        return allowed_tokens(always, offsets, ids, source_ids, size, has_one_vocabulary=has_one)

    def encode(self, source_ids: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """Return each decoder layer's keys and values of a source, (S, H D)."""
        x = self._embed(source_ids, 0)
        for index, layer in enumerate(self._layers):
            x = self._layer(x, self._bias(index, len(x), len(x)), *layer)
        memory = x if self._final_norm is None else self._final_norm(x)
        halves = (both(memory) for both in self._cross)
        return [(rounded(keys), rounded(values)) for keys, values in halves]

    def _layer(
        self, x: Floats, bias: Floats, norm: Norms, projection: Projection, output: Dense | None, *rest: Any
    ) -> Floats:
        def attend(y: Floats) -> Floats:
            queries, keys, values = projection(y)
            return self._attend(queries, rounded(keys), rounded(values), output, bias)

        x = self._residual(x, norm, attend)
        return self._feed_forward(x, *rest)


class FusedDecoder(_Part):
    """The meaning of `Decode`, without the choice among candidates."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, fused_io.DECODE, fused_io.DECODE_INPUTS)
        node = self.node
        self.is_recurrent = node.attributes.get("recurrent") == 1
        self._layers = [
            (
                node.norms(),
                node.projection(2, 0) if self.is_recurrent else node.projection(3, 2, self._angles),
                None if self.is_recurrent else node.output(),
                *(node.norms(), node.projection(1, 1), node.output()),
                *node.feed_forward(),
            )
            for _ in range(node["num_layers"])
        ]
        self._final_norm = node.final_norm()
        self._projection = node.dense(node.width)
        self._suppressed_ids = node.array()
        self._recorded_layer, self._recorded_heads = node["recorded_layer"], node.array()
        self._renormalizes = bool(node["renormalizes"])
        node.end()

    def start(self, cross: list[tuple[Floats, Floats]], allowed: npt.NDArray[np.bool_] | None = None) -> "Decoding":
        """Return the state of one row before its first token, with the tokens of its shortlist (V,)."""
        return Decoding(self, cross, allowed)

    def step(self, token_id: int, state: "Decoding") -> Floats:
        """Feed one token; return the logits of the next, with the model's own bias."""
        x = self._embed([token_id], state.length)
        for index, layer in enumerate(self._layers):
            x = self._layer(x, state, index, *layer)
        state.length += 1
        result: Floats = self._projection(x if self._final_norm is None else self._final_norm(x))[0]
        return result

    def _layer(
        self,
        x: Floats,
        state: "Decoding",
        index: int,
        norm: Norms,
        packed: Projection,
        output: Dense | None,
        cross_norm: Norms,
        query: Projection,
        cross_output: Dense | None,
        *rest: Any,
    ) -> Floats:
        x = self._residual(x, norm, lambda y: self._attend_to_self(packed(y, state.length), state, index, output))
        x = self._residual(x, cross_norm, lambda y: self._attend_to_source(query(y)[0], state, index, cross_output))
        return self._feed_forward(x, *rest)

    def log_probs(self, logits: Floats, listed: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Return the log-probabilities, minus infinity for suppressed tokens and those that are not `listed`."""
        if listed is not None:
            logits = np.where(listed, logits, np.float32(-np.inf))
        allowed = logits.copy()
        allowed[self._suppressed_ids] = -np.inf
        counted = allowed if self._renormalizes else logits
        largest = counted.max()
        result: Floats = allowed - (largest + np.log(np.exp(counted - largest).sum()))
        return result

    def _attend_to_source(self, query: Floats, state: "Decoding", index: int, output: Dense | None) -> Floats:
        keys, values = state.cross[index]
        if index == self._recorded_layer:
            state.attention.append(self._weights(query, keys)[self._recorded_heads, 0].mean(axis=0))
        return self._attend(query, keys, values, output)

    def _attend_to_self(self, parts: list[Floats], state: "Decoding", index: int, output: Dense | None) -> Floats:
        if self.is_recurrent:
            candidate, gate = parts
            kept = np.float32(1.0) / (np.float32(1.0) + np.exp(-gate))
            (before,) = state.cache[index]
            now = kept * before + (np.float32(1.0) - kept) * candidate
            state.cache[index] = (now,)
            return np.maximum(now, np.float32(0.0))
        query, key, value = parts[0], *map(rounded, parts[1:])
        keys, values = (np.concatenate(pair) for pair in zip(state.cache[index], (key, value), strict=True))
        state.cache[index] = keys, values
        return self._attend(query, keys, values, output, self._bias(index, 1, len(keys)))


class Decoding:
    """One row: the source's keys and values, and those of the tokens so far, or the state of each layer.

    `attention` has how much each token attends to those of the source (S,), by the heads that the node records.
    """

    def __init__(
        self, decoder: FusedDecoder, cross: list[tuple[Floats, Floats]], allowed: npt.NDArray[np.bool_] | None
    ) -> None:
        self._decoder, self.cross, self.length, self._allowed = decoder, cross, 0, allowed
        self.attention: list[Floats] = []
        empty = np.zeros((0, cross[0][0].shape[1]), np.float32)
        self.cache: list[tuple[Floats, ...]] = [(empty, empty)] * len(cross)
        if decoder.is_recurrent:
            self.cache = [(np.zeros((1, empty.shape[1]), np.float32),)] * len(cross)

    def log_probs(self, token_id: int) -> Floats:
        """Feed one token; return the log-probabilities (V,) of the next, minus infinity for suppressed ones."""
        return self._decoder.log_probs(self._decoder.step(token_id, self), self._allowed)
