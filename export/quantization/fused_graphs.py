"""Writes the fused graphs of an int8 bundle from a model's configuration and weights.

A graph is one node; constants are in the order of `kernels/README.md`. One weight at a time, of any float, is
quantized.
"""

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy import typing as npt

from export.alignment import AlignmentHeads
from export.architecture.config import ModelConfig
from export.architecture.names import ENCODER_TABLE, PROJECTION, projection_table, target_table
from export.architecture.positions import (
    distance_buckets,
    distance_column,
    rotary_order,
    rotary_tables,
    sinusoidal_table,
)
from export.architecture.stored import Array, as_float32, residual_norms
from export.graphs.weights_file import WeightsFile, inline
from export.quantization.interface import OUTPUTS, declared
from export.quantization.weights import BLOCK_COLUMNS, GROUP_INPUTS, pack, quantize_rows
from export.stages import progress
from service.bundle import fused_io
from service.bundle.manifest_parts import ModelShape

OPSET, IR_VERSION, DOMAIN_VERSION = 21, 10, 1
_ROWS_AT_ONCE = 64 * BLOCK_COLUMNS  # of a weight; a whole embedding as float32 takes a gigabyte

Constants = list[onnx.TensorProto]


@dataclass(frozen=True, slots=True)
class FusedNode:
    """The operator, the attributes and the constant inputs of one node."""

    operator: str
    attributes: Mapping[str, Any]  # numbers and texts
    constants: Sequence[onnx.TensorProto]

    def save(self, path: Path, shape: ModelShape) -> None:
        inputs, outputs = declared(self.operator, shape)
        stored = {tensor.name: tensor for tensor in self.constants}
        graph = onnx.helper.make_graph(
            [
                onnx.helper.make_node(
                    self.operator,
                    [*fused_io.inputs_of(self.operator, shape), *(tensor.name for tensor in self.constants)],
                    OUTPUTS[self.operator],
                    domain=fused_io.FUSED_DOMAIN,
                    **self.attributes,
                )
            ],
            path.stem,
            inputs,
            outputs,
            list(stored.values()),
        )
        opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid(fused_io.FUSED_DOMAIN, DOMAIN_VERSION)]
        model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="dragoman")
        path.write_bytes(model.SerializeToString(deterministic=True))


def shape_of(config: ModelConfig) -> ModelShape:
    """Return the sizes of a model as fused graphs have them, without shortlists."""
    config = config.of("decoder")
    sizes = config.num_decoder_layers, config.num_heads, config.head_size, config.target_vocabulary_size
    return ModelShape(*sizes, config.state_size)


def with_recorded(decode: FusedNode, recorded: AlignmentHeads | None) -> FusedNode:
    """Complete a node `Decode` by the heads whose attention to the source it can record."""
    heads = () if recorded is None else recorded.heads
    return dataclasses.replace(
        decode,
        attributes={**decode.attributes, "recorded_layer": -1 if recorded is None else recorded.layer},
        constants=[*decode.constants, inline("recorded_heads", np.array(heads, np.int64))],
    )


