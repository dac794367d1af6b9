"""Small fused graphs of random weights, of any architecture, whole or with some part replaced."""

import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy import typing as npt

from export.quantization.interface import OUTPUTS, declared
from export.quantization.weights import pack
from service.bundle import fused_io
from service.bundle.manifest_parts import ModelShape

Array = npt.NDArray[Any]

EOS_ID, START_ID = 2, 0
OPTIONAL = (
    "rms_norm",
    "embedding_norm",
    "gated",
    "relative_biases",
    "sandwich_norm",
    "block_norm",
    "rotary_size",
    "qk_norm",
)  # 0 where a node lacks them


@dataclass(frozen=True)
class Shape:
    """What a small model is like. Sizes are neither multiples of the kernels' own, nor smaller than all of them."""

    num_layers: int = 2
    num_decoder_layers: int = 2
    num_heads: int = 3
    head_size: int = 10
    d_model: int = 0  # 0: that of all heads
    d_ff: int = 70
    num_tokens: int = 90
    num_positions: int = 70
    activation: str = "relu"
    pre_norm: bool = True
    scalar_norm: bool = False
    rms_norm: bool = False
    embedding_norm: bool = False
    sandwich_norm: bool = False
    block_norm: bool = False
    encoder: "Shape | None" = None  # if it differs from the decoder
    final_norm: bool = True
    output_projection: bool = True
    gated: bool = False
    relative_biases: int = 0  # 2: one table for each of two layers
    rotary_size: int = 0
    qk_norm: int = 0  # 1: rms, 2: with mean and bias
    renormalizes: bool = False
    suppressed: tuple[int, ...] = (1, 3, 40)
    recorded_layer: int = -1
    recorded_heads: tuple[int, ...] = ()
    recurrent: bool = False
    shortlists: bool = False

    @property
    def width(self) -> int:
        return self.d_model or self.heads_width

    @property
    def heads_width(self) -> int:
        return self.num_heads * self.head_size

    @property
    def model(self) -> ModelShape:
        state_size = self.width if self.recurrent else 0
        heads = self.num_decoder_layers, self.num_heads, self.head_size
        return ModelShape(*heads, self.num_tokens, state_size, self.num_tokens if self.shortlists else 0)


SHAPES: Mapping[str, Shape] = {
    "as shipped": Shape(num_heads=4, head_size=8, d_ff=64, recorded_layer=1, recorded_heads=(3, 1)),
    "post-norm": Shape(pre_norm=False, final_norm=False, activation="gelu", num_decoder_layers=3),
    "by hand": Shape(pre_norm=False, scalar_norm=True, output_projection=False, activation="identity",
                     renormalizes=True, recorded_layer=0, recorded_heads=(1, 0)),
    "scalar": Shape(num_layers=1, final_norm=False, scalar_norm=True, activation="silu", suppressed=()),
    "wide heads": Shape(num_heads=2, head_size=70, d_ff=30, num_layers=1, num_decoder_layers=1),
    "narrow": Shape(num_heads=1, head_size=3, d_ff=1, num_tokens=7, suppressed=(3,), recorded_layer=1,
                    recorded_heads=(0,)),
    "student": Shape(num_heads=4, head_size=10, pre_norm=False, final_norm=False, recurrent=True, recorded_layer=1,
                     recorded_heads=(0,)),
    "recurrent": Shape(num_heads=2, head_size=12, recurrent=True, output_projection=False, num_decoder_layers=3),
    "shortlists": Shape(num_heads=2, head_size=17, shortlists=True, suppressed=(1, 40), recorded_layer=0,
                        recorded_heads=(1,)),
    "listed student": Shape(num_heads=2, head_size=8, pre_norm=False, final_norm=False, recurrent=True,
                            shortlists=True, renormalizes=True, num_tokens=70),
    "T5": Shape(rms_norm=True, gated=True, activation="gelu_tanh", relative_biases=1, d_model=22, recorded_layer=0,
                recorded_heads=(2,)),
    "biases of each layer": Shape(d_model=130, num_heads=2, rms_norm=True, gated=True, activation="relu",
                                  relative_biases=2, embedding_norm=True),
    "embedding norm": Shape(pre_norm=False, final_norm=False, embedding_norm=True, activation="gelu_tanh",
                            d_model=34, relative_biases=1),
    "sandwich": Shape(sandwich_norm=True, block_norm=True, final_norm=False, recorded_layer=1, recorded_heads=(1,),
                      encoder=Shape(num_heads=2, head_size=35, d_ff=50, num_layers=1, sandwich_norm=True)),
    "ends of layers": Shape(pre_norm=False, block_norm=True, rms_norm=True, gated=True, output_projection=False),
    "rotary": Shape(num_heads=2, head_size=70, rotary_size=68, d_model=30, recorded_layer=0, recorded_heads=(1,)),
    "rotary, normed": Shape(num_heads=3, head_size=16, rotary_size=6, qk_norm=1, pre_norm=False, d_model=34),
    "normed heads": Shape(num_heads=2, head_size=40, qk_norm=2, relative_biases=1, output_projection=False),
    "normed student": Shape(num_heads=4, head_size=10, qk_norm=2, recurrent=True),
    "uneven, rotary": Shape(rotary_size=10, qk_norm=2, recorded_layer=0, recorded_heads=(2,),
                            encoder=Shape(num_heads=5, head_size=70, d_model=34, rotary_size=68, qk_norm=2)),
}  # fmt: skip


