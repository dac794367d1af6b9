"""Where ONNX Runtime places nodes: those without a CUDA kernel silently run on the CPU."""

from pathlib import Path

import onnxruntime as ort
import pytest

import service.engine.runtime
from tests.unit.engine.runtime.half_precision import HALF, SINGLE
from tests.unit.engine.runtime.tiny_runners import write_graphs

CUDA = {"CUDAExecutionProvider"}
GRAPHS = sorted((Path(service.engine.runtime.__file__).parent / "graphs").glob("*.onnx"))


def providers(path: Path) -> dict[str, set[str]]:
    """Return operator -> the providers that run it."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = ort.InferenceSession(path, options, providers=["CUDAExecutionProvider"])
    found: dict[str, set[str]] = {}
    for subgraph in session.get_provider_graph_assignment_info():
        for node in subgraph.get_nodes():
            found.setdefault(node.op_type, set()).add(subgraph.ep_name)
    return found


@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: path.name)
def test_memory_is_moved_on_the_device(path: Path) -> None:
    assert all(where == CUDA for where in providers(path).values()), providers(path)


@pytest.mark.parametrize("name", ["encoder.onnx", "decoder_step.onnx"])
def test_float16_graphs_compute_on_the_device(name: str, tmp_path: Path) -> None:
    found = providers(write_graphs(tmp_path / "half", HALF) / name)
    for operator in {"MatMul", "MultiHeadAttention", "GroupQueryAttention", "TopK", "ArgMax"} & found.keys():
        assert found[operator] == CUDA, operator
    assert found["MultiHeadAttention"] == CUDA


def test_float32_graphs_would_send_the_caches_to_the_cpu(tmp_path: Path) -> None:
    """This is why `engine.precision` rejects them: if this fails, ONNX Runtime has got a kernel."""
    found = providers(write_graphs(tmp_path / "single", SINGLE) / "decoder_step.onnx")
    assert found["GroupQueryAttention"] == {"CPUExecutionProvider"}
