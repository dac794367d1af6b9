"""Hostile graphs, and garbage for graphs that are right: an error, or a run without an access out of range.

    python -m tests.kernels.fuzz_operators LIBRARY FOLDER FIRST STRIDE NUM_GRAPHS NUM_INPUTS SEED

loads every STRIDE-th of the hostile graphs, runs so many with random changes that the service would open, and so many
damaged inputs. It says what it tries before it does, so
that a crash is seen together with its cause. Run as a program, also where a sanitizer is loaded before the interpreter.
"""

import random
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy import typing as npt

from service.bundle import fused_io
from service.bundle.errors import BundleError
from service.bundle.graph_file import check_graph
from service.engine.runtime.session import Buffer, GraphSession
from tests.faults.mutated_graphs import mutate
from tests.fuzz.properties import check_message
from tests.kernels.any_sequence import any_sequence
from tests.kernels.fused_graphs import SHAPES, decode_graph, encode_graph
from tests.kernels.hostile_graphs import cases, load
from tests.kernels.mixed_batch import decode, mixed_sequences
from tests.kernels.operators import Operators, State, open_decoder, open_encoder
from tests.unit.engine.recorder import new_sequence

SHAPE, CHANGED = SHAPES["by hand"], ("as shipped", "T5")
CAPACITY = 33
EDGES = (-(2**31), -(2**26), -1, 0, 1, 2, 8, 9, CAPACITY - 1, CAPACITY, CAPACITY + 1, 64, 65, 2**26, 2**31 - 1)
NUMBERS = (-np.inf, -1e30, -1.0, 0.0, 1e-42, 0.5, 1.0, 1e30, np.inf, np.nan)
DTYPES = (np.int8, np.uint8, np.int32, np.int64, np.float32, np.float64)

Arrays = dict[str, npt.NDArray[Any]]


def fuzz_graphs(library: Path, folder: Path, first: int, stride: int) -> None:
    """Load hostile graphs."""
    for case in islice(cases(), first, None, stride):
        print(case.name, flush=True)
        message = load(library, folder, case)
        assert message, "it was accepted"
        assert case.says in message, message


def fuzz_changed_graphs(library: Path, folder: Path, num_cases: int, seed: int) -> Counter[str]:
    """Check graphs with random changes, and load those that pass; return what came of them."""
    rng, outcomes = random.Random(seed), Counter[str]()
    operators = {
        name: Operators.tiny(library, folder / name, SHAPES[name], num_slots=2, capacity=8) for name in CHANGED
    }
    files = {fused_io.ENCODE: "encoder.onnx", fused_io.DECODE: "decoder.onnx"}
    graphs = {(name, each): (folder / name / file).read_bytes() for name in CHANGED for each, file in files.items()}
    for number in range(num_cases):
        name, operator = rng.choice(CHANGED), rng.choice((fused_io.ENCODE, fused_io.DECODE))
        print("changed", name, operator, number, flush=True)
        path = folder / "changed.onnx"
        path.write_bytes(mutate(graphs[name, operator], rng))
        outcomes[_outcome_of(library, path, operator, operators[name])] += 1
    return outcomes


def _outcome_of(library: Path, path: Path, operator: str, right: Operators) -> str:
    """Check a graph, open it, and run it on arrays that are right."""
    try:
        check_graph(path, (), operator)
    except BundleError as error:
        check_message(error)
        return "rejected"
    try:
        session = (open_encoder if operator == fused_io.ENCODE else open_decoder)(library, path)
    except BundleError as error:
        check_message(error)
        return "not opened"
    right.encode([(5, 6, 2), (7, 2)], [0, 1])
    right.join(new_sequence(beam_size=2, max_output_tokens=8), [0, 1], [0, 1], 0)
    if operator == fused_io.DECODE:
        is_rejected = _run(session, right.decoder_inputs(), {"num_steps": np.zeros(1, np.int32)})
    else:
        outputs = {name: np.zeros(2, np.int32) for name in fused_io.ENCODE_OUTPUTS}
        is_rejected = _run(session, right.encoder_inputs([(5, 6, 2), (7, 2)], [0, 1]), outputs)
    return "not run" if is_rejected else "run"


