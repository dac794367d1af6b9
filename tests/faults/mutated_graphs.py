"""Graphs with random changes to what they consist of, and to their bytes."""

import random
from collections.abc import Callable
from typing import Any

import onnx
from onnx import helper

from service.bundle.graph_file import OPERATORS
from tests.faults.damaged_bundles import mutated

_EDGES = (0, 1, -1, 2, 3, 7, 16, 64, 127, -128, 255, 2**15, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63))
_FLOATS = (0.0, -1.0, 1e-40, 1e30, float("inf"), float("nan"))
_TYPES = (1, 2, 3, 6, 7, 8, 9, 10, 11, 16, 22)  # of TensorProto


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Return a graph with one to four changes, in one case of five to its bytes."""
    if rng.random() < 0.2:
        return mutated(data, rng.randrange(2**32))
    model = onnx.load_model_from_string(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(_CHANGES)(model, rng)
    return bytes(model.SerializeToString())


def _number(rng: random.Random) -> int:
    return rng.choice((rng.choice(_EDGES), rng.randrange(-10, 100)))


def _name(model: Any, rng: random.Random) -> str:
    """Return the name of some value of the graph."""
    graph = model.graph
    names = [each.name for part in (graph.input, graph.output, graph.initializer) for each in part]
    names += [name for node in graph.node for name in node.output]
    return str(rng.choice([*names, "", "nothing"]))


def _node(model: Any, rng: random.Random) -> Any:
    if not model.graph.node:
        model.graph.node.add(op_type="Add")
    return rng.choice(model.graph.node)


def _operator(model: Any, rng: random.Random) -> None:
    domain, name = rng.choice([(domain, name) for domain, names in sorted(OPERATORS.items()) for name in sorted(names)])
    node = _node(model, rng)
    node.domain, node.op_type = domain, name


def _inputs(model: Any, rng: random.Random) -> None:
    node, kind = _node(model, rng), rng.randrange(4)
    if kind == 0 or not node.input:
        node.input.append(_name(model, rng))
    elif kind == 1:
        del node.input[rng.randrange(len(node.input))]
    elif kind == 2:
        names = list(node.input)
        rng.shuffle(names)
        node.input[:] = names
    else:
        node.input[rng.randrange(len(node.input))] = _name(model, rng)


def _outputs(model: Any, rng: random.Random) -> None:
    node = _node(model, rng)
    if node.output and rng.random() < 0.7:
        node.output[rng.randrange(len(node.output))] = _name(model, rng)
    else:
        node.output.append(_name(model, rng))


def _attributes(model: Any, rng: random.Random) -> None:
    node = _node(model, rng)
    values: list[Any] = [
        _number(rng),
        rng.choice(_FLOATS),
        [_number(rng) for _ in range(rng.randrange(5))],
        "relu",
        "?",
    ]
    names = [each.name for each in node.attribute] or ["axis"]
    name, kept = rng.choice([*names, "axis", "perm", "to", "num_heads", "keepdims"]), list(node.attribute)
    node.ClearField("attribute")
    node.attribute.extend(each for each in kept if each.name != name)
    value = rng.choice([*values, None])
    if value is not None and value != []:
        node.attribute.append(helper.make_attribute(name, value))


def _constants(model: Any, rng: random.Random) -> None:
    graph = model.graph
    if not graph.initializer:
        graph.initializer.append(helper.make_tensor("more", onnx.TensorProto.INT64, [1], [rng.choice(_EDGES)]))
        return
    tensor, kind = rng.choice(graph.initializer), rng.randrange(7)
    if kind == 0 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = _number(rng)
    elif kind == 1:
        tensor.dims.append(rng.choice((1, 1, _number(rng))))
    elif kind == 2:
        tensor.data_type = rng.choice(_TYPES)
    elif kind == 3:
        tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data) + 1)]
    elif kind == 4:
        tensor.name = _name(model, rng)
    elif kind == 5:
        graph.initializer.remove(tensor)
    elif tensor.raw_data:
        size = 4 if tensor.data_type in (1, 6) else 8 if tensor.data_type == 7 else 1
        at = rng.randrange(max(len(tensor.raw_data) // size, 1)) * size
        new = (_number(rng) % 2 ** (8 * size)).to_bytes(size, "little")
        tensor.raw_data = tensor.raw_data[:at] + new + tensor.raw_data[at + size :]


def _nodes(model: Any, rng: random.Random) -> None:
    nodes, kind = list(model.graph.node), rng.randrange(3)
    node = rng.choice(nodes) if nodes else _node(model, rng)
    if kind == 0:
        model.graph.node.remove(node)
    elif kind == 1:
        model.graph.node.append(node)
    else:
        rng.shuffle(nodes)
        model.graph.ClearField("node")
        model.graph.node.extend(nodes)


def _values(model: Any, rng: random.Random) -> None:
    values, kind = rng.choice((model.graph.input, model.graph.output)), rng.randrange(5)
    if not values:
        return
    value = rng.choice(values)
    tensor = value.type.tensor_type
    if kind == 0:
        value.name = _name(model, rng)
    elif kind == 1:
        tensor.elem_type = rng.choice(_TYPES)
    elif kind == 2:
        tensor.ClearField("shape")
    elif kind == 3:
        values.remove(value)
    elif tensor.shape.dim:
        rng.choice(tensor.shape.dim).dim_value = _number(rng)


def _versions(model: Any, rng: random.Random) -> None:
    if rng.random() < 0.5 or not model.opset_import:
        model.ir_version = rng.choice((0, 2, 3, 4, 9, 11, 13, _number(rng)))
    else:
        rng.choice(model.opset_import).version = rng.choice((1, 7, 13, 17, 22, 99, _number(rng)))


_CHANGES: tuple[Callable[[Any, random.Random], None], ...] = (
    _operator, *[_inputs] * 3, _outputs, *[_attributes] * 2, *[_constants] * 3, _nodes, _values, _versions,
)  # fmt: skip
