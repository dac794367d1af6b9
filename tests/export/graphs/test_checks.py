"""Each fault that the graph checks know is found in a graph that has it."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from export.graphs.checks import GraphError, check_decoder_step, check_encoder
from export.graphs.weights_file import INLINE_BYTES
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import ModelShape


def with_operator(graph: Any, name: str, domain: str) -> None:
    graph.node.append(onnx.helper.make_node(name, ["a"], ["b"], domain=domain))


def without_attention(graph: Any) -> None:
    next(node for node in graph.node if node.op_type == "GroupQueryAttention").op_type = "MultiHeadAttention"


def store_inside(graph: Any) -> None:
    tensor = onnx.helper.make_tensor("inside", onnx.TensorProto.UINT8, [INLINE_BYTES], bytes(INLINE_BYTES), raw=True)
    graph.initializer.append(tensor)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda graph: setattr(graph.input[0], "name", "tokens"), "inputs are"),
        (
            lambda graph: setattr(graph.input[1].type.tensor_type, "elem_type", onnx.TensorProto.INT64),
            "lengths is INT64, expected INT32",
        ),
        (
            lambda graph: setattr(graph.output[2].type.tensor_type.shape.dim[1], "dim_value", 1),
            r"candidate_ids has shape \['B', 1\], expected \['B', 'K'\]",
        ),
        (lambda graph: with_operator(graph, "BiasGelu", "com.microsoft"), "microsoft::BiasGelu, which is not allowed"),
        (without_attention, r"1 GroupQueryAttention node, expected one per decoder layer \(2\)"),
        (store_inside, r"decoder_step.onnx: inside is in the graph instead of weights.bin\."),
    ],
)
def test_fault_is_named(
    exported: tuple[Path, Manifest],
    tmp_path: Path,
    spoil: Callable[[onnx.GraphProto], None],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory, manifest = exported
    model = onnx.load(directory / manifest.graphs.decoder_step, load_external_data=False)
    spoil(model.graph)
    path = tmp_path / manifest.graphs.decoder_step
    path.write_bytes(model.SerializeToString())
    # onnx's own checker would reject some of these first, with its own messages.
    monkeypatch.setattr(onnx.checker, "check_model", lambda path: None)
    with pytest.raises(GraphError, match=message):
        check_decoder_step(path, manifest.model)


def test_right_graphs_pass_and_must_fit_the_model(exported: tuple[Path, Manifest]) -> None:
    directory, manifest = exported
    check_encoder(directory / manifest.graphs.encoder, manifest.model)
    check_decoder_step(directory / manifest.graphs.decoder_step, manifest.model)
    other = ModelShape(num_decoder_layers=2, num_heads=2, head_size=16, vocabulary_size=150)
    with pytest.raises(GraphError, match=r"cross_key.0 has shape"):
        check_encoder(directory / manifest.graphs.encoder, other)
    listed = dataclasses.replace(manifest.model, shortlist_size=8)
    with pytest.raises(GraphError, match=r"outputs are .* expected .*'listed'"):
        check_encoder(directory / manifest.graphs.encoder, listed)
    with pytest.raises(GraphError, match=r"inputs are .* expected .*'listed'"):
        check_decoder_step(directory / manifest.graphs.decoder_step, listed)


def test_no_onnx_at_all(tmp_path: Path, exported: tuple[Path, Manifest]) -> None:
    (tmp_path / "encoder.onnx").write_bytes(b"\x08\x0a")
    with pytest.raises(GraphError, match="not a valid ONNX model"):
        check_encoder(tmp_path / "encoder.onnx", exported[1].model)


def test_tied_weights_are_stored_once(exported: tuple[Path, Manifest]) -> None:
    """In the step graph, the table of the tokens is also the projection."""
    directory, manifest = exported
    graph = onnx.load(directory / manifest.graphs.decoder_step).graph
    tables = [tensor.name for tensor in graph.initializer if tensor.dims[:1] == [manifest.model.vocabulary_size]]
    matrices = [name for name in tables if len(next(t for t in graph.initializer if t.name == name).dims) == 2]
    assert len(matrices) == 1
    readers = {node.op_type for node in graph.node if matrices[0] in node.input}
    assert readers == {"Gather", "Gemm"}
