"""Weights and shortlists are used where they were read to, or where ONNX Runtime maps their file; weights at multiples
of 64 bytes. A run never writes to them."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy import typing as npt

from service.bundle import fused_io
from service.bundle.errors import BundleError
from service.engine.runtime.session import Buffer, GraphSession, SessionConfig
from service.engine.runtime.weights import Weights
from tests.kernels.fused_graphs import SHAPES, Graph, Shape, decode_graph, encode_graph
from tests.kernels.mixed_batch import Answer, decode, mixed_sequences
from tests.kernels.operators import Operators, open_decoder, open_encoder

SHAPE, LISTED = SHAPES["as shipped"], SHAPES["shortlists"]
SOURCES = [(5, 6, 2), (7, 8, 9, 2), (10, 2), (11, 12, 13, 14, 2)]


def opened(library: Path, path: Path, graph: Graph) -> tuple[GraphSession, dict[str, npt.NDArray[Any]]]:
    """Open a graph as the service does; return also the constants that it was given."""
    is_encoder = graph.operator == fused_io.ENCODE
    inputs = fused_io.inputs_of(graph.operator, graph.shape.model)
    outputs = fused_io.ENCODE_OUTPUTS if is_encoder else fused_io.DECODE_OUTPUTS
    weights, config = Weights(path.parent).of(path.name), SessionConfig(intra_op_threads=1)
    return GraphSession(path, config, inputs, outputs, operators=library, weights=weights), weights


def answers(library: Path, encoder: Path, decoder: Path, shape: Shape) -> list[Answer]:
    """Return what the graphs make of a few sequences of different kinds."""
    operators = Operators(library, encoder, decoder, shape.model)
    return decode(operators, mixed_sequences(shape, SOURCES))


def saved(folder: Path, beside: tuple[int, int] | None, shape: Shape = SHAPE) -> tuple[Path, Path]:
    """Write both graphs."""
    graphs = (("encoder.onnx", encode_graph(shape)), ("decoder.onnx", decode_graph(shape)))
    encoder, decoder = (graph.save(folder / name, has_shapes=False, beside=beside) for name, graph in graphs)
    return encoder, decoder


@pytest.mark.parametrize("shape", [SHAPE, LISTED], ids=["all", "listed"])
@pytest.mark.parametrize("shift_of_others", [0, 1, 4, 62])
def test_only_weights_need_to_be_aligned(
    kernels_library: Path, tmp_path: Path, shift_of_others: int, shape: Shape
) -> None:
    expected = answers(kernels_library, *saved(tmp_path, None, shape), shape)
    assert answers(kernels_library, *saved(tmp_path, (0, shift_of_others), shape), shape) == expected


@pytest.mark.parametrize("shift", [1, 16, 32])
@pytest.mark.parametrize("is_encoder", [True, False])
def test_weights_that_are_not_aligned_are_refused(
    kernels_library: Path, tmp_path: Path, is_encoder: bool, shift: int
) -> None:
    path = saved(tmp_path, (shift, 0))[0 if is_encoder else 1]
    graph = encode_graph(SHAPE) if is_encoder else decode_graph(SHAPE)
    for open_graph in (open_encoder if is_encoder else open_decoder, partial(opened, graph=graph)):
        with pytest.raises(BundleError, match="the token embedding is not aligned to 64 bytes"):
            open_graph(kernels_library, path)


def check_apart(library: Path, path: Path, graph: Graph, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Bind each input and output to the memory of each table of weights."""
    session, weights = opened(library, path, graph)
    tables = [array for array in weights.values() if array.dtype in (np.int8, np.int32)]
    assert len(tables) == sum(array.dtype in (np.int8, np.int32) for array in graph.constants)
    outputs = fused_io.ENCODE_OUTPUTS if graph.operator == fused_io.ENCODE else fused_io.DECODE_OUTPUTS
    for table in tables:
        begin, end = table.ctypes.data, table.ctypes.data + table.nbytes
        for name, array in arrays.items():
            # The array ends with the table's first bytes, or begins with its last: both are out of its own memory, but
            # the run must be refused before it reads or writes there.
            for address in (begin - array.nbytes + 8, end - 8):
                memory = {each: Buffer.of(other) for each, other in arrays.items()}
                moved = memory[name]
                memory[name] = Buffer(moved.device, moved.dtype, moved.shape, address, moved.owner)
                results = {each: memory.pop(each) for each in outputs}
                with pytest.raises(Exception, match="share memory"):
                    session.run(session.bind(memory, results))


@pytest.mark.parametrize("shape", [SHAPE, LISTED], ids=["all", "listed"])
def test_nothing_that_a_run_writes_is_a_weight(kernels_library: Path, tmp_path: Path, shape: Shape) -> None:
    operators = Operators.tiny(
        kernels_library, tmp_path / "other", shape, num_slots=2, capacity=8, source_tokens=16, records=True
    )
    paths = saved(tmp_path, (0, 0), shape)
    results: dict[str, npt.NDArray[Any]] = {name: np.zeros(2, np.int32) for name in fused_io.ENCODE_OUTPUTS}
    arrays = operators.encoder_inputs([(5, 6, 2), (7, 2)], [0, 1]) | results
    check_apart(kernels_library, paths[0], encode_graph(shape), arrays)
    arrays = operators.decoder_inputs() | {"num_steps": np.zeros(1, np.int32)}
    check_apart(kernels_library, paths[1], decode_graph(shape), arrays)


def test_shortlists_are_in_memory_once_and_safe_when_their_file_is_changed(
    kernels_library: Path, tmp_path: Path
) -> None:
    graph, source = encode_graph(LISTED), (5, 6, 7, 8, 2)
    session, weights = opened(kernels_library, graph.save(tmp_path / "encoder.onnx", beside=(0, 0)), graph)
    operators = Operators.tiny(kernels_library, tmp_path / "other", LISTED, num_slots=1)
    results = {name: np.zeros(1, np.int32) for name in fused_io.ENCODE_OUTPUTS}
    (lists,) = (array for array in weights.values() if array.dtype == np.int32)

    def allowed(stored: int) -> set[int]:
        lists[:] = stored
        session.run(session.bind(operators.encoder_inputs([source], [0]), results))
        count, *ids = operators.shortlists[0]
        return set(ids[:count])

    assert 30 in allowed(30)
    unlisted = allowed(0)  # which is always allowed
    assert 30 not in unlisted
    for wrong in (-1, LISTED.num_tokens, 2**31 - 1, -(2**31)):
        assert allowed(wrong) == unlisted