def fuzz_inputs(library: Path, folder: Path, num_cases: int, seed: int) -> Counter[str]:
    """Run damaged inputs; return how many were rejected, and how many not."""
    rng, values = random.Random(seed), np.random.default_rng(seed)
    paths = encode_graph(SHAPE).save(folder / "e.onnx", has_shapes=False), folder / "d.onnx"
    decode_graph(SHAPE).save(paths[1], has_shapes=False)
    encoder, decoder = open_encoder(library, paths[0]), open_decoder(library, paths[1])
    operators = Operators.tiny(library, folder, SHAPE, num_slots=20, capacity=CAPACITY, source_tokens=20,
                               records=True)  # fmt: skip
    sequences = mixed_sequences(SHAPE, [(5, 6, 7, 2), (9, 2)] * 4)
    answers = decode(operators, sequences)
    outcomes: Counter[str] = Counter()
    for number in range(num_cases):
        print("inputs", number, flush=True)
        is_rejected = (_damaged_encode(encoder, rng, values) if number % 4 == 0
                       else _damaged_decode(operators, decoder, rng, values))  # fmt: skip
        outcomes["rejected" if is_rejected else "run"] += 1
    assert min(outcomes["rejected"], outcomes["run"]) > num_cases // 8, outcomes
    operators.state.rows[:] = np.zeros((), fused_io.ROW)
    operators.state.rows["status"] = fused_io.STOPPED
    operators.state.control["interrupt"] = 0
    assert decode(operators, mixed_sequences(SHAPE, [(5, 6, 7, 2), (9, 2)] * 4)) == answers
    return outcomes


def _damaged_encode(encoder: GraphSession, rng: random.Random, values: np.random.Generator) -> bool:
    lengths = [rng.choice((1, 2, 15, 16, 17, 20)) for _ in range(rng.randint(0, 5))]
    num_slots = rng.randint(1, 4)
    arrays: Arrays = {
        "token_ids": values.integers(0, SHAPE.num_tokens, sum(lengths)),
        "ends": np.cumsum(lengths).astype(np.int32),
        "slots": values.integers(0, num_slots, len(lengths)).astype(np.int32),
        "cross_cache": np.zeros((num_slots, SHAPE.num_decoder_layers, rng.choice((1, 2, 2)), SHAPE.num_heads, 2, 256),
                                np.uint16),
        "num_threads": np.array([rng.choice(EDGES)], np.int32),
    }  # fmt: skip
    for _ in range(rng.randint(0, 2)):
        name = rng.choice(("token_ids", "ends", "slots"))
        if arrays[name].size:
            edges = [*EDGES, SHAPE.num_tokens, num_slots, 2**20]
            arrays[name][rng.randrange(arrays[name].size)] = rng.choice(edges)
    outputs = {name: np.zeros(len(lengths), np.int32) for name in fused_io.ENCODE_OUTPUTS}
    return _run(encoder, _reshaped(arrays, rng), outputs)


def _damaged_decode(
    operators: Operators, decoder: GraphSession, rng: random.Random, values: np.random.Generator
) -> bool:
    """Start some sequences, make a few steps, and run again after some damage."""
    state = operators.state
    free = rng.sample(range(state.num_slots), state.num_slots)
    while free:
        sequence = any_sequence(rng, SHAPE.num_tokens - 4)
        if sequence.num_slots > len(free):
            break
        rows, free = free[: sequence.num_slots], free[sequence.num_slots :]
        operators.join(sequence, rows, rows, rng.randrange(3))
    state.rows["status"][free] = fused_io.STOPPED
    state.control["interrupt"] = 0
    operators.num_threads = rng.choice((1, 1, 2, 3))
    try:
        operators.run(rng.randint(0, 5))
    except RuntimeError:  # forced tokens that can't be read
        return True
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        _damage(operators, rng, values)
    arrays = operators.decoder_inputs()
    if rng.random() < 0.4:
        arrays = _reshaped(arrays, rng)
    return _run(decoder, arrays, {"num_steps": np.zeros(1, np.int32)})


