"""Checks that a written fused graph is what the operators in `kernels/` read: names, dtypes, shapes, attributes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

from export.graphs.checks import GraphError
from export.quantization.interface import FLOAT, INT32, INT64, OUTPUTS, declared
from export.quantization.weights import BLOCK_COLUMNS, GROUP_INPUTS
from service.bundle import fused_io
from service.bundle.manifest_parts import ModelShape

INT8 = onnx.TensorProto.INT8
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "identity")
_FLAGS = ("pre_norm", "scalar_norm", "final_norm", "output_projection")
_SIZES = ("num_layers", "num_heads", "head_size")
_OPTIONAL_FLAGS = ("rms_norm", "embedding_norm", "gated", "sandwich_norm", "block_norm")
_OPTIONAL = ("width", "relative_biases", "rotary_size", "qk_norm", *_OPTIONAL_FLAGS)  # 0 where a node lacks them
_DECODER_HEADS = ("decoder_num_heads", "decoder_head_size")  # of `Encode`, where the decoder's are not its own
_OWN = {fused_io.ENCODE: ("num_decoder_layers",), fused_io.DECODE: ("renormalizes", "recorded_layer")}
_WITH_SHORTLISTS = {
    fused_io.ENCODE: ("shortlists", "vocabulary_size", "one_vocabulary"),
    fused_io.DECODE: ("shortlists",),
}
_Kind = tuple[int, tuple[int | None, ...]]  # dtype and shape, in which `None` is any number


def check_fused(path: Path, operator: str, shape: ModelShape) -> None:
    try:
        onnx.checker.check_model(path)
        graph = onnx.load(path, load_external_data=False).graph
    except (onnx.checker.ValidationError, OSError) as error:
        raise GraphError(f"{path.name} is not a valid ONNX model: {error}.") from error
    problems = list(_problems(graph, operator, shape))
    if problems:
        raise GraphError(f"{path.name}: {'; '.join(problems)}.")


def _problems(graph: onnx.GraphProto, operator: str, shape: ModelShape) -> Iterator[str]:
    nodes = [(node.domain, node.op_type) for node in graph.node]
    if nodes != [(fused_io.FUSED_DOMAIN, operator)]:
        yield f"nodes are {nodes}, expected one {fused_io.FUSED_DOMAIN}::{operator}"
        return
    (node,) = graph.node
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    wrong = list(_attribute_problems(attributes, operator, shape))
    yield from wrong
    if wrong:
        return
    inputs, outputs = fused_io.inputs_of(operator, shape), OUTPUTS[operator]
    values = declared(operator, shape)
    for given, expected in zip([*graph.input, *graph.output], [*values[0], *values[1]], strict=False):
        if given != expected:
            yield f"{given.name} is not as declared for {expected.name}"
    if tuple(node.input[: len(inputs)]) != inputs or tuple(node.output) != outputs:
        yield f"the node's inputs and outputs do not begin with {inputs} and {outputs}"
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    constants = [tensors.get(name) for name in node.input[len(inputs) :]]
    expected_kinds = list(_constants(attributes, operator, shape))
    if len(constants) != len(expected_kinds) or None in constants:
        yield f"{len(constants)} constants, expected {len(expected_kinds)} stored ones"
        return
    for constant, (dtype, dims) in zip(constants, expected_kinds, strict=True):
        assert constant is not None
        if constant.data_type != dtype or not _fits(tuple(constant.dims), dims):
            type_name = onnx.TensorProto.DataType.Name
            given_kind = f"{type_name(constant.data_type)} {list(constant.dims)}"
            yield f"{constant.name} is {given_kind}, expected {type_name(dtype)} {list(dims)}"


def _attribute_problems(attributes: dict[str, Any], operator: str, shape: ModelShape) -> Iterator[str]:
    kinds: dict[str, type] = dict.fromkeys((*_SIZES, *_FLAGS, *_OWN[operator]), int)
    kinds |= {"epsilon": float, "scale": float, "activation": bytes}
    if operator == fused_io.DECODE and shape.is_recurrent:
        kinds |= {"recurrent": int}
    if shape.shortlist_size:
        kinds |= dict.fromkeys(_WITH_SHORTLISTS[operator], int)
    if operator == fused_io.ENCODE and "decoder_num_heads" in attributes:
        kinds |= dict.fromkeys(_DECODER_HEADS, int)
    kinds |= {name: int for name in _OPTIONAL if name in attributes}
    given_kinds = {name: type(value) for name, value in attributes.items()}
    if given_kinds != kinds:
        yield f"attributes are {sorted(given_kinds)}, expected {sorted(kinds)}, or of other types"
        return
    flags = [*_FLAGS, *(["renormalizes"] if operator == fused_io.DECODE else [])]
    flags += [name for name in _OPTIONAL_FLAGS if name in attributes]
    yield from (f"{name} is {attributes[name]}, expected 0 or 1" for name in flags if attributes[name] not in (0, 1))
    if attributes["activation"].decode() not in ACTIVATIONS:
        yield f"activation is {attributes['activation']!r}, expected one of {', '.join(ACTIVATIONS)}"
    cached = _DECODER_HEADS if "decoder_num_heads" in attributes else ("num_heads", "head_size")
    if tuple(attributes[name] for name in cached) != (shape.num_heads, shape.head_size):
        yield f"{attributes[cached[0]]} heads of {attributes[cached[1]]}, expected those of {shape}"
    if (num_tables := attributes.get("relative_biases", 0)) not in (0, 1, attributes["num_layers"]):
        yield f"relative_biases is {num_tables}, expected 0, 1 or {attributes['num_layers']}"
    if (rotary_size := attributes.get("rotary_size", 0)) % 2 or not 0 <= rotary_size <= attributes["head_size"]:
        yield f"rotary_size is {rotary_size}, expected an even number up to {attributes['head_size']}"
    if attributes.get("qk_norm", 0) not in (0, 1, 2):
        yield f"qk_norm is {attributes['qk_norm']}, expected 0, 1 or 2"
    layers = attributes["num_layers" if operator == fused_io.DECODE else "num_decoder_layers"]
    if layers != shape.num_decoder_layers or attributes["num_layers"] < 1:
        yield f"{layers} decoder layers, expected {shape.num_decoder_layers}"


def _constants(attributes: dict[str, Any], operator: str, shape: ModelShape) -> Iterator[_Kind]:
    """Yield dtypes and shapes of the constants in the order of `kernels/README.md`."""
    heads_width = attributes["num_heads"] * attributes["head_size"]
    width = attributes.get("width", 0) or heads_width
    num_parts = 1 if attributes.get("rms_norm", 0) else 2
    norm: list[_Kind] = [(FLOAT, (1 if attributes["scalar_norm"] else width,))] * num_parts
    output = _dense(width, heads_width) if attributes["output_projection"] else []
    gate = _dense(None, width) if attributes.get("gated", 0) else []
    head_norm, cached_norm = (
        [(FLOAT, (size,))] * attributes.get("qk_norm", 0) for size in (attributes["head_size"], shape.head_size)
    )
    packed = [*_dense(3 * heads_width, width), *head_norm, *head_norm, *output]
    ends = norm * attributes.get("block_norm", 0)
    residual = norm * (1 + attributes.get("sandwich_norm", 0))
    feed_forward = [*residual, *ends, *gate, *_dense(None, width), *_dense(width, None)]
    decodes = operator == fused_io.DECODE
    yield from [
        *_table(shape.vocabulary_size if decodes else None, width),
        (FLOAT, (None, width)),
        *[(FLOAT, (None, size)) for size in [attributes.get("rotary_size", 0)] if size],
        *(norm if attributes.get("embedding_norm", 0) else []),
        *[(FLOAT, (attributes["num_heads"], None))] * attributes.get("relative_biases", 0),
    ]
    for _ in range(attributes["num_layers"]):
        if decodes:
            yield from residual
            yield from _dense(2 * width, width) if shape.is_recurrent else packed
            yield from [*residual, *_dense(heads_width, width), *head_norm, *output, *feed_forward]
        else:
            yield from [*residual, *packed, *feed_forward]
    yield from norm if attributes["final_norm"] else []
    if decodes:
        yield from _dense(shape.vocabulary_size, width)
        yield from 2 * [(INT64, (None,))]
    else:
        cross = [*_dense(2 * shape.num_heads * shape.head_size, width), *cached_norm]
        yield from shape.num_decoder_layers * cross
        if shape.shortlist_size:
            yield from ((INT64, (None,)), (INT64, (None,)), (INT32, (None,)))


def _dense(num_outputs: int | None, num_inputs: int | None) -> list[_Kind]:
    return [*_table(num_outputs, num_inputs), (FLOAT, (num_outputs,))]


def _table(num_outputs: int | None, num_inputs: int | None) -> list[_Kind]:
    blocks = None if num_outputs is None else -(-num_outputs // BLOCK_COLUMNS)
    groups = None if num_inputs is None else -(-num_inputs // GROUP_INPUTS)
    return [(FLOAT, (num_outputs,)), (INT8, (blocks, groups, BLOCK_COLUMNS, GROUP_INPUTS))]


def _fits(given: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(given) == len(expected) and all(b is None or a == b for a, b in zip(given, expected, strict=True))
