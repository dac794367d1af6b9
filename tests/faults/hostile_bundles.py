"""Bundles made to harm, as data: their checksums are right, so that only the checks and limits of loading stop them."""

import functools
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from service.bundle import fused_io
from tests.faults.damaged_bundles import Damage, Inflict, resealed, set_fields

MICROSOFT = "com.microsoft"
FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
Change = Callable[[Any], object]


def never_opened() -> Iterator[Damage]:
    """Yield changes to the tiny bundle for which no graph may be opened."""
    step, value = "decoder_step.onnx", helper.make_tensor_value_info
    # Division of the least integer by -1 ends the process.
    memory, loops = ("Div", "ConstantOfShape", "Tile", "Pad"), ("Loop", "Scan", "RandomNormal", "SequenceMap")
    for operator in (*memory, *loops, "StringSplit"):
        node = helper.make_node(operator, ["logits", "token_ids"], ["more"])
        yield Damage(operator, _graph(step, _add(node)), f"operator '{operator}'")
    for domain, operator in (("ai.onnx.ml", "TreeEnsemble"), (MICROSOFT, "FusedGemm"), ("dragoman", "Decode")):
        node = helper.make_node(operator, ["logits"], ["more"], domain=domain)
        yield Damage(f"{domain} {operator}", _graph(step, _add(node)), f"operator '{domain}::{operator}'")
    yield Damage("Einsum", _graph("encoder.onnx", _fold(_einsum)), "operator 'Einsum'")
    inside = helper.make_graph([helper.make_node("Loop", [], ["x"])], "inside", [], [value("x", FLOAT, [1])])
    branch = helper.make_node("If", ["logits"], ["more"], then_branch=inside, else_branch=inside)
    yield Damage("a loop in a branch", _graph(step, _add(branch)), "operator 'Loop'")


def never_opened_fused() -> Iterator[Damage]:
    """Yield likewise changes to a bundle with fused graphs."""
    file, between = "decoder.onnx", "each once and in order, those of its node"
    history = fused_io.DECODE_INPUTS.index("history")
    yield Damage("history in the memory of control", _graph(file, _aliases), "2 nodes in 1 graph;")
    yield Damage("history is control", _graph(file, _reads(history, "control")), between)
    yield Damage("no input of the graph", _graph(file, lambda model: model.graph.input.pop(history)), between)
    yield Damage("weights as a cache", _graph(file, _weights_as_cache), between)
    yield Damage("a cache as weights", _graph(file, _reads(len(fused_io.DECODE_INPUTS), "self_cache")), "'self_cache'")
    yield Damage("an input that is a constant too", _graph(file, _constant_input), "'history', which its node needs")
    yield Damage(
        "two nodes", _graph(file, lambda model: model.graph.node.append(model.graph.node[0])), "2 nodes in 1 graph;"
    )
    other = _graph(file, lambda model: setattr(model.graph.node[0], "op_type", "Encode"))
    yield Damage("the other operator", other, "operator 'dragoman::Encode'")
    twice = resealed(lambda bundle: (bundle / file).write_bytes(2 * (bundle / file).read_bytes()))
    yield Damage("in two parts", twice, "1 node in 2 graphs")
    relu = helper.make_node("Relu", ["self_cache"], ["more"])
    yield Damage("a node beside", _graph(file, _add(relu)), "operator 'Relu'")


