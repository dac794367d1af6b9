"""States that the search of `Decode` rejects."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kernels.fused_graphs import Shape
from tests.kernels.operators import Operators, State
from tests.unit.engine.recorder import new_sequence

CAPACITY, NUM_SLOTS, NUM_TOKENS = 32, 24, 12
SHAPE = Shape(num_layers=1, num_decoder_layers=1, num_tokens=NUM_TOKENS, suppressed=())


@pytest.fixture(scope="module")
def opened(kernels_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Operators:
    folder = tmp_path_factory.mktemp("search")
    return Operators.tiny(kernels_library, folder, SHAPE, num_slots=NUM_SLOTS, capacity=CAPACITY)


@pytest.fixture
def operators(opened: Operators) -> Operators:
    """Return a beam of two in rows 0 and 1, a sampled sequence in row 2, and one with a forced token in row 3."""
    opened.state.rows.view("u1").fill(0)
    for kind, rows in (
        ({"beam_size": 2}, [0, 1]),
        ({"temperature": 1.0}, [2]),
        ({"output_prefix_ids": (NUM_TOKENS - 1,), "max_repeats": 2}, [3]),
    ):
        sequence = new_sequence(**kind)
        opened.encode([sequence.source_ids], [rows[0]])
        opened.join(sequence, rows, rows, rows[0])
    assert opened.run(0, num_rows=4) == 0
    return opened


@pytest.mark.parametrize(
    ("row", "name", "value", "message"),
    [
        (0, "status", 5, "row 0: status is 5, allowed: 0 to 4"),
        (3, "limit", CAPACITY + 1, "row 3: limit is 33, allowed: 1 to 32"),
        (3, "limit", 1, "row 3: forced_length is 1, allowed: 0 to 0"),
        (2, "length", 12, "row 2: length is 12, allowed: 0 to 11"),
        (2, "width", 9, "row 2: width is 9, allowed: 1 to 8"),
        (2, "width", 0, "row 2: width is 0"),
        (1, "rank", 2, "row 1: rank is 2, allowed: 0 to 1"),
        (1, "rank", 0, "row 0: its beam lists row 1"),
        (1, "length", 1, "row 0: its beam lists row 1"),
        (1, "status", 1, "row 0: its beam lists row 1"),
        (0, "beam_rows", [0, 4, 0, 0, 0, 0, 0, 0], "row 0: a row of the beam is 4, allowed: 0 to 3"),
        (0, "beam_rows", [0, 0, 0, 0, 0, 0, 0, 0], "row 0: its beam lists row 0"),
        (0, "status", 2, "row 1: no beam lists it"),
        (1, "slot", NUM_SLOTS, "row 0: slot is 24, allowed: 0 to 23"),
        (0, "num_finished", 3, "row 0: num_finished is 3, allowed: 0 to 2"),
        (0, "num_given_up", -1, "row 0: num_given_up is -1"),
        (0, "length_penalty", float("nan"), "row 0: length_penalty is nan"),
        (2, "top_k", 65, "row 2: top_k is 65, allowed: 1 to 64"),
        (2, "top_p", 1.5, "row 2: top_p is 1.5"),
        (2, "temperature", float("inf"), "row 2: temperature is inf"),
        (2, "repetition_penalty", -1.0, "row 2: repetition_penalty is -1"),
        (2, "no_repeat_ngram_size", -1, "row 2: no_repeat_ngram_size is -1"),
        (2, "min_output_tokens", -1, "row 2: min_output_tokens is -1"),
        (3, "max_repeats", 0, "row 3: max_repeats is 0"),
        (3, "runs", [1] + 15 * [0], "row 3: a run of repeats is 1, allowed: 0 to 0"),
        (3, "caller_prefix", 2, "row 3: caller_prefix is 2, allowed: 0 to 1"),
        (3, "model_prefix", -1, "row 3: model_prefix is -1"),
        (3, "token_id", NUM_TOKENS, "row 3: token_id is 12, allowed: 0 to 11"),
    ],
)
def test_a_field_out_of_range_is_named(operators: Operators, row: int, name: str, value: Any, message: str) -> None:
    operators.state.rows[name][row] = value
    with pytest.raises(RuntimeError, match=message):
        operators.run(num_rows=4)


def set_history(state: State) -> None:
    state.rows["length"][:2], state.history[1, 0] = 1, -1


def set_hypothesis(state: State) -> None:
    state.rows["num_given_up"][0], state.hypotheses["length"][NUM_SLOTS] = 1, CAPACITY + 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda state: state.output_ids.put(3 * CAPACITY, NUM_TOKENS),
            "row 3: a token of the output is 12, allowed: 0 to 11",
        ),
        (set_history, "row 0: a slot in the history of a beam is -1"),
        (set_hypothesis, "row 0: the length of a hypothesis is 33"),
    ],
)
def test_what_is_out_of_range_in_other_arrays_is_named(
    operators: Operators, change: Callable[[State], object], message: str
) -> None:
    change(operators.state)
    with pytest.raises(RuntimeError, match=message):
        operators.run(num_rows=4)


def test_numbers_of_rows_and_tokens_out_of_range_are_named(
    operators: Operators, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError, match="num_rows is 25, allowed: 0 to 24"):
        operators.run(num_rows=NUM_SLOTS + 1)
    monkeypatch.setattr(operators, "spec", replace(operators.spec, eos_id=NUM_TOKENS))
    with pytest.raises(RuntimeError, match="eos_id is 12, allowed: 0 to 11"):
        operators.run(num_rows=4)


def test_rows_that_have_ended_may_hold_anything(operators: Operators) -> None:
    operators.state.rows.view("u1").fill(255)
    operators.state.rows["status"] = 3
    assert operators.run() == 0
