"""Graphs that are wrong in one place: the constants and attributes that an operator must not accept."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from service.bundle.errors import BundleError
from tests.kernels.fused_graphs import OPTIONAL, SHAPES, Graph, Shape, decode_graph, encode_graph
from tests.kernels.operators import Operators, open_decoder, open_encoder

SHAPE = SHAPES["as shipped"]
OTHER_SHAPE = SHAPES["by hand"]
T5 = SHAPES["T5"]
_BAD_FLOATS = (float("nan"), float("inf"), -float("inf"))


class Case(NamedTuple):
    """A graph, and what the error must say."""

    name: str
    graph: Graph
    says: str


def cases() -> Iterator[Case]:
    """Yield the graphs."""
    for make in (encode_graph, decode_graph):
        yield from _attributes(make)
        yield from _optional_attributes(make)
        yield from _constants(make)
        yield from _values(make)
    yield from _vocabulary()


def load(library: Path, folder: Path, case: Case) -> str:
    """Open a graph, and run it if that works; return the error's text, or nothing."""
    path = folder / "graph.onnx"
    is_encoder = case.graph.operator == "Encode"
    try:
        case.graph.save(path, has_shapes=False)
        (open_encoder if is_encoder else open_decoder)(library, path)
        other = decode_graph(SHAPE) if is_encoder else encode_graph(SHAPE)
        graphs = (case.graph, other) if is_encoder else (other, case.graph)
        operators = Operators.of(library, folder, *graphs)
        operators.encode([(5, 6, 2)], [0])
        operators.run()
    except (BundleError, RuntimeError) as error:
        return str(error)
    except Exception as error:  # ONNX Runtime's errors have no common base of their own
        if type(error).__module__.startswith("onnxruntime"):
            return str(error)
        raise
    return ""


def _with(make: Callable[..., Graph], attributes: dict[str, Any], shape: Shape = SHAPE) -> Graph:
    """Return a graph with these attributes, or without one of them if it is None."""
    graph = make(shape)
    graph.attributes = {name: each for name, each in (graph.attributes | attributes).items() if each is not None}
    return graph


def _with_constant(make: Callable[..., Graph], place: int, array: np.ndarray) -> Graph:
    """Return a graph with another constant."""
    graph = make(SHAPE)
    graph.constants[place] = array
    return graph


def _attributes(make: Callable[..., Graph]) -> Iterator[Case]:
    graph = make(SHAPE)
    for name, value in graph.attributes.items():
        if isinstance(value, str):
            wrong: list[Any] = ["tanh", "", "x" * 100, 1, 0.5]
        elif isinstance(value, float):
            wrong = ["text", 3, [0.5], *_BAD_FLOATS, -1.0, 1e30]
        else:
            wrong = ["1", 0.5, [1], -1, 2**31, 2**63 - 1, -(2**63), 1_000_000_000]
        if name == "recorded_layer":
            wrong.remove(-1)  # none
        for each in (None, *wrong):
            yield Case(f"{graph.operator} {name}={each!r:.20}", _with(make, {name: each}), name)
    for name, value in (("num_heads", 3), ("num_heads", 1), ("head_size", 7), ("head_size", 64)):
        yield Case(f"{graph.operator} with {name} {value}", _with(make, {name: value}), "allowed: ")
    yield Case(
        f"{graph.operator} with heads that fit", _with(make, {"num_heads": 2, "head_size": 15}, OTHER_SHAPE), "cache"
    )
    for name in graph.attributes.keys() & {"num_layers", "num_decoder_layers"}:
        for value in (1, 3, 1000):
            yield Case(f"{graph.operator} with {name} {value}", _with(make, {name: value}), "")