def opened() -> Iterator[Damage]:
    """Yield changes to the tiny bundle that only opening and testing it shows."""
    step, encoder, alignment = "decoder_step.onnx", "encoder.onnx", "alignment.onnx"
    yield Damage("attention of no width", _graph(encoder, _no_width), "killed by SIGFPE opening")
    yield Damage("constants that fill the memory", _graph(encoder, _fold(_filling)), "MiB of memory opening")
    yield Damage("runs that take hours", _graph(encoder, _fold(_slow)), "s of CPU time")
    yield Damage("a constant that doubles forty times", _graph(encoder, _fold(_doubling)), "memory")
    for name, nodes in {
        "an endless range": [
            helper.make_node("Range", ["none", "huge", "one"], ["ids"]),
            helper.make_node("Cast", ["ids"], ["folded"], to=FLOAT),
        ],
        "a huge constant": [helper.make_node("Expand", ["unit", "huge_row"], ["folded"])],
        "a constant beyond all": [helper.make_node("Expand", ["unit", "square"], ["folded"])],
        "a shape that wraps around": [helper.make_node("Reshape", ["unit", "wrapping"], ["folded"])],
        "a place out of range": [helper.make_node("Gather", ["unit", "huge"], ["folded"])],
        "a cycle": [
            helper.make_node("Add", ["folded", "unit"], ["x"]),
            helper.make_node("Add", ["x", "x"], ["folded"]),
        ],
        "no inputs": [helper.make_node("Add", [], ["folded"])],
    }.items():
        yield Damage(name, _graph(encoder, _fold(functools.partial(_these, nodes))))
    yield Damage("many nodes", _graph(encoder, _fold(_many)), may_load=True)
    for name, dims in {"huge": [10**7, 10**7], "negative": [-1, 8], "wrapping": [2**33, 2**33]}.items():
        yield Damage(f"weights of {name} size", _graph(encoder, _sized(dims)), "can't be opened")
    for file, node in ((encoder, "MultiHeadAttention"), (step, "GroupQueryAttention")):
        for heads in (0, -2, 7, 2**62):
            yield Damage(f"{node} of {heads} heads", _graph(file, _attribute(node, "num_heads", heads)))
    for number in (10**6, -(10**6)):
        shift = np.array([number], np.int32)
        of_rows, of_sources = (
            _input_of(*which, shift) for which in (("GroupQueryAttention", 5), ("MultiHeadAttention", 4))
        )
        yield Damage(f"lengths that are {number} more", _graph(step, of_rows), "self-test")
        yield Damage(f"sources that are {number} longer", _graph(step, of_sources))
    yield Damage("no length", _graph(step, _input_of("GroupQueryAttention", 6, np.array([-9], np.int32))))
    huge, nan = np.array([10**9], np.int64), np.array([np.nan], np.float32)
    yield Damage("tokens beyond the vocabulary", _graph(step, _output("next_ids", "Add", huge)), "self-test")
    yield Damage("negative tokens", _graph(step, _output("next_ids", "Sub", huge)), "self-test")
    yield Damage("candidates beyond", _graph(step, _output("candidate_ids", "Add", huge)), "self-test")
    yield Damage("no numbers", _graph(encoder, _output("cross_key.0", "Mul", nan)), "self-test")
    yield Damage("no probabilities", _graph(alignment, _output("attention", "Mul", nan)), "alignments")
    for file, output in (
        (step, "present_key.1"),
        (encoder, "cross_value.1"),
        (step, "logits"),
        (alignment, "attention"),
    ):
        twice = _output(output, "Concat", None, axis=0)
        yield Damage(f"{output} of twice the rows", _graph(file, twice), "align" if file == alignment else "self-test")
    renamed = _graph(encoder, lambda model: setattr(model.graph, "name", "x" * 2**20))
    yield Damage("a name of a megabyte", renamed, may_load=True)
    yield Damage("wider heads", set_fields({"model.head_size": 4096}))
    yield Damage("shortlists that no graph has", set_fields({"model.shortlist_size": 8}), "missing: ['listed']")
    longest = set_fields(dict.fromkeys(("limits.max_output_tokens", "limits.max_source_tokens"), 10**6))
    yield Damage("rows of a million tokens", longest, may_load=True)
    yield Damage("a long sentence", set_fields({"golden.0.text": "Hello " * 100_000}), "self-test")


def opened_fused() -> Iterator[Damage]:
    """Yield likewise changes to a bundle with fused graphs."""
    for file in ("encoder.fused.onnx", "decoder.fused.onnx"):
        for name, value in (("num_layers", 1000), ("num_heads", 2**40), ("head_size", 0), ("epsilon", float("nan"))):
            yield Damage(f"{file} {name} {value:g}", _graph(file, _attribute("", name, value)), "can't be opened")
        yield Damage(f"{file} no constants", _graph(file, _no_constants), "can't be opened")
        yield Damage(f"{file} weights that overlap", _graph(file, _overlapping), "can't be opened")
    suppressed = np.array([2**40], np.int64)
    change = _graph("decoder.fused.onnx", _last_constant(suppressed))
    yield Damage("suppressed beyond", change, "not in the vocabulary")


