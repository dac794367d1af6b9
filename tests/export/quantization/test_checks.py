"""`check_fused` finds whatever differs from what the operators read."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from export.graphs.checks import GraphError
from export.graphs.weights_file import WEIGHTS
from export.quantization.checks import check_fused
from export.quantize import DECODER
from service.bundle import fused_io
from service.bundle.manifest import Manifest
from tests.servers import REPOSITORY

SHIPPED = REPOSITORY / "models" / "en-hi" / "1"
ENCODER = "encoder.onnx"
Spoil = Callable[[Any], object]


def test_the_shipped_ones_are_taken() -> None:
    shape = Manifest.load(SHIPPED).model
    check_fused(SHIPPED / ENCODER, fused_io.ENCODE, shape)
    check_fused(SHIPPED / DECODER, fused_io.DECODE, shape)
    with pytest.raises(GraphError, match="expected one dragoman::Decode"):
        check_fused(SHIPPED / ENCODER, fused_io.DECODE, shape)


def attribute(graph: Any, name: str) -> Any:
    return next(each for each in graph.node[0].attribute if each.name == name)


def set_int(name: str, value: int) -> Spoil:
    return lambda graph: setattr(attribute(graph, name), "i", value)


def add_int(name: str, value: int) -> Spoil:
    return lambda graph: graph.node[0].attribute.append(onnx.helper.make_attribute(name, value))


def rename_input(graph: Any, index: int, name: str) -> None:
    graph.node[0].input[index] = name


def tensor(graph: Any, name: str) -> Any:
    return next(each for each in graph.initializer if each.name == name)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda graph: graph.node.append(graph.node[0]), "is not a valid ONNX model|expected one dragoman::Decode"),
        (lambda graph: setattr(graph.node[0], "op_type", "Encode"), "expected one dragoman::Decode"),
        (lambda graph: graph.node[0].attribute.pop(), "attributes are"),
        (set_int("pre_norm", 2), "pre_norm is 2, expected 0 or 1"),
        (set_int("renormalizes", -1), "renormalizes is -1, expected 0 or 1"),
        (set_int("num_heads", 8), "8 heads of 48"),
        (set_int("head_size", 0), "4 heads of 0"),
        (set_int("num_layers", 3), "3 decoder layers, expected 2"),
        (lambda graph: setattr(attribute(graph, "activation"), "s", b"tanh"), "activation is b'tanh'"),
        (set_int("final_norm", 0), "constants, expected"),
        (set_int("scalar_norm", 1), r"norm.weight is FLOAT \[192\], expected FLOAT \[1\]"),
        (add_int("tanh", 1), "attributes are"),
        (add_int("gated", 2), "gated is 2, expected 0 or 1"),
        (add_int("rms_norm", 1), "constants, expected"),
        (add_int("relative_biases", 3), "relative_biases is 3, expected 0, 1 or 2"),
        (add_int("relative_biases", 1), "constants, expected"),
        (add_int("width", 100), r"expected FLOAT \[None, 100\]"),
        (lambda graph: setattr(graph.input[0].type.tensor_type, "elem_type", onnx.TensorProto.INT64), "control is not"),
        (lambda graph: rename_input(graph, 9, "decoder.final_norm.bias"), r"decoder.final_norm.bias is FLOAT"),
        (lambda graph: tensor(graph, "suppressed_ids").dims.append(1), "suppressed_ids is INT64"),
    ],
)
def test_what_differs_is_named(spoil: Spoil, message: str, tmp_path: Path) -> None:
    for name in (DECODER, WEIGHTS):
        shutil.copyfile(SHIPPED / name, tmp_path / name)
    model = onnx.load(tmp_path / DECODER, load_external_data=False)
    spoil(model.graph)
    (tmp_path / DECODER).write_bytes(model.SerializeToString())
    with pytest.raises(GraphError, match=message):
        check_fused(tmp_path / DECODER, fused_io.DECODE, Manifest.load(SHIPPED).model)