def _optional_attributes(make: Callable[..., Graph]) -> Iterator[Case]:
    """One of another type counts as missing: then there are constants that the node should not have."""
    graph = make(T5)
    for name in ("width", *OPTIONAL):
        is_there = name in graph.attributes
        for each in (None, 0, "1", 0.5, [1]) if is_there else (1,):
            yield Case(f"{graph.operator} with {name} {each!r}", _with(make, {name: each}, T5), "")
        for each in (-1, 1_000_000, 2**31, 2**63 - 1, -(2**63)):
            yield Case(f"{graph.operator} with {name} {each}", _with(make, {name: each}, T5), name)
    yield Case(f"{graph.operator} of two kinds of norms", _with(make, {"scalar_norm": 1}, T5), "rms_norm are both 1")
    yield Case(
        f"{graph.operator} with half a pair", _with(make, {"rotary_size": 3}, T5), "rotary_size is 3, allowed: even"
    )
    heads_only = dataclasses.replace(T5, output_projection=False)
    yield Case(f"{graph.operator} of heads only", make(heads_only), "requires output_projection 1")
    two_of_three = dataclasses.replace(T5, num_layers=3, num_decoder_layers=3, relative_biases=2)
    yield Case(
        f"{graph.operator} of 3 layers with 2 tables",
        make(two_of_three),
        "is 2, allowed: 0, 1 or num_layers, which is 3",
    )
    place = next(place for place, each in enumerate(graph.constants) if each.shape[0] == T5.num_heads)
    for what, part in (("places", np.s_[:, 1:]), ("heads", np.s_[1:])):
        changed = make(T5)
        changed.constants[place] = changed.constants[place][part]
        yield Case(f"{graph.operator} with biases of fewer {what}", changed, "relative biases is float32")
    changed = make(T5)
    changed.constants[place][-1, -1] = np.nan
    yield Case(f"{graph.operator} with a bias that is no number", changed, "relative biases contains NaN")


def _constants(make: Callable[..., Graph]) -> Iterator[Case]:
    graph = make(SHAPE)
    last = len(graph.constants) - 1
    is_decoder = graph.operator == "Decode"
    ids = (last - 1, last) if is_decoder else ()  # suppressed ids and recorded heads may be any number of them
    # So may tokens, if the table has room for them, and positions.
    free = {0: ("longer",) if is_decoder else ("shorter", "longer"), 2: ("shorter", "longer")}
    for place, array in enumerate(graph.constants):
        others: dict[str, np.ndarray] = {
            "of float64": array.astype(np.float64),
            "of int32": array.astype(np.int32),
            "nested": array[None],
            "empty": np.zeros((0, *array.shape[1:]), array.dtype),
            "empty rows": np.zeros((*array.shape[:-1], 0), array.dtype),
        }
        others["shorter"], others["longer"] = array[:-1], np.concatenate([array, array[:1]])
        others["flat"] = array.reshape(-1)[:1].reshape(())
        if array.dtype == np.int8:
            others["of fewer groups"] = array[:, :-1]
            others["of more groups"] = np.concatenate([array, array[:, :1]], axis=1)
            others["of smaller blocks"] = array.reshape(2 * len(array), array.shape[1], 32, 4)
            others["not packed"] = array.reshape(len(array) * 64, -1)
        for what, other in others.items():
            if place in ids and what in ("empty", "empty rows", "shorter", "longer"):
                continue
            if what not in free.get(place, ()):
                yield Case(f"{graph.operator} constant {place} {what}", _with_constant(make, place, other), "")
        changed = make(SHAPE)
        del changed.constants[place]
        yield Case(f"{graph.operator} without constant {place}", changed, "")
    changed = make(SHAPE)
    changed.constants.append(np.zeros(3, np.int64))
    yield Case(f"{graph.operator} with a constant more", changed, "allowed with these attributes: ")
    changed = make(SHAPE)
    changed.constants.clear()
    yield Case(f"{graph.operator} without constants", changed, "")


def _values(make: Callable[..., Graph]) -> Iterator[Case]:
    graph = make(SHAPE)
    for place, array in enumerate(graph.constants):
        if array.dtype == np.float32:
            is_bias = array.ndim == 1 and graph.constants[place - 1].dtype == np.int8
            for value in _BAD_FLOATS[: 2 if is_bias else 3]:
                changed = _with_constant(make, place, array.copy())
                changed.constants[place].reshape(-1)[-1] = value
                yield Case(f"{graph.operator} constant {place} with {value}", changed, "NaN or infinity")
        if array.dtype == np.int8 and place > 1:  # all but the embedding, which is not multiplied
            for index in (0, -1):
                changed = _with_constant(make, place, array.copy())
                changed.constants[place].reshape(-1)[index] = -128
                yield Case(f"{graph.operator} constant {place} with -128 at {index}", changed, "weight -128")


def _vocabulary() -> Iterator[Case]:
    for ids in ([-1], [SHAPE.num_tokens], [2**40], [-(2**63)]):
        changed = _with_constant(decode_graph, -2, np.array(ids, np.int64))
        yield Case(f"suppressed {ids}", changed, "a suppressed id is ")
    for heads in ([-1], [0, SHAPE.num_heads], [2**40], [-(2**63)]):
        yield Case(
            f"recorded {heads}", _with_constant(decode_graph, -1, np.array(heads, np.int64)), "a recorded head is "
        )
    changed = _with_constant(decode_graph, 0, decode_graph(SHAPE).constants[0][:-1])
    yield Case("a projection of more tokens than can be read", changed, "the number of the projection's tokens is ")
