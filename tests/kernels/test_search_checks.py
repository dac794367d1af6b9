"""States that the native search rejects, and garbage."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kernels.fuzz_search import CAPACITY, NUM_READABLE, NUM_TOKENS, SPEC, fuzz
from tests.kernels.native_search import NativeSearch, State, compile_search
from tests.patience import patient
from tests.unit.engine.recorder import new_sequence

SANITIZERS = "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g"


def beam_and_row() -> State:
    """Return a beam of two in rows 0 and 1, a sampled sequence in row 2, and one with a forced token in row 3."""
    state = State(SPEC.max_slots, CAPACITY)
    state.join(new_sequence(beam_size=2), [0, 1], [0, 1], SPEC)
    state.join(new_sequence(temperature=1.0), [2], [2], SPEC)
    state.join(new_sequence(output_prefix_ids=(NUM_READABLE - 1,), max_repeats=2), [3], [3], SPEC)
    state.control["num_rows"], state.control["eos_id"] = 4, 1
    return state


@pytest.mark.parametrize(
    ("row", "name", "value", "message"),
    [
        (0, "status", 5, "row 0: status is 5; allowed are 0 to 4"),
        (3, "limit", CAPACITY + 1, "row 3: limit is 33; allowed are 1 to 32"),
        (3, "limit", 1, "row 3: forced_length is 1; allowed are 0 to 0"),
        (2, "length", 12, "row 2: length of a running row is 12; allowed are 0 to 11"),
        (2, "width", 9, "row 2: width is 9; allowed are 1 to 8"),
        (2, "width", 0, "row 2: width is 0"),
        (1, "rank", 2, "row 1: rank is 2; allowed are 0 to 1"),
        (1, "rank", 0, "row 0: its beam lists row 1"),
        (1, "length", 1, "row 0: its beam lists row 1"),
        (1, "status", 1, "row 0: its beam lists row 1"),
        (0, "beam_rows", [0, 4, 0, 0, 0, 0, 0, 0], "row 0: a row of the beam is 4; allowed are 0 to 3"),
        (0, "beam_rows", [0, 0, 0, 0, 0, 0, 0, 0], "row 0: its beam lists row 0"),
        (0, "status", 2, "row 1: no beam lists it"),
        (1, "slot", SPEC.max_slots, "row 0: slot is 24; allowed are 0 to 23"),
        (0, "num_finished", 3, "row 0: num_finished is 3; allowed are 0 to 2"),
        (0, "num_given_up", -1, "row 0: num_given_up is -1"),
        (0, "length_penalty", float("nan"), "row 0: length_penalty is nan"),
        (2, "top_k", 65, "row 2: top_k is 65; allowed are 1 to 64"),
        (2, "top_p", 1.5, "row 2: top_p is 1.5"),
        (2, "temperature", float("inf"), "row 2: temperature is inf"),
        (2, "repetition_penalty", -1.0, "row 2: repetition_penalty is -1"),
        (2, "no_repeat_ngram_size", -1, "row 2: no_repeat_ngram_size is -1"),
        (2, "min_output_tokens", -1, "row 2: min_output_tokens is -1"),
        (3, "max_repeats", 0, "row 3: max_repeats is 0"),
        (3, "runs", [1] + 15 * [0], "row 3: a run of repeats is 1; allowed are 0 to 0"),
        (3, "caller_prefix", 2, "row 3: caller_prefix is 2; allowed are 0 to 1"),
        (3, "model_prefix", -1, "row 3: model_prefix is -1"),
        (3, "token_id", NUM_READABLE, "row 3: token_id is 12; allowed are 0 to 11"),
    ],
)
def test_a_field_out_of_range_is_named(search_library: Path, row: int, name: str, value: Any, message: str) -> None:
    state = beam_and_row()
    with NativeSearch(search_library, state, NUM_TOKENS, num_readable=NUM_READABLE) as native:
        assert native.live() == [0, 1, 2, 3]
    state.rows[name][row] = value
    with pytest.raises(ValueError, match="^" + message):
        NativeSearch(search_library, state, NUM_TOKENS, num_readable=NUM_READABLE)


def set_history(state: State) -> None:
    state.rows["length"][:2], state.history[1, 0] = 1, -1


def set_hypothesis(state: State) -> None:
    state.rows["num_given_up"][0], state.hypotheses["length"][SPEC.max_slots] = 1, CAPACITY + 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.output_ids.put(3 * CAPACITY, NUM_READABLE), "row 3: a token of the output is 12; allowed"),
        (set_history, "row 0: a slot in the history of a beam is -1"),
        (set_hypothesis, "row 0: length of a hypothesis is 33"),
        (lambda state: state.control["num_rows"].fill(SPEC.max_slots + 1), "num_rows is 25; allowed are 0 to 24"),
        (lambda state: state.control["eos_id"].fill(NUM_TOKENS), "eos_id is 9; allowed are 0 to 8"),
    ],
)
def test_what_is_out_of_range_in_other_arrays_is_named(
    search_library: Path, change: Callable[[State], object], message: str
) -> None:
    state = beam_and_row()
    change(state)
    with pytest.raises(ValueError, match=f"^{message}"):
        NativeSearch(search_library, state, NUM_TOKENS, num_readable=NUM_READABLE)


def test_rows_that_have_ended_may_hold_anything(search_library: Path) -> None:
    state = beam_and_row()
    state.rows.view("u1").fill(255)
    state.rows["status"] = 3
    with NativeSearch(search_library, state, NUM_TOKENS) as native:
        assert native.live() == []
        assert not native.advance([])


def test_garbage_is_rejected_or_searched(search_library: Path) -> None:
    outcomes = fuzz(search_library, 400, seed=1)
    assert min(outcomes["rejected"], outcomes["searched"]) > 50, outcomes


def test_garbage_under_sanitizers(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    runtimes = [library_of(compiler, name) for name in ("libasan.so", "libubsan.so")]
    if not all(runtimes):
        pytest.skip("g++ has no sanitizers")
    library = compile_search(compiler, tmp_path, *SANITIZERS)
    environment = os.environ | {
        "LD_PRELOAD": " ".join(runtimes), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc",
    }  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "tests.kernels.fuzz_search", str(library), "300", "2"],
        env=environment, check=True, timeout=patient(60),
    )  # fmt: skip


def library_of(compiler: str, name: str) -> str:
    """Return where a library of the compiler is, or nothing if it has none."""
    path = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
    return path.strip() if Path(path.strip()).is_absolute() else ""