@dataclass
class Graph:
    """A graph of one node: its attributes, and its constants in their order."""

    operator: str
    attributes: dict[str, Any]
    constants: list[Array]
    shape: Shape

    def save(self, path: Path, *, has_shapes: bool = True, beside: tuple[int, int] | None = None) -> Path:
        """Write it, with or without the shapes of inputs and outputs, which ONNX Runtime checks.

        With `beside`, constants are in a file beside it: weights and all others begin so many bytes after pages of
        their own.
        """
        own = self.shape.model
        inputs, outputs = declared(self.operator, own)
        if not has_shapes:
            for value in (*inputs, *outputs):
                value.type.tensor_type.ClearField("shape")
        tensors = [onnx.numpy_helper.from_array(array, f"c{place}") for place, array in enumerate(self.constants)]
        if beside is not None:
            _move(tensors, path.with_suffix(".bin"), *beside)
        names = [*fused_io.inputs_of(self.operator, own), *(tensor.name for tensor in tensors)]
        node = onnx.helper.make_node(
            self.operator, names, OUTPUTS[self.operator], domain=fused_io.FUSED_DOMAIN, **self.attributes
        )
        graph = onnx.helper.make_graph([node], "fused", inputs, outputs, tensors)
        opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid(fused_io.FUSED_DOMAIN, 1)]
        path.write_bytes(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())
        return path


def _move(tensors: list[onnx.TensorProto], path: Path, weights_shift: int, others_shift: int) -> None:
    """Move the data of tensors to a file."""
    with path.open("wb") as file:
        for tensor in tensors:
            if not tensor.raw_data:
                continue
            shift = weights_shift if tensor.data_type == onnx.TensorProto.INT8 else others_shift
            file.write(bytes(-file.tell() % mmap.PAGESIZE + shift))
            for key, value in (("location", path.name), ("offset", file.tell()), ("length", len(tensor.raw_data))):
                tensor.external_data.add(key=key, value=str(value))
            file.write(tensor.raw_data)
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL


def encode_graph(shape: Shape, seed: int = 0) -> Graph:
    """Return an encoder."""
    decoder, shape = shape, shape.encoder or shape
    made = _Constants(shape, seed)
    made.embedding()
    made.relative_biases(2 * shape.num_positions - 1)
    for _ in range(shape.num_layers):
        made.residual()
        made.dense(shape.width, 3 * shape.heads_width)
        made.head_norms(2)
        made.output()
        made.feed_forward()
    made.final_norm()
    for _ in range(decoder.num_decoder_layers):
        made.dense(shape.width, 2 * decoder.heads_width)
        made.head_norms(1, decoder.head_size)
    attributes = _attributes(shape, shape.num_layers) | {"num_decoder_layers": decoder.num_decoder_layers}
    if shape is not decoder:
        attributes |= {"decoder_num_heads": decoder.num_heads, "decoder_head_size": decoder.head_size}
    if shape.shortlists:
        attributes |= {"shortlists": 1, "vocabulary_size": shape.num_tokens, "one_vocabulary": seed % 2}
        made.shortlists()
    return Graph(fused_io.ENCODE, attributes, made.constants, decoder)


