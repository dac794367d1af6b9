"""A tiny encoder-decoder with random weights, written node by node with the names and shapes of `bundle.graph_io`."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy import typing as npt
from onnx import TensorProto, helper, numpy_helper

from service.bundle import graph_io

_OPSET = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]


@dataclass(frozen=True)
class TinyModel:
    """Sizes of the tiny model; the same sizes and seed give the same weights."""

    num_layers: int = 2
    num_heads: int = 2
    head_size: int = 8
    vocabulary_size: int = 40
    max_positions: int = 128
    seed: int = 0
    precision: str = "float32"  # or float16: the same weights, rounded; log-probabilities stay float32

    @property
    def nan_id(self) -> int:
        """Return a token that can't be chosen, and whose embedding is NaN."""
        return self.vocabulary_size

    @property
    def dtype(self) -> type:
        return {"float32": np.float32, "float16": np.float16}[self.precision]

    @property
    def element_type(self) -> int:
        return int(helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype)))

    @property
    def width(self) -> int:
        return self.num_heads * self.head_size


class _Graph:
    """Collects nodes and weights; every method returns the name of the value that it adds."""

    def __init__(self, model: TinyModel, seed: int) -> None:
        self.model = model
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, op: str, *inputs: str, outputs: int | list[str] = 1, domain: str = "", **attributes: Any) -> str:
        names = outputs if isinstance(outputs, list) else [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, domain=domain, **attributes))
        return names[0]

    def constant(self, values: npt.ArrayLike, dtype: type) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def matrix(self, rows: int, columns: int, scale: float = 1.0) -> str:
        return self.constant(self.random.normal(0, scale / np.sqrt(rows), (rows, columns)), self.model.dtype)

    def linear(self, x: str, rows: int, columns: int) -> str:
        return self.node("MatMul", x, self.matrix(rows, columns))

    def embed(self, ids: str, positions: str) -> str:
        width, dtype = self.model.width, self.model.dtype
        known = self.random.normal(0, 1, (self.model.vocabulary_size, width))
        table = self.constant(np.vstack([known, np.full(width, np.nan)]), dtype)
        places = self.constant(self.random.normal(0, 1, (self.model.max_positions, width)), dtype)
        return self.node("Add", self.node("Gather", table, ids), self.node("Gather", places, positions))

    def norm(self, x: str) -> str:
        one, zero = np.ones(self.model.width), np.zeros(self.model.width)
        scale, bias = self.constant(one, self.model.dtype), self.constant(zero, self.model.dtype)
        return self.node("LayerNormalization", x, scale, bias)

    def range(self, x: str, axis: int) -> str:
        size = self.node("Squeeze", self.node("Shape", x, start=axis, end=axis + 1))
        return self.node("Range", self.constant(0, np.int64), size, self.constant(1, np.int64))

    def feed_forward(self, x: str) -> str:
        width = self.model.width
        hidden = self.node("Relu", self.linear(self.norm(x), width, 4 * width))
        return self.node("Add", x, self.linear(hidden, 4 * width, width))

    def save(self, path: Path, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> None:
        graph = helper.make_graph(self.nodes, path.stem, inputs, outputs, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=_OPSET, ir_version=10), path)


def _value(name: str, kind: int, *shape: str | int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, list(shape))


def save_encoder(model: TinyModel, path: Path) -> None:
    """Write an encoder of one layer."""
    graph, width = _Graph(model, model.seed), model.width
    positions = graph.range(graph_io.SOURCE_IDS, 1)
    x = graph.embed(graph_io.SOURCE_IDS, positions)
    query, key, value = (graph.linear(graph.norm(x), width, width) for _ in range(3))
    attended = graph.node("MultiHeadAttention", query, key, value, "", graph_io.SOURCE_LENGTHS,
                          domain="com.microsoft", num_heads=model.num_heads)  # fmt: skip
    x = graph.norm(graph.feed_forward(graph.node("Add", x, graph.linear(attended, width, width))))
    heads = graph.constant([0, 0, model.num_heads, model.head_size], np.int64)
    for name in graph_io.cross_names(model.num_layers):
        split = graph.node("Reshape", graph.linear(x, width, width), heads)
        graph.node("Transpose", split, perm=[0, 2, 1, 3], outputs=[name])
    cross = [
        _value(name, model.element_type, "B", model.num_heads, "S", model.head_size)
        for name in graph_io.cross_names(model.num_layers)
    ]
    graph.save(
        path,
        [
            _value(graph_io.SOURCE_IDS, TensorProto.INT64, "B", "S"),
            _value(graph_io.SOURCE_LENGTHS, TensorProto.INT32, "B"),
        ],
        cross,
    )


