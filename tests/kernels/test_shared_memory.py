"""What the operators check and then write shares no memory: otherwise it would change after it was checked."""

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy import typing as npt

from service.bundle import fused_io
from service.engine.runtime.session import Buffer, GraphSession
from tests.kernels.fused_graphs import SHAPES, decode_graph, encode_graph
from tests.kernels.operators import Operators, open_decoder, open_encoder
from tests.patience import patient
from tests.servers import REPOSITORY
from tests.unit.engine.recorder import new_sequence

SHAPE = SHAPES["as shipped"]

Arrays = dict[str, npt.NDArray[Any]]


def placed(arrays: Arrays, one: str, other: str, gap: int) -> Arrays:
    """Return the arrays with the second of two beginning so many bytes after the first one's end."""
    first, second = arrays[one], arrays[other]
    memory = np.zeros(first.nbytes + second.nbytes + 64, np.uint8)
    start = first.nbytes + gap
    begins = {one: (first, memory[: first.nbytes]), other: (second, memory[start : start + second.nbytes])}
    moved = {name: part.view(array.dtype).reshape(array.shape) for name, (array, part) in begins.items()}
    for name, array in moved.items():
        array[...] = arrays[name]
    return {**arrays, **moved}


def run(session: GraphSession, arrays: Arrays, results: tuple[str, ...]) -> None:
    outputs = {name: Buffer.of(arrays[name]) for name in results}
    session.run(session.bind({name: Buffer.of(arrays[name]) for name in arrays if name not in results}, outputs))


def check(session: GraphSession, arrays: Arrays, results: tuple[str, ...]) -> None:
    """Run with each two arrays overlapping by eight bytes, and side by side."""
    run(session, arrays, results)
    for one, other in itertools.permutations(arrays, 2):
        run(session, placed(arrays, one, other, gap=-arrays[one].nbytes % 8), results)
        overlap = -min(8, arrays[one].nbytes)
        with pytest.raises(Exception, match=f"({one} and {other}|{other} and {one}) share memory"):
            run(session, placed(arrays, one, other, gap=overlap), results)


def test_decode(kernels_library: Path, tmp_path: Path) -> None:
    operators = Operators.tiny(kernels_library, tmp_path, SHAPE, num_slots=2, capacity=8, records=True)
    session = open_decoder(
        kernels_library, decode_graph(SHAPE).save(tmp_path / "d.onnx", has_shapes=False), SHAPE.model
    )
    operators.encode([(5, 6, 2)], [0])
    operators.run()
    check(session, operators.decoder_inputs() | {"num_steps": np.zeros(1, np.int32)}, fused_io.DECODE_OUTPUTS)


def test_encode(kernels_library: Path, tmp_path: Path) -> None:
    session = open_encoder(
        kernels_library, encode_graph(SHAPE).save(tmp_path / "e.onnx", has_shapes=False), SHAPE.model
    )
    arrays: Arrays = {
        "token_ids": np.array([5, 6, 2, 7, 2, 0], np.int64),
        "ends": np.array([3, 5], np.int32),
        "slots": np.array([1, 0], np.int32),
        "cross_cache": np.zeros((2, 2, 1, 4, 2, 256), np.uint16),
        "num_threads": np.ones(2, np.int32)[:1],
        **{name: np.zeros(2, np.int32) for name in fused_io.ENCODE_OUTPUTS},
    }
    check(session, arrays, fused_io.ENCODE_OUTPUTS)


def decode_with_aliases(library: Path, folder: Path) -> None:
    """Decode a beam by a graph in which both caches are one memory; run in a process of its own."""
    graph = onnx.load(decode_graph(SHAPE).save(folder / "d.onnx", has_shapes=False))
    graph.graph.node[0].input[fused_io.DECODE_INPUTS.index("cross_cache")] = "self_cache"
    onnx.save(graph, folder / "aliases.onnx")
    encoder = encode_graph(SHAPE).save(folder / "e.onnx", has_shapes=False)
    model = SHAPE.model
    operators = Operators(library, encoder, folder / "aliases.onnx", model, num_slots=2, capacity=8, source_tokens=8)
    operators.encode([(5, 6, 2)], [0])
    operators.join(new_sequence(beam_size=2, max_output_tokens=8), [0, 1], [0, 1], 0)
    try:
        operators.run()
    except RuntimeError as error:
        print(error)


def test_a_graph_in_which_inputs_are_one_memory(kernels_library: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.test_shared_memory", str(kernels_library), str(tmp_path)],
        cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=patient(60),
    )  # fmt: skip
    assert (done.returncode, "self_cache and cross_cache share memory" in done.stdout) == (0, True), done


if __name__ == "__main__":
    decode_with_aliases(Path(sys.argv[1]), Path(sys.argv[2]))