def decode_graph(shape: Shape, seed: int = 0) -> Graph:
    """Return a decoder."""
    made = _Constants(shape, seed + 1)
    made.embedding()
    made.relative_biases(shape.num_positions)
    for _ in range(shape.num_decoder_layers):
        made.residual()
        if shape.recurrent:
            made.dense(shape.width, 2 * shape.width)
        else:
            made.dense(shape.width, 3 * shape.heads_width)
            made.head_norms(2)
            made.output()
        made.residual()
        made.dense(shape.width, shape.heads_width)
        made.head_norms(1)
        made.output()
        made.feed_forward()
    made.final_norm()
    made.dense(shape.width, shape.num_tokens, gain=3.0)
    made.constants[-1][EOS_ID] += 3.0  # so that rows end at different steps
    made.constants += [np.array(ids, np.int64) for ids in (shape.suppressed, shape.recorded_heads)]
    attributes = _attributes(shape, shape.num_decoder_layers) | {
        "renormalizes": int(shape.renormalizes),
        "recorded_layer": shape.recorded_layer,
    }
    if shape.recurrent:
        attributes["recurrent"] = 1
    if shape.shortlists:
        attributes["shortlists"] = 1
    return Graph(fused_io.DECODE, attributes, made.constants, shape)


def _attributes(shape: Shape, num_layers: int) -> dict[str, Any]:
    names = ("num_heads", "head_size", "pre_norm", "scalar_norm", "final_norm", "output_projection")
    optional = {"width": shape.d_model} | {name: int(getattr(shape, name)) for name in OPTIONAL}
    return {
        **{name: int(getattr(shape, name)) for name in names},
        **{name: value for name, value in optional.items() if value},
        "num_layers": num_layers,
        "activation": shape.activation,
        "epsilon": 1e-5,
        "scale": float(shape.head_size**-0.5),
    }


class _Constants:
    """Random constants in the order in which a node lists them."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self.constants: list[Array] = []
        self._shape, self._rng = shape, np.random.default_rng(seed)

    def embedding(self) -> None:
        own = self._shape
        tokens = self._rng.integers(-127, 128, (own.num_tokens, own.width)).astype(np.int8)
        scales = self._floats(own.num_tokens) * 0.001 + 0.02
        self.constants += [scales.astype(np.float32), pack(tokens), self._floats(own.num_positions, own.width)]
        if own.rotary_size:
            angles = self._floats(own.num_positions, own.rotary_size // 2)
            self.constants.append(np.concatenate([np.cos(angles), np.sin(angles)], axis=1))
        if own.embedding_norm:
            self.norm()

    def head_norms(self, count: int, head_size: int | None = None) -> None:
        for _ in range(count * self._shape.qk_norm):
            self.constants.append(1 + 0.3 * self._floats(head_size or self._shape.head_size))

    def relative_biases(self, num_places: int) -> None:
        for _ in range(self._shape.relative_biases):
            self.constants.append(self._floats(self._shape.num_heads, num_places))

    def shortlists(self) -> None:
        """Lists of up to 5 tokens, none for the last source token, as for the start of a translation."""
        counts = self._rng.integers(0, 6, self._shape.num_tokens - 1)
        lists = [np.sort(self._rng.choice(self._shape.num_tokens, count, replace=False)) for count in counts]
        self.constants += [
            np.array([0, EOS_ID, 5], np.int64),
            np.array([0, *np.cumsum(counts)], np.int64),
            np.concatenate(lists).astype(np.int32),
        ]

    def norm(self) -> None:
        size = 1 if self._shape.scalar_norm else self._shape.width
        self.constants.append(1 + 0.1 * self._floats(size))
        if not self._shape.rms_norm:
            self.constants.append(0.1 * self._floats(size))

    def final_norm(self) -> None:
        if self._shape.final_norm:
            self.norm()

    def output(self) -> None:
        if self._shape.output_projection:
            self.dense(self._shape.heads_width, self._shape.width)

    def residual(self) -> None:
        for _ in range(1 + self._shape.sandwich_norm):
            self.norm()

    def feed_forward(self) -> None:
        for _ in range(1 + self._shape.sandwich_norm + self._shape.block_norm):
            self.norm()
        for _ in range(1 + self._shape.gated):
            self.dense(self._shape.width, self._shape.d_ff)
        self.dense(self._shape.d_ff, self._shape.width)

    def dense(self, num_inputs: int, num_outputs: int, gain: float = 1.0) -> None:
        weight = self._rng.integers(-127, 128, (num_outputs, num_inputs)).astype(np.int8)
        spread = gain / 73 / np.sqrt(num_inputs)
        scales = (spread * self._rng.uniform(0.5, 1.5, num_outputs)).astype(np.float32)
        self.constants += [scales, pack(weight), 0.3 * self._floats(num_outputs)]

    def _floats(self, *shape: int) -> npt.NDArray[np.float32]:
        return self._rng.normal(size=shape).astype(np.float32)
