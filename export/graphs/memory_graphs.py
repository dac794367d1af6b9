"""The graphs that move a row's keys and values in a device's memory, kept in `service/engine/runtime/graphs`.

They contain no weights and fit every model. `python -m export.graphs.memory_graphs` writes them again, as the service
has no library to build graphs with, and a test compares the files.
"""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

import service.engine.runtime

DIRECTORY = Path(service.engine.runtime.__file__).parent / "graphs"
_OPSET, _IR_VERSION = 21, 10


def copy_blocks() -> onnx.ModelProto:
    """Copy blocks of a memory to other blocks of it, in place if the output is bound to the input's buffer.

    There are K rows of M blocks each, a block being W numbers of 8 bytes of any content:

        in   memory          (N, W) int64      source_bases (K, 1) int64      source_offsets (1, M) int64
             target_bases (K, 1, 1) int64      target_offsets (1, M, 1) int64
        out  moved           (N, W) int64      block target_bases[k] + target_offsets[m] is the former source block

    Everything is read before anything is written. Kernels of ScatterND copy their input only to another buffer.
    """
    nodes = [
        helper.make_node("Add", ["source_bases", "source_offsets"], ["sources"]),  # (K, M)
        helper.make_node("Gather", ["memory", "sources"], ["blocks"], axis=0),  # (K, M, W)
        helper.make_node("Add", ["target_bases", "target_offsets"], ["targets"]),  # (K, M, 1)
        helper.make_node("ScatterND", ["memory", "targets", "blocks"], ["moved"]),
    ]
    inputs = [
        _value("memory", TensorProto.INT64, "N", "W"),
        _value("source_bases", TensorProto.INT64, "K", 1),
        _value("source_offsets", TensorProto.INT64, 1, "M"),
        _value("target_bases", TensorProto.INT64, "K", 1, 1),
        _value("target_offsets", TensorProto.INT64, 1, "M", 1),
    ]
    return _model("copy_blocks", nodes, inputs, [_value("moved", TensorProto.INT64, "N", "W")])


def zero_if_finite(element_type: int) -> onnx.ModelProto:
    """Compute for each source 0 if all of its keys and values are finite, else NaN.

        in   encoded (P, B, E) float16 or float32      out  sums (B,)

    x - x is 0 for finite numbers and NaN otherwise, and no sum of zeros overflows in float16.
    """
    nodes = [
        helper.make_node("Sub", ["encoded", "encoded"], ["zeros"]),
        helper.make_node("ReduceSum", ["zeros", "axes"], ["sums"], keepdims=0),
    ]
    axes = helper.make_tensor("axes", TensorProto.INT64, [2], [0, 2])
    inputs, outputs = [_value("encoded", element_type, "P", "B", "E")], [_value("sums", element_type, "B")]
    return _model("zero_if_finite", nodes, inputs, outputs, [axes])


def all_graphs() -> dict[str, onnx.ModelProto]:
    return {
        "copy_blocks.onnx": copy_blocks(),
        "zero_if_finite.float16.onnx": zero_if_finite(TensorProto.FLOAT16),
        "zero_if_finite.float32.onnx": zero_if_finite(TensorProto.FLOAT),
    }


def _value(name: str, element_type: int, *shape: str | int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, list(shape))


def _model(
    name: str,
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    weights: list[onnx.TensorProto] | None = None,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, name, inputs, outputs, weights or [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    onnx.checker.check_model(model, full_check=True)
    return model


if __name__ == "__main__":
    for file_name, model in all_graphs().items():
        onnx.save(model, DIRECTORY / file_name)