class FusedNodes:
    """Makes both nodes of a model, whose constants it writes to a file of weights."""

    def __init__(self, config: ModelConfig, weights: Mapping[str, Array], file: WeightsFile) -> None:
        """Read `weights` as `Transformer.weights` names them: tables that are shared have the first one's name."""
        self._config, self._weights, self._file = config, weights, file
        self._tables: dict[tuple[str, ...], _Table] = {}

    def encode_node(self) -> FusedNode:
        """Return the node `Encode`: the encoder, and every decoder layer's keys and values of the source."""
        config = self._config
        constants = self._beginning("encoder", ENCODER_TABLE, config.max_source_positions)
        for index in progress(range(config.num_encoder_layers), "encoder"):
            layer = f"encoder.layers.{index}"
            constants += self._residual(f"{layer}.self_attention")
            constants += self._dense(*_parts(f"{layer}.self_attention", "query", "key", "value"))
            constants += self._head_norms(f"{layer}.self_attention", "query", "key")
            constants += self._output(f"{layer}.self_attention")
            constants += self._feed_forward(layer)
        constants += self._final_norm("encoder")
        for index in progress(range(config.num_decoder_layers), "decoder"):
            constants += self._dense(*_parts(f"decoder.layers.{index}.cross_attention", "key", "value"))
            constants += self._head_norms(f"decoder.layers.{index}.cross_attention", "key")
        return FusedNode(
            fused_io.ENCODE,
            {**self._attributes("encoder"), "num_decoder_layers": config.num_decoder_layers},
            constants,
        )

    def decode_node(self, suppressed_ids: Sequence[int], *, renormalizes: bool) -> FusedNode:
        """Return the node `Decode`, which never chooses `suppressed_ids`. See `with_recorded`."""
        config = self._config
        constants = self._beginning("decoder", target_table(config), config.max_target_positions)
        for index in progress(range(config.num_decoder_layers), "decoder"):
            layer = f"decoder.layers.{index}"
            if config.state_size:
                constants += self._residual(f"{layer}.recurrence")
                constants += self._dense(*_parts(f"{layer}.recurrence", "candidate", "gate"))
            else:
                constants += self._residual(f"{layer}.self_attention")
                constants += self._dense(*_parts(f"{layer}.self_attention", "query", "key", "value"))
                constants += self._head_norms(f"{layer}.self_attention", "query", "key")
                constants += self._output(f"{layer}.self_attention")
            constants += self._residual(f"{layer}.cross_attention")
            constants += self._dense(f"{layer}.cross_attention.query")
            constants += self._head_norms(f"{layer}.cross_attention", "query")
            constants += self._output(f"{layer}.cross_attention")
            constants += self._feed_forward(layer)
        constants += self._final_norm("decoder")
        constants += self._projection()
        constants.append(inline("suppressed_ids", np.array(sorted(set(suppressed_ids)), np.int64)))
        attributes = {**self._attributes("decoder"), "renormalizes": int(renormalizes)}
        if config.state_size:
            attributes["recurrent"] = 1
        return FusedNode(fused_io.DECODE, attributes, constants)

    def _attributes(self, side: str) -> dict[str, Any]:
        config, decoder = self._config.of(side), self._config.of("decoder")
        # Only the encoder says so: it writes the decoder's cache.
        has_other_heads = (config.num_heads, config.head_size) != (decoder.num_heads, decoder.head_size)
        optional = {
            "width": config.d_model if config.d_model != config.attention_width else 0,
            "rms_norm": int(config.layer_norm == "rms"),
            "embedding_norm": int(config.embedding_norm),
            "gated": int(config.gated),
            "relative_biases": self._num_tables(side),
            "sandwich_norm": int(config.norm == "sandwich"),
            "block_norm": int(config.block_norm),
            "decoder_num_heads": decoder.num_heads if has_other_heads else 0,
            "decoder_head_size": decoder.head_size if has_other_heads else 0,
            "rotary_size": config.rotary_size,
            "qk_norm": ("none", "rms", "layer").index(config.qk_norm),
        }
        return {
            "num_layers": self._num_layers(side),
            "num_heads": config.num_heads,
            "head_size": config.head_size,
            "pre_norm": int(config.norm != "post"),
            "scalar_norm": int(config.layer_norm == "scalar"),
            "final_norm": int(config.final_norm),
            "output_projection": int(config.attention_output != "none"),
            "epsilon": config.layer_norm_epsilon,
            "scale": config.score_factor,
            "activation": config.activation,
            **{name: value for name, value in optional.items() if value},
        }

    def _beginning(self, side: str, name: str, num_positions: int) -> Constants:
        table = self._table(name)
        factor = math.sqrt(self._config.of(side).d_model) if self._config.scale_embeddings else 1.0
        return [
            self._file.add(f"{name}.scales", table.scales * np.float32(factor)),
            table.packed,
            self._file.add(f"{name}.positions", self._positions(side, num_positions)),
            *self._angles(side, num_positions),
            *(self._norm(f"{side}.embedding.norm") if self._config.embedding_norm else []),
            *self._relative_biases(side, num_positions),
        ]

    def _positions(self, side: str, num_positions: int) -> npt.NDArray[np.float32]:
        width, positions = self._config.of(side).d_model, self._config.positions
        if positions.layout == "learned":
            return self._floats(f"{side}.embedding.position_table.weight")
        if positions.is_sinusoidal:
            return sinusoidal_table(num_positions, width, positions)
        return np.zeros((num_positions, width), np.float32)

    def _angles(self, side: str, num_positions: int) -> Constants:
        """Return the cosines and sines of each position, (P, rotary_size), if it rotates heads."""
        config = self._config.of(side)
        if not config.rotary_size:
            return []
        tables = rotary_tables(num_positions, config.head_size, config.rotary_size, config.positions)
        second = rotary_order(config.head_size, config.rotary_size, config.positions)[config.rotary_size // 2 :]
        second = second[: config.rotary_size // 2]  # of the pairs: their sines are positive
        return [self._file.add("angles", np.concatenate([each[:, second] for each in tables[:2]], axis=1))]

    def _relative_biases(self, side: str, num_positions: int) -> Constants:
        """Return the tables by how far a key is ahead of its query, from the farthest behind on."""
        config, is_causal = self._config.relative_bias, side == "decoder"
        if config is None:
            return []
        before = -np.arange(1 - num_positions, 1 if is_causal else num_positions)
        columns = distance_column(before, config.max_distance, is_causal=is_causal)
        buckets = distance_buckets(config, is_causal=is_causal)[columns]
        return [
            self._file.add(name, self._floats(name).T[:, buckets])
            for name in (f"{side}.relative_biases.{index}.weight" for index in range(self._num_tables(side)))
        ]

    def _num_layers(self, side: str) -> int:
        return self._config.num_encoder_layers if side == "encoder" else self._config.num_decoder_layers

    def _num_tables(self, side: str) -> int:
        bias = self._config.relative_bias
        return 0 if bias is None else self._num_layers(side) if bias.per_layer else 1

    def _projection(self) -> Constants:
        table = self._table(projection_table(self._config))
        bias = np.zeros(self._config.target_vocabulary_size, np.float32)
        if self._config.projection_bias:
            bias = self._floats("projection.bias")
        return [
            self._file.add(f"{PROJECTION}.scales", table.scales),
            table.packed,
            self._file.add("projection.bias", bias),
        ]

    def _norm(self, name: str) -> Constants:
        parts = {"vector": ("weight", "bias"), "scalar": ("gain", "bias"), "rms": ("weight",)}[self._config.layer_norm]
        return [self._file.add(f"{name}.{part}", self._floats(f"{name}.{part}")) for part in parts]

    def _residual(self, name: str) -> Constants:
        return [constant for norm in residual_norms(self._config, name) for constant in self._norm(norm)]

    def _head_norms(self, attention: str, *sides: str) -> Constants:
        parts = {"none": (), "rms": ("weight",), "layer": ("weight", "bias")}[self._config.qk_norm]
        names = [f"{attention}.{side}_norm.{part}" for side in sides for part in parts]
        return [self._file.add(name, self._floats(name)) for name in names]

    def _final_norm(self, side: str) -> Constants:
        return self._norm(f"{side}.final_norm") if self._config.final_norm else []

    def _output(self, attention: str) -> Constants:
        return [] if self._config.attention_output == "none" else self._dense(f"{attention}.output")

    def _feed_forward(self, layer: str) -> Constants:
        return [
            *self._residual(f"{layer}.feed_forward"),
            *(self._dense(f"{layer}.feed_forward.gate") if self._config.gated else []),
            *self._dense(f"{layer}.feed_forward.inner"),
            *self._dense(f"{layer}.feed_forward.outer"),
        ]

    def _dense(self, *names: str) -> Constants:
        table = self._table(*(f"{name}.weight" for name in names))
        biases = [
            self._floats(f"{name}.bias")
            if f"{name}.bias" in self._weights
            else np.zeros(self._weights[f"{name}.weight"].shape[0], np.float32)
            for name in names
        ]
        return [
            self._file.add(f"{names[0]}.scales", table.scales),
            table.packed,
            self._file.add(f"{names[0]}.bias", np.concatenate(biases)),
        ]

    def _table(self, *names: str) -> "_Table":
        """Quantize and store weights (out, in) one below the other; once, however often it is asked for."""
        if names not in self._tables:
            parts = [self._read(name) for name in names]
            num_outputs, num_inputs = sum(len(part) for part in parts), parts[0].shape[1]
            shape = -(-num_outputs // BLOCK_COLUMNS), -(-num_inputs // GROUP_INPUTS), BLOCK_COLUMNS, GROUP_INPUTS
            scales: list[npt.NDArray[np.float32]] = []
            packed = self._file.add_parts(names[0], np.int8, shape, _packed(parts, scales))
            self._tables[names] = _Table(np.concatenate(scales), packed)
        return self._tables[names]

    def _floats(self, name: str) -> npt.NDArray[np.float32]:
        return as_float32(self._read(name))

    def _read(self, name: str) -> Array:
        """Return a weight; with pairs in halves, as the operators have them, if it is of queries or keys to rotate.

        Scores do not change: both sides of their products have another order.
        """
        weight, config = self._weights[name], self._config.of(name.partition(".")[0])
        if not config.rotary_size or not re.search(r"\.self_attention\.(query|key)(_norm)?\.", name):
            return weight
        order = rotary_order(config.head_size, config.rotary_size, config.positions)
        return weight.reshape(-1, config.head_size, *weight.shape[1:])[:, order].reshape(weight.shape)


@dataclass(frozen=True, slots=True)
class _Table:
    """A weight: the scale of each output (N,), and the packed levels."""

    scales: npt.NDArray[np.float32]
    packed: onnx.TensorProto


def _packed(parts: Sequence[Array], scales: list[npt.NDArray[np.float32]]) -> Iterator[npt.NDArray[np.int8]]:
    """Yield the packed blocks of weights one below the other, and append the scales of their outputs."""
    total = sum(len(part) for part in parts)
    rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    for begin in range(0, total, _ROWS_AT_ONCE):
        levels, of_rows = quantize_rows(as_float32(rows[begin : begin + _ROWS_AT_ONCE]))
        scales.append(of_rows)
        yield pack(levels)


def _parts(prefix: str, *parts: str) -> list[str]:
    return [f"{prefix}.{part}" for part in parts]
