from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.limit import dense_weights


def test_weights_that_are_only_looked_up_are_not_multiplied(tmp_path: Path) -> None:
    """A tied table is both: it counts once."""
    matrices = {
        "lookup": np.zeros((50, 4), np.float32),
        "tied": np.zeros((30, 4), np.float32),
        "dense": np.zeros((4, 8), np.float32),
        "bias": np.zeros(8, np.float32),
    }
    nodes = [
        helper.make_node("Gather", ["lookup", "ids"], ["a"]),
        helper.make_node("Gather", ["tied", "ids"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["x"]),
        helper.make_node("Transpose", ["tied"], ["tied_t"]),
        helper.make_node("MatMul", ["x", "tied_t"], ["logits"]),
        helper.make_node("MatMul", ["x", "dense"], ["y"]),
        helper.make_node("Add", ["y", "bias"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "step",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["B"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("logits", "z")],
        [numpy_helper.from_array(value, name) for name, value in matrices.items()],
    )
    path = tmp_path / "step.onnx"
    onnx.save(helper.make_model(graph), path)
    assert dense_weights(path) == 30 * 4 + 4 * 8
