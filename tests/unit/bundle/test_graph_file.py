"""A graph's references are found wherever they hide, and damaged files do no harm."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from service.bundle import graph_file
from service.bundle.errors import BundleError
from service.bundle.graph_file import DECODE, ENCODE, FUSED_DOMAIN, OPERATORS, check_graph
from tests.servers import REPOSITORY

FLOAT = onnx.TensorProto.FLOAT
Spoil = Callable[[Any], object]


@pytest.fixture
def model(tiny_bundle: Path) -> Any:
    return onnx.load(tiny_bundle / "encoder.onnx")


def checked(model: Any, folder: Path, *files: str) -> None:
    path = folder / "graph.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    check_graph(path, files)


def outside(location: str = "weights", name: str = "w") -> Any:
    tensor = onnx.TensorProto(name=name, data_type=FLOAT, dims=[1], data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="offset", value="0")
    tensor.external_data.add(key="location", value=location)
    return tensor


def node(operator: str = "Add", domain: str = "", **attributes: Any) -> Any:
    return onnx.helper.make_node(operator, ["a"], ["b"], domain=domain, **attributes)


def branch(*nodes: Any, weights: Any = ()) -> Any:
    """Return a node with these nodes inside, three levels deep."""
    graph = onnx.helper.make_graph(list(nodes), "g", [], [], initializer=list(weights))
    for _ in range(3):
        graph = onnx.helper.make_graph([node("If", then_branch=graph, else_branch=graph)], "g", [], [])
    return node("If", then_branch=graph)


def sparse(model: Any) -> None:
    model.graph.sparse_initializer.add().values.CopyFrom(outside())


def of_training(model: Any) -> None:
    model.training_info.add().algorithm.node.append(node("Loop"))


def of_function(model: Any) -> None:
    model.functions.add(name="f", domain="own").node.append(node())


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda model: model.graph.node.append(node("Loop")), "operator 'Loop'"),
        (lambda model: model.graph.node.append(node("Scan")), "operator 'Scan'"),
        (lambda model: model.graph.node.append(node("SequenceMap")), "operator 'SequenceMap'"),
        (lambda model: model.graph.node.append(node("Loop", "ai.onnx")), "operator 'ai.onnx::Loop'"),
        (lambda model: model.graph.node.append(node("EPContext", "com.microsoft")), "'com.microsoft::EPContext'"),
        (lambda model: model.graph.node.append(node("Add", "dragoman")), "'dragoman::Add'"),
        (lambda model: model.graph.node.append(node("Encode")), "operator 'Encode'"),
        (lambda model: model.graph.node.append(node("Encode", "dragoman")), "operator 'dragoman::Encode'"),
        (lambda model: model.graph.node.append(node("Einsum", equation="abcd,bcd->a")), "operator 'Einsum'"),
        (lambda model: model.graph.node.append(node("Add", "own")), "operator 'own::Add'"),
        (lambda model: model.graph.node.append(onnx.NodeProto()), "operator ''"),
        (lambda model: model.graph.node.append(branch(node("Loop"))), "operator 'Loop'"),
        (of_training, "operator 'Loop'"),
        (of_function, "it defines functions"),
        (lambda model: model.graph.initializer.append(outside()), "weights in 'weights'"),
        (lambda model: model.graph.node.append(node("Constant", value=outside())), "weights in 'weights'"),
        (lambda model: model.graph.node.append(node("Constant", values=[outside()])), "weights in 'weights'"),
        (lambda model: model.graph.node.append(branch(weights=[outside()])), "weights in 'weights'"),
        (sparse, "weights in 'weights'"),
    ],
)
def test_what_may_not_be_there_is_found(model: Any, tmp_path: Path, spoil: Spoil, message: str) -> None:
    checked(model, tmp_path)
    spoil(model)
    with pytest.raises(BundleError) as raised:
        checked(model, tmp_path, "other")
    assert str(raised.value).startswith(f"{tmp_path}/graph.onnx is not allowed in a bundle: ")
    assert message in str(raised.value)


def test_weights_in_a_file_with_a_checksum(model: Any, tmp_path: Path) -> None:
    model.graph.initializer.append(outside())
    checked(model, tmp_path, "weights")
    for place in ("*/_ORT_MEM_ADDR_/*", "a/weights", "./weights", "/weights", ""):
        model.graph.initializer[-1].CopyFrom(outside(place))
        with pytest.raises(BundleError, match="which is not a file of the bundle"):
            checked(model, tmp_path, "weights", place)


@pytest.mark.parametrize("path", sorted((REPOSITORY / "models").glob("*/*/*.onnx")), ids=str)
def test_what_is_shipped_is_taken(path: Path) -> None:
    operators = {"encoder.onnx": ENCODE, "decoder.onnx": DECODE}
    check_graph(path, ("weights.bin",), operators[path.name])
    for other in {"", ENCODE, DECODE} - {operators[path.name]}:
        with pytest.raises(BundleError, match=r"is not allowed in a bundle: .*operator '"):
            check_graph(path, ("weights.bin",), other)


def fused_model() -> Any:
    """Return the outlines of a fused graph: one node with two inputs, two constants, one of them twice, one output."""
    value, tensor = onnx.helper.make_tensor_value_info, onnx.helper.make_tensor
    decode = onnx.helper.make_node(DECODE, ["state", "cache", "w", "v", "w"], ["steps"], domain=FUSED_DOMAIN)
    inputs = [value("state", FLOAT, [4]), value("cache", FLOAT, [4])]
    constants = [tensor(name, FLOAT, [1], [1.0]) for name in ("w", "v")]
    return onnx.helper.make_model(
        onnx.helper.make_graph([decode], "fused", inputs, [value("steps", FLOAT, [1])], constants)
    )


def reshapes(model: Any) -> None:
    """Make one input of the node the memory of another."""
    model.graph.node.insert(0, onnx.helper.make_node("Reshape", ["state", "w"], ["alias"]))
    model.graph.node[1].input[1] = "alias"


def reads(place: int, name: str) -> Spoil:
    def spoil(model: Any) -> None:
        model.graph.node[0].input[place] = name

    return spoil


def with_a_graph_inside(model: Any) -> None:
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("body", onnx.helper.make_graph([], "g", [], [])))


BETWEEN, NO_CONSTANT = "inputs or outputs that are not, each once and in order", "which its node needs as a constant"
BESIDE = "graphs, functions or sparse constants beside its node"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (reshapes, "2 nodes in 1 graph; allowed: one node in one graph; operator 'Reshape'"),
        (lambda model: model.graph.node.append(model.graph.node[0]), "2 nodes in 1 graph"),
        (lambda model: model.graph.ClearField("node"), "0 nodes in 1 graph"),
        (lambda model: model.ClearField("graph"), "0 nodes in 0 graphs"),
        (reads(1, "state"), BETWEEN),
        (reads(1, "w"), BETWEEN),
        (reads(0, "cache"), BETWEEN),
        (reads(2, "state"), "'state', " + NO_CONSTANT),
        (reads(3, ""), "'', " + NO_CONSTANT),
        (reads(3, "nothing"), "'nothing', " + NO_CONSTANT),
        (lambda model: model.graph.input.pop(), "'cache', " + NO_CONSTANT),
        (lambda model: model.graph.input.append(model.graph.output[0]), BETWEEN),
        (lambda model: model.graph.output.append(model.graph.input[0]), BETWEEN),
        (lambda model: model.graph.output[0].CopyFrom(model.graph.input[0]), BETWEEN),
        (lambda model: model.graph.node[0].output.append("more"), BETWEEN),
        (lambda model: setattr(model.graph.initializer[0], "name", "cache"), "'w', " + NO_CONSTANT),
        (lambda model: model.graph.initializer.add(name="cache"), "'cache', " + NO_CONSTANT),
        (with_a_graph_inside, BESIDE),
        (sparse, BESIDE),
        (lambda model: model.functions.add(name="f", domain="own"), BESIDE),
        (lambda model: model.training_info.add(), BESIDE),
    ],
)
def test_a_fused_graph_is_one_node(tmp_path: Path, spoil: Spoil, message: str) -> None:
    model, path = fused_model(), tmp_path / "graph.onnx"
    path.write_bytes(model.SerializeToString())
    check_graph(path, ("weights",), "Decode")
    spoil(model)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(BundleError) as raised:
        check_graph(path, ("weights",), "Decode")
    assert f"graph.onnx is not allowed in a bundle: {message}" in str(raised.value)


def test_a_graph_in_two_parts_is_none(tmp_path: Path) -> None:
    """Protobuf merges a message that occurs twice: each of these has one node, and the whole has two."""
    data, path = fused_model().SerializeToString(), tmp_path / "graph.onnx"
    path.write_bytes(data + data)
    with pytest.raises(BundleError, match="1 node in 2 graphs"):
        check_graph(path, (), "Decode")


def leads_to(message: Any, seen: frozenset[str] = frozenset()) -> bool:
    """Return whether the message may contain operators, functions or weights in other files."""
    if message.name in ("NodeProto", "FunctionProto") or (message.name == "TensorProto"):
        return True
    inside = seen | {message.name}
    return any(
        leads_to(field.message_type, inside)
        for field in message.fields
        if field.message_type and field.message_type.name not in inside
    )


def test_all_of_onnx_is_looked_into_that_may_hold_something() -> None:
    messages = onnx.ModelProto.DESCRIPTOR.file.message_types_by_name
    expected: dict[str, dict[int, str]] = {}
    for name, message in messages.items():
        fields = [(field.number, field.message_type) for field in message.fields]
        held = {number: kind.name for number, kind in fields if kind and leads_to(kind)}
        # Functions are rejected whatever they contain. Types may name tensors, but contain none.
        if held and name != "FunctionProto":
            expected[name] = held
    expected["TensorProto"] = {13: "StringStringEntryProto"}
    assert expected == graph_file._HOLDS
    node, entry = messages["NodeProto"].fields_by_name, messages["StringStringEntryProto"].fields_by_name
    assert (node["op_type"].number, node["domain"].number) == (graph_file._OP_TYPE, graph_file._DOMAIN)
    assert (entry["key"].number, entry["value"].number) == (graph_file._KEY, graph_file._VALUE)


def test_operators_are_onnx_s() -> None:
    known = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    assert OPERATORS[""] - known == set()
    fields = {
        "ModelProto": {"graph": graph_file._GRAPH},
        "GraphProto": {
            "node": graph_file._NODE,
            "initializer": graph_file._CONSTANT,
            "input": graph_file._GRAPH_INPUT,
            "output": graph_file._GRAPH_OUTPUT,
        },
        "NodeProto": {"input": graph_file._INPUT, "output": graph_file._OUTPUT, "attribute": graph_file._ATTRIBUTE},
        "ValueInfoProto": {"name": graph_file._VALUE_NAME},
        "TensorProto": {"name": graph_file._TENSOR_NAME},
    }
    messages = onnx.ModelProto.DESCRIPTOR.file.message_types_by_name
    for message, numbers in fields.items():
        assert {name: messages[message].fields_by_name[name].number for name in numbers} == numbers


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x3a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "there is no number"),
        (b"\x3a\x05\x00", "it is truncated"),
        (b"\x00\x00", "there is no field"),
        (b"\x3b\x3c", "there is no field"),
        (b"\x39", "it is truncated"),
        (b"\x08\x00" * 1001, "more than 1000 fields"),
    ],
)
def test_what_is_no_graph(tmp_path: Path, data: bytes, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_file, "_MAX_FIELDS", 1000)
    with pytest.raises(BundleError, match=message):
        checked(data, tmp_path)


def test_graphs_inside_of_graphs(tmp_path: Path) -> None:
    data = b""
    for _ in range(60):  # each a graph with a node with an attribute with a graph
        for tag in (0x32, 0x2A, 0x0A):
            length = len(data)
            sized = bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14])
            data = bytes([tag]) + sized + data
    with pytest.raises(BundleError, match="nested more than 100 deep"):
        checked(b"\x3a" + bytes([len(data) & 0x7F | 0x80, len(data) >> 7]) + data, tmp_path)