def save_alignment(model: TinyModel, path: Path, decoder_start_id: int = 0) -> None:
    """Write an alignment graph with all heads of layer 0 of the decoder that `save_decoder_step` writes."""
    graph, width = _Graph(model, model.seed + 1), model.width  # draws the same numbers in the same order
    start = graph.constant([[decoder_start_id]], np.int64)
    batch = graph.node("Shape", graph_io.TARGET_IDS, start=0, end=1)
    column = graph.node("Expand", start, graph.node("Concat", batch, graph.constant([1], np.int64), axis=0))
    to_last = [graph.constant([number], np.int64) for number in (0, -1, 1)]
    read = graph.node("Concat", column, graph.node("Slice", graph_io.TARGET_IDS, *to_last), axis=1)
    x = graph.embed(read, graph.range(graph_io.TARGET_IDS, 1))  # (B, T, width)
    packed = graph.linear(graph.norm(x), width, 3 * width)
    ends, last = [graph.constant([width * part], np.int64) for part in range(4)], graph.constant([2], np.int64)
    parts = [graph.node("Slice", packed, start, end, last) for start, end in itertools.pairwise(ends)]
    attended = graph.node(
        "MultiHeadAttention", *parts, domain="com.microsoft", num_heads=model.num_heads, unidirectional=1
    )
    x = graph.node("Add", x, graph.linear(attended, width, width))
    heads = graph.constant([0, 0, model.num_heads, model.head_size], np.int64)
    queries = graph.node("Transpose", graph.node("Reshape", graph.linear(graph.norm(x), width, width), heads),
                         perm=[0, 2, 1, 3])  # fmt: skip
    key = graph_io.alignment_inputs(0)[-1]
    scores = graph.node("MatMul", queries, graph.node("Transpose", key, perm=[0, 1, 3, 2]))
    scores = graph.node("Mul", scores, graph.constant(model.head_size**-0.5, model.dtype))
    lengths = graph.node("Reshape", graph_io.SOURCE_LENGTHS, graph.constant([-1, 1, 1, 1], np.int64))
    places = graph.node("Cast", graph.range(key, 2), to=TensorProto.INT32)
    live = graph.node("Where", graph.node("Less", places, lengths), scores, graph.constant(-np.inf, model.dtype))
    probabilities = graph.node("Cast", graph.node("Softmax", live, axis=-1), to=TensorProto.FLOAT)
    axis = graph.constant([1], np.int64)
    graph.node("ReduceMean", probabilities, axis, keepdims=0, outputs=[graph_io.ATTENTION])
    graph.save(
        path,
        [
            _value(graph_io.TARGET_IDS, TensorProto.INT64, "B", "T"),
            _value(graph_io.SOURCE_LENGTHS, TensorProto.INT32, "B"),
            _value(key, model.element_type, "B", model.num_heads, "S", model.head_size),
        ],
        [_value(graph_io.ATTENTION, TensorProto.FLOAT, "B", "T", "S")],
    )