def _graph(file: str, change: Change) -> Inflict:
    def inflict(bundle: Path) -> None:
        model = onnx.load(bundle / file, load_external_data=False)
        change(model)
        (bundle / file).write_bytes(model.SerializeToString())

    return resealed(inflict)


def _add(node: onnx.NodeProto) -> Change:
    return lambda model: model.graph.node.append(node)


def _aliases(model: Any) -> None:
    model.graph.initializer.append(helper.make_tensor("two_by_eight", INT64, [2], [2, 8]))
    model.graph.node.insert(0, helper.make_node("Reshape", ["control", "two_by_eight"], ["alias"]))
    model.graph.node[1].input[fused_io.DECODE_INPUTS.index("history")] = "alias"


def _reads(place: int, name: str) -> Change:
    def change(model: Any) -> None:
        model.graph.node[0].input[place] = name

    return change


def _weights_as_cache(model: Any) -> None:
    node = model.graph.node[0]
    node.input[fused_io.DECODE_INPUTS.index("self_cache")] = node.input[len(fused_io.DECODE_INPUTS)]


def _constant_input(model: Any) -> None:
    model.graph.initializer.append(helper.make_tensor("history", onnx.TensorProto.INT32, [1, 1], [0]))


def _fold(nodes_of: Callable[[Any], list[onnx.NodeProto]]) -> Change:
    """Add the largest of what some nodes compute from constants, times 0, to the largest weights; name it `folded`."""

    def change(model: Any) -> None:
        graph = model.graph
        weights = max(graph.initializer, key=lambda each: len(each.raw_data))
        name, weights.name = weights.name, "before"
        arrays = {
            "none": np.array(0),
            "one": np.array(1),
            "huge": np.array(2**62),
            "huge_row": np.array([2**40]),
            "square": np.array([2**32, 2**32]),
            "wrapping": np.array([2**62 + 1, 4]),
            "unit": np.ones(1, np.float32),
            "zero": np.zeros((), np.float32),
        }
        graph.initializer.extend(numpy_helper.from_array(array, key) for key, array in arrays.items())
        nodes = [
            *nodes_of(graph),
            helper.make_node("ReduceMax", ["folded"], ["largest"], keepdims=0),
            helper.make_node("Mul", ["largest", "zero"], ["nothing"]),
            helper.make_node("Add", ["before", "nothing"], [name]),
        ]
        for place, node in enumerate(nodes):
            graph.node.insert(place, node)

    return change


def _these(nodes: list[onnx.NodeProto], _: Any) -> list[onnx.NodeProto]:
    return nodes


def _einsum(graph: Any) -> list[onnx.NodeProto]:
    """End the process: there is one dimension, which is known at the run only, for four labels."""
    graph.initializer.extend(
        helper.make_tensor(name, INT64, [1], [value]) for name, value in (("first", 0), ("dim", 1))
    )
    return [
        helper.make_node("ReduceMax", ["source_lengths"], ["longest"], keepdims=1),
        helper.make_node("Cast", ["longest"], ["end"], to=INT64),
        helper.make_node("Slice", ["dim", "first", "end"], ["dims"]),
        helper.make_node("Reshape", ["unit", "dims"], ["one_dimension"]),
        helper.make_node("Einsum", ["one_dimension", "one_dimension"], ["folded"], equation="abcd,bcd->a"),
    ]


def _filling(graph: Any) -> list[onnx.NodeProto]:
    graph.initializer.append(numpy_helper.from_array(np.array([8192, 8192]), "side"))  # 256 MiB each
    parts = [helper.make_node("Expand", ["unit", "side"], [f"part{number}"]) for number in range(8)]
    return [*parts, helper.make_node("Concat", [f"part{number}" for number in range(8)], ["folded"], axis=0)]


def _slow(graph: Any) -> list[onnx.NodeProto]:
    """Products of what a run is given: their memory is used again."""
    graph.initializer.append(numpy_helper.from_array(np.array([2000, 2000]), "side"))
    first = [
        helper.make_node("ReduceMax", ["source_lengths"], ["longest"], keepdims=0),
        helper.make_node("Cast", ["longest"], ["number"], to=FLOAT),
        helper.make_node("Expand", ["number", "side"], ["p0"]),
    ]
    products = [helper.make_node("MatMul", [f"p{number}", "p0"], [f"p{number + 1}"]) for number in range(5000)]
    return [*first, *products, helper.make_node("ReduceMax", ["p5000"], ["folded"])]


