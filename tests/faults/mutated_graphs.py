"""Graphs with random changes to what they consist of, and to their bytes."""

import random
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor

from service.bundle.graph_file import OPERATORS
from tests.faults.damaged_bundles import mutated

_EDGES = (0, 1, -1, 2, 3, 7, 16, 64, 127, -128, 255, 2**15, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63))
_FLOATS = (0.0, -1.0, 1e-40, 1e30, float("inf"), float("nan"))


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Return a graph with one to four changes, in one case of five to its bytes."""
    if rng.random() < 0.2:
        return mutated(data, rng.randrange(2**32))
    model = onnx.load_model_from_string(data)
    values = [each.name for part in (model.graph.input, model.graph.output, model.graph.initializer) for each in part]
    names = [*values, *(name for node in model.graph.node for name in node.output), "", "nothing", "axis", "num_heads"]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _change(model, names, rng)
    return bytes(model.SerializeToString())


def _change(message: Any, names: list[str], rng: random.Random) -> None:
    """Change one field of a message, or of any message in it."""
    # Half of what is in a graph is about its nodes.
    fields = [field for field, _ in message.ListFields() for _ in range(4 if field.name in ("graph", "node") else 1)]
    if not fields:
        return
    field = rng.choice(fields)
    value = getattr(message, field.name)
    if hasattr(value, "extend"):
        _change_one_of(value, message, field, names, rng)
    elif rng.random() < 0.05:
        message.ClearField(field.name)
    elif field.message_type:
        _change(value, names, rng)
    else:
        setattr(message, field.name, _other(value, message, field, names, rng))


def _change_one_of(values: Any, message: Any, field: Any, names: list[str], rng: random.Random) -> None:
    at, kind = rng.randrange(len(values)), rng.randrange(8)
    if kind == 0:
        del values[at]
    elif kind == 1:
        values.extend([values[at]])
    elif kind == 2:
        shuffled = list(values)
        rng.shuffle(shuffled)
        message.ClearField(field.name)
        values.extend(shuffled)
    elif field.message_type:
        _change(values[at], names, rng)
    else:
        values[at] = _other(values[at], message, field, names, rng)


def _other(value: Any, message: Any, field: Any, names: list[str], rng: random.Random) -> Any:
    """Return another value of the same kind, a name for a name."""
    if isinstance(value, bytes):
        cut = value[: rng.randrange(len(value) + 1)]
        return rng.choice((cut, mutated(value, rng.randrange(2**32))))
    if isinstance(value, str):
        return rng.choice(sorted(OPERATORS.get(message.domain, ["?"])) if field.name == "op_type" else names)
    if isinstance(value, float):
        return rng.choice(_FLOATS)
    if field.enum_type:
        return rng.choice(field.enum_type.values).number
    number = rng.choice((rng.choice(_EDGES), rng.randrange(-10, 100)))
    is_short = field.cpp_type == FieldDescriptor.CPPTYPE_INT32
    return max(-(2**31), min(number, 2**31 - 1)) if is_short else number
