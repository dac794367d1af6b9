"""Garbage for the native search: a state is rejected, or searched without an access out of range.

    python -m tests.kernels.fuzz_search LIBRARY NUM_CASES SEED

runs it where a sanitizer must be loaded before the interpreter.
"""

import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from service.engine.runner import RunnerSpec
from tests.kernels.any_sequence import any_sequence
from tests.kernels.native_search import NativeSearch, Need, Projected, State

NUM_TOKENS = 9
NUM_READABLE = NUM_TOKENS + 3
CAPACITY = 32
SPEC = RunnerSpec(24, CAPACITY, 64, 1, 0, 1, has_logits=True)
EDGES = (-(2**31), -(2**26), -1, 0, 1, 2, 8, 9, CAPACITY - 1, CAPACITY, CAPACITY + 1, 64, 65, 2**26, 2**31 - 1)
NUMBERS = (-np.inf, -1e30, -1.0, 0.0, 1e-42, 0.5, 1.0, 1e30, np.inf, np.nan)


def fuzz(library: Path, num_cases: int, seed: int) -> Counter[str]:
    """Return how many damaged states were rejected, and how many searched."""
    rng = random.Random(seed)
    random_values = np.random.default_rng(seed)
    outcomes: Counter[str] = Counter()
    for _ in range(num_cases):
        state = valid_state(rng)
        run(library, state, rng.randint(0, 6), random_values)
        damage(state, rng, random_values)
        try:
            run(library, state, rng.choice((4, 2 * CAPACITY)), random_values)
            outcomes["searched"] += 1
        except ValueError:
            outcomes["rejected"] += 1
    return outcomes


def valid_state(rng: random.Random) -> State:
    """Return the first step of a few sequences of random options."""
    state = State(SPEC.max_slots, CAPACITY)
    free = rng.sample(range(SPEC.max_slots), SPEC.max_slots)
    free.sort(key=lambda row: row != state.num_slots - 1)
    while free:
        sequence = any_sequence(rng, NUM_TOKENS)
        if sequence.num_slots > len(free):
            break
        rows, free = free[: sequence.num_slots], free[sequence.num_slots :]
        state.join(sequence, rows, rows, SPEC)
    state.rows["status"][free] = 1
    state.control["num_rows"], state.control["eos_id"] = SPEC.max_slots, SPEC.eos_id
    return state


def run(library: Path, state: State, num_steps: int, values: np.random.Generator) -> None:
    """Search on random logits.

    Raises:
        ValueError: the state is not valid.
    """
    with NativeSearch(library, state, NUM_TOKENS, num_readable=NUM_READABLE) as native:
        for _ in range(num_steps):
            native.advance([projected(need, values) for need in native.needs()])


def projected(need: Need, values: np.random.Generator) -> Projected:
    """Compute a row's scores from random logits, some of which are forbidden."""
    logits = values.normal(size=NUM_TOKENS).astype(np.float32)
    logits[SPEC.eos_id] -= 2.0  # so that some rows come to their limit
    logits[values.random(NUM_TOKENS) < 0.1] = -np.inf
    ids = np.argsort(-logits)[: need.num_candidates].astype(np.int32)
    is_broken = bool(values.random() < 0.02)
    return Projected(is_broken, int(logits.argmax()), float(logits.max()), 3.0, ids, logits[ids], logits)


def damage(state: State, rng: random.Random, values: np.random.Generator) -> None:
    """Overwrite some of the state."""
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
            state.output_ids[row, place % 6] = rng.choice(
                (-(2**40), -1, NUM_TOKENS, NUM_READABLE, 90, 2**40, 2**63 - 1)
            )
        elif kind == 2:
            state.history[row, place] = rng.choice(EDGES)
        elif kind == 3:
            state.hypotheses["length"], state.hypotheses["score"] = rng.choice(EDGES), rng.choice(NUMBERS)
        else:
            damage_field(state.rows[row : row + 1], rng)


def damage_field(row: Any, rng: random.Random) -> None:
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


if __name__ == "__main__":
    print(dict(fuzz(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