def save_decoder_step(model: TinyModel, path: Path) -> None:
    """Write a decoder step of `num_layers` pre-norm layers."""
    graph, width, layers = _Graph(model, model.seed + 1), model.width, model.num_layers
    column = graph.constant([1], np.int64)
    x = graph.embed(
        graph.node("Unsqueeze", graph_io.TOKEN_IDS, column),
        graph.node("Unsqueeze", graph.node("Cast", graph_io.LENGTHS, to=TensorProto.INT64), column),
    )  # (B, 1, width)
    past, present, cross = graph_io.past_names(layers), graph_io.present_names(layers), graph_io.cross_names(layers)
    for key in range(0, 2 * layers, 2):
        attended = graph.node(
            "GroupQueryAttention", graph.linear(graph.norm(x), width, 3 * width), "", "", past[key], past[key + 1],
            graph_io.LENGTHS, graph_io.TOTAL_LENGTH, outputs=[f"self.{key}", present[key], present[key + 1]],
            domain="com.microsoft", num_heads=model.num_heads, kv_num_heads=model.num_heads,
        )  # fmt: skip
        x = graph.node("Add", x, graph.linear(attended, width, width))
        attended = graph.node(
            "MultiHeadAttention", graph.linear(graph.norm(x), width, width), cross[key], cross[key + 1], "",
            graph_io.SOURCE_LENGTHS, domain="com.microsoft", num_heads=model.num_heads,
        )  # fmt: skip
        x = graph.feed_forward(graph.node("Add", x, graph.linear(attended, width, width)))
    projection = graph.matrix(width, model.vocabulary_size, scale=2.0)
    hidden = graph.norm(x)
    logits = graph.node("Squeeze", graph.node("MatMul", hidden, projection), column)  # (B, V)
    logits = graph.node("Cast", logits, to=TensorProto.FLOAT, outputs=[graph_io.LOGITS])
    graph.node("ReduceLogSumExp", logits, column, keepdims=0, outputs=[graph_io.LOG_TOTALS])
    best_ids = graph.node("ArgMax", logits, axis=1, keepdims=0)
    is_nan = graph.node("IsNaN", graph.node("ReduceSum", hidden, graph.constant([1, 2], np.int64), keepdims=0))
    no_token = graph.constant(graph_io.NO_TOKEN, np.int64)
    graph.node("Where", is_nan, no_token, best_ids, outputs=[graph_io.NEXT_IDS])
    log_probs = graph.node("Sub", logits, graph.node("Unsqueeze", graph_io.LOG_TOTALS, column))
    graph.node("ReduceMax", log_probs, column, keepdims=0, outputs=[graph_io.NEXT_LOG_PROBS])
    candidates = [graph_io.CANDIDATE_LOG_PROBS, graph_io.CANDIDATE_IDS]
    graph.node("TopK", log_probs, graph_io.NUM_CANDIDATES, axis=1, outputs=candidates)
    arena = (model.element_type, "B", model.num_heads, "C", model.head_size)
    memory = (model.element_type, "B", model.num_heads, "S", model.head_size)
    graph.save(
        path,
        [
            _value(graph_io.TOKEN_IDS, TensorProto.INT64, "B"),
            _value(graph_io.LENGTHS, TensorProto.INT32, "B"),
            _value(graph_io.TOTAL_LENGTH, TensorProto.INT32, 1),
            _value(graph_io.SOURCE_LENGTHS, TensorProto.INT32, "B"),
            _value(graph_io.NUM_CANDIDATES, TensorProto.INT64, 1),
            *[_value(name, *arena) for name in past],
            *[_value(name, *memory) for name in cross],
        ],
        [
            _value(graph_io.NEXT_IDS, TensorProto.INT64, "B"),
            _value(graph_io.NEXT_LOG_PROBS, TensorProto.FLOAT, "B"),
            _value(graph_io.CANDIDATE_IDS, TensorProto.INT64, "B", "K"),
            _value(graph_io.CANDIDATE_LOG_PROBS, TensorProto.FLOAT, "B", "K"),
            *[_value(name, *arena) for name in present],
            _value(graph_io.LOGITS, TensorProto.FLOAT, "B", model.vocabulary_size),
            _value(graph_io.LOG_TOTALS, TensorProto.FLOAT, "B"),
        ],
    )