def _doubling(_: Any) -> list[onnx.NodeProto]:
    names = ["unit", *(f"twice{number}" for number in range(39)), "folded"]
    return [helper.make_node("Concat", [a, a], [b], axis=0) for a, b in itertools.pairwise(names)]


def _many(_: Any) -> list[onnx.NodeProto]:
    names = ["unit", *(f"sum{number}" for number in range(3000)), "folded"]
    return [helper.make_node("Add", [a, "zero"], [b]) for a, b in itertools.pairwise(names)]


def _sized(dims: list[int]) -> Change:
    def change(model: Any) -> None:
        max(model.graph.initializer, key=lambda each: len(each.raw_data)).dims[:] = dims

    return change


def _nodes(model: Any, operator: str) -> list[Any]:
    return [node for node in model.graph.node if operator in ("", node.op_type)]


def _attribute(operator: str, name: str, value: float) -> Change:
    def change(model: Any) -> None:
        node = _nodes(model, operator)[0]
        kept = [each for each in node.attribute if each.name != name]
        node.ClearField("attribute")
        node.attribute.extend([*kept, helper.make_attribute(name, value)])

    return change


def _no_width(model: Any) -> None:
    """Leave nothing of what attention reads, which is known when it runs."""
    graph, node = model.graph, _nodes(model, "MultiHeadAttention")[0]
    for name, number in (("begin", 0), ("of_width", 2)):
        graph.initializer.append(helper.make_tensor(name, INT64, [1], [number]))
    parts = list(node.input[:3])
    nodes = [
        helper.make_node("Sub", ["source_lengths", "source_lengths"], ["zeros"]),
        helper.make_node("ReduceMax", ["zeros"], ["a_zero"], keepdims=0),
        helper.make_node("Cast", ["a_zero"], ["int64_zero"], to=INT64),
        helper.make_node("Reshape", ["int64_zero", "one_number"], ["end"]),
        *(helper.make_node("Slice", [part, "begin", "end", "of_width"], [f"no_{part}"]) for part in parts),
    ]
    graph.initializer.append(helper.make_tensor("one_number", INT64, [1], [1]))
    for number, part in enumerate(parts):
        node.input[number] = f"no_{part}"
    place = list(graph.node).index(node)
    for number, each in enumerate(nodes):
        graph.node.insert(place + number, each)


def _input_of(operator: str, number: int, array: "np.ndarray[Any, Any]") -> Change:
    """Add an array to an input of a node."""

    def change(model: Any) -> None:
        graph, node = model.graph, _nodes(model, operator)[0]
        before, place = node.input[number], list(graph.node).index(node)
        node.input[number] = "changed"
        graph.initializer.append(numpy_helper.from_array(array, "by"))
        graph.node.insert(place, helper.make_node("Add", [before, "by"], ["changed"]))

    return change


def _output(name: str, by: str, array: "np.ndarray[Any, Any] | None", **attributes: Any) -> Change:
    """Compute an output of a graph from what it was and an array, or itself."""

    def change(model: Any) -> None:
        graph = model.graph
        for node in graph.node:
            for inputs in (node.input, node.output):
                inputs[:] = ["before" if each == name else each for each in inputs]
        if array is not None:
            graph.initializer.append(numpy_helper.from_array(array, "by"))
        other = "before" if array is None else "by"
        graph.node.append(helper.make_node(by, ["before", other], [name], **attributes))

    return change


def _no_constants(model: Any) -> None:
    del model.graph.node[0].input[len(model.graph.input) :]


def _overlapping(model: Any) -> None:
    """Let all large constants begin where their file does, one byte before its end."""
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "length":
                entry.value = str(int(entry.value) + 1)


def _last_constant(array: "np.ndarray[Any, Any]") -> Change:
    def change(model: Any) -> None:
        model.graph.initializer.append(numpy_helper.from_array(array, "other"))
        model.graph.node[0].input[-1] = "other"

    return change