def _damage(operators: Operators, rng: random.Random, values: np.random.Generator) -> None:
    """Overwrite some of the state."""
    kind = rng.randrange(6)
    if kind == 0:
        names = [*(operators.state.control.dtype.names or ())][:-1]
        operators.state.control[rng.choice(names)] = rng.choice(EDGES)
    elif kind == 1:
        operators.cross_cache[rng.randrange(3)] = rng.choice((0x7FC0, 0x7F80, 0xFE96, 0))  # NaN, infinity, -1e38, 0
    else:
        _damage_state(operators.state, rng, values)


def _damage_state(state: State, rng: random.Random, values: np.random.Generator) -> None:
    """Overwrite some of the search's state."""
    if rng.random() < 0.1:
        raw = state.rows.view(np.uint8).reshape(state.num_slots, -1)
        raw[rng.randrange(state.num_slots)] = values.integers(0, 256, raw.shape[1])
        return
    for _ in range(rng.choice((1, 1, 2, 5))):
        # An access beyond the last row is one beyond the array, which sanitizers see.
        row, place = rng.choice((state.num_slots - 1, rng.randrange(state.num_slots))), rng.randrange(state.capacity)
        kind = rng.randrange(8)
        if kind == 0:
            name = rng.choice(("num_rows", "eos_id", "decoder_start_id"))
            state.control[name] = rng.choice(EDGES)
        elif kind == 1:
            state.output_ids[row, place % 6] = rng.choice((-(2**40), -1, 9, SHAPE.num_tokens, 2**40, 2**63 - 1))
        elif kind == 2:
            state.history[row, place] = rng.choice(EDGES)
        elif kind == 3:
            state.hypotheses["length"], state.hypotheses["score"] = rng.choice(EDGES), rng.choice(NUMBERS)
        else:
            _damage_field(state.rows[row : row + 1], rng)


def _damage_field(row: Any, rng: random.Random) -> None:
    """Overwrite a field of a row, or one of its values."""
    name = rng.choice(row.dtype.names)
    field = row[name]
    value: Any = rng.choice(EDGES)
    if field.dtype.kind == "f":
        value = rng.choice(NUMBERS)
    elif field.dtype.kind == "u":
        value = rng.getrandbits(64)
    if field.ndim > 1:
        field[0, rng.randrange(field.shape[1])] = value
    else:
        field[0] = value


def _reshaped(arrays: Arrays, rng: random.Random) -> Arrays:
    """Replace an array by one of another dtype, rank, size or alignment."""
    changed = dict(arrays)
    name = rng.choice(list(changed))
    array = changed[name]
    kind = rng.randrange(7)
    if kind == 0:
        changed[name] = np.zeros(array.shape, rng.choice(DTYPES))
    elif kind == 1:
        changed[name] = array[None]
    elif kind == 2:
        changed[name] = array.reshape(-1)
    elif kind == 3:
        shape = [rng.choice((size, size, 0, 1, size - 1, size + 1)) for size in array.shape]
        changed[name] = np.zeros([max(size, 0) for size in shape], array.dtype)
    elif kind == 4:
        memory = np.zeros(array.nbytes + 1, np.uint8)
        changed[name] = memory[1:].view(array.dtype).reshape(array.shape)
    elif kind == 5:
        changed = {each: np.zeros((0, *other.shape[1:]), other.dtype) for each, other in changed.items()}
    return changed


def _run(session: GraphSession, arrays: Arrays, outputs: Arrays) -> bool:
    """Run once; return whether that was rejected."""
    try:
        session.run(session.bind({name: Buffer.of(array) for name, array in arrays.items()}, outputs))
    except Exception as error:  # ONNX Runtime's errors have no common base of their own
        if not isinstance(error, RuntimeError) and not type(error).__module__.startswith("onnxruntime"):
            raise
        return True
    return False


if __name__ == "__main__":
    given, work = Path(sys.argv[1]), Path(sys.argv[2])
    fuzz_graphs(given, work, int(sys.argv[3]), int(sys.argv[4]))
    print(dict(fuzz_changed_graphs(given, work, int(sys.argv[5]), int(sys.argv[7]))))
    print(dict(fuzz_inputs(given, work, int(sys.argv[6]), int(sys.argv[7]))))
