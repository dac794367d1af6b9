from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from service.engine.runtime.session import DeviceMemory, GraphSession, SessionConfig
from tests.unit.engine.runtime.device_access import get, put

CUDA = SessionConfig("cuda")


@pytest.fixture
def add(tmp_path: Path) -> GraphSession:
    """Return a session that computes y = x + 1, in float16."""
    one = helper.make_tensor("one", TensorProto.FLOAT16, [1], [1.0])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT16, ["N"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "one"], ["y"])], "add", [x], [y], [one])
    path = tmp_path / "add.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return GraphSession(path, CUDA, ["x"], ["y"])


def test_inputs_on_the_host_are_read_at_each_run_and_outputs_come_to_the_host(add: GraphSession) -> None:
    x, y = np.zeros(5, np.float16), np.zeros(5, np.float16)
    binding = add.bind({"x": x}, {"y": y})
    for number in (3.0, 8.0):
        x[:] = number
        add.run(binding)
        assert (y == number + 1).all()


def test_a_graph_can_write_where_it_reads(add: GraphSession) -> None:
    memory = DeviceMemory("cuda", 64)
    part = memory.view(16, np.float16, (8,))
    binding = add.bind({"x": part}, {"y": part})
    for _ in range(3):
        add.run(binding)
    contents = memory.read().view(np.float16)
    assert (contents[8:16] == 3).all()
    assert (contents[:8] == 0).all()
    assert (contents[16:] == 0).all()


def test_memory_on_the_device_is_zero_and_keeps_what_is_written() -> None:
    memory = DeviceMemory("cuda", 24)
    assert not memory.read().any()
    memory.write(np.arange(24, dtype=np.uint8))
    np.testing.assert_array_equal(memory.read(), np.arange(24))
    part = memory.view(8, np.uint8, (4,))
    put(part, 77)
    np.testing.assert_array_equal(get(part), [77] * 4)
    assert memory.read()[12] == 12
