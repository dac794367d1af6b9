"""The search between the steps of a model that is made of numbers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from service.bundle import fused_io
from service.engine.batch import Batch
from service.engine.runner import RunLimits, RunnerSpec, SearchRun
from service.engine.runtime.step_search import Step, StepInputs, StepSearch
from tests.unit.engine.recorder import new_sequence

SPEC = RunnerSpec(6, 20, 32, eos_id=1, decoder_start_id=0, bytes_per_slot=1, has_logits=True)
NUM_TOKENS = 12


class Model:
    """Each step chooses the tokens 7, 8, 9, ... of each row, from its best on; `copies` are those of caches."""

    def __init__(self, **asked: Any) -> None:
        self.inputs = StepInputs(SPEC.max_slots, None)
        self.search = StepSearch(SPEC, NUM_TOKENS, self.inputs)
        self.batch = Batch(SPEC.max_slots, SPEC.kv_capacity)
        self.search.attach(self.batch.state)
        self.sequence = new_sequence((5, 6, 1), **asked)
        self.batch.join(self.sequence, SPEC.decoder_start_id)
        self.steps: list[Step] = []
        self.copies: list[tuple[list[int], list[int], list[int]]] = []
        self.log_probs = np.full((SPEC.max_slots, NUM_TOKENS), -3.0, np.float32)  # of the best, the second, ...
        self.before: Callable[[int], object] = lambda number: None

    def run(self, *limits: int) -> SearchRun:
        return self.search.run(self.batch.num_rows, RunLimits(*limits), self._step, self._reorder)

    def _step(self, step: Step) -> None:
        self.steps.append(step)
        self.before(len(self.steps))
        self.search.next_ids[:] = 7
        ids, log_probs = self.search.candidates(step.num_rows, step.need.num_candidates)
        ids[:] = np.arange(7, 7 + step.need.num_candidates) % NUM_TOKENS
        log_probs[:] = self.log_probs[: step.num_rows, : step.need.num_candidates]

    def _reorder(self, sources: Sequence[int], targets: Sequence[int], lengths: Sequence[int]) -> None:
        self.copies.append((list(sources), list(targets), list(lengths)))


def test_a_run_makes_as_many_steps_as_it_may() -> None:
    model = Model(max_output_tokens=9)
    assert model.run(4) == SearchRun(num_steps=4, num_row_steps=4, num_generated=4, num_ended=0)
    assert model.run(100) == SearchRun(num_steps=5, num_row_steps=5, num_generated=5, num_ended=1)
    assert model.batch.state.output(0) == (7,) * 9
    assert [(step.num_rows, step.total_length, step.longest_source) for step in model.steps] == [
        (1, length, 3) for length in range(1, 10)
    ]


@pytest.mark.parametrize(("interrupts", "num_steps"), [("interrupt", 3), ("interrupt_for_newcomers", 5)])
def test_an_interrupt_ends_a_run_after_its_step(interrupts: str, num_steps: int) -> None:
    model = Model(max_output_tokens=18)
    model.before = lambda number: getattr(model.search.control, interrupts)() if number == 3 else None
    assert model.run(18, 0, 5).num_steps == num_steps
    assert model.run(18, 0, 5).num_steps == (0 if interrupts == "interrupt" else 5), "it stays"
    model.search.control.clear_interrupt()
    model.before = lambda number: None
    assert model.run(2).num_steps == 2


def test_a_step_that_fails_leaves_the_rows_as_they_were() -> None:
    model = Model(max_output_tokens=9)

    def fail(number: int) -> None:
        if number == 3:
            raise RuntimeError("planted")

    model.before = fail
    with pytest.raises(RuntimeError, match="planted"):
        model.run(9)
    assert model.batch.state.output(0) == (7, 7)
    assert model.run(9).num_steps == 7


def test_only_further_children_of_a_beam_need_copies() -> None:
    model = Model(beam_size=3, max_output_tokens=9)
    model.log_probs[0] = -np.arange(NUM_TOKENS)
    model.run(1)
    assert model.copies == [([0, 0], [1, 2], [1, 1])], "all continue the first beam"
    assert model.batch.log_probs[:3].tolist() == [0.0, -1.0, -2.0]
    model.copies.clear()
    model.log_probs[1, 0] = 5.0  # the second beam becomes the best; the first is continued twice, the third not
    model.run(1)
    assert model.batch.state.output(0) == (8, 7)
    assert model.batch.state.cache_ranks[:3].tolist() == [1, 0, 2], "caches stay where they are"
    assert model.copies == [([0], [2], [2])]
    model.run(1)
    assert model.inputs.token_ids[:3].tolist() == [7, 7, 8]


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [("status", [1, 1], "that has ended is still in the batch"), ("token_id", [-1, 0], "row 0: token_id is -1")],
)
def test_rows_that_are_wrong_are_rejected(name: str, values: list[int], problem: str) -> None:
    model = Model(beam_size=2)
    model.batch.state.rows[name][:2] = values
    with pytest.raises(ValueError, match=problem):
        model.run(1)


@pytest.mark.parametrize("ranks", [(0, 0), (0, 2), (-1, 0)])
def test_caches_of_a_beam_belong_to_one_row_each(ranks: tuple[int, int]) -> None:
    model = Model(beam_size=2)
    model.batch.state.cache_ranks[:2] = ranks
    with pytest.raises(ValueError, match=r"allowed: 0 to 1|two rows of the beam led by row 0 share a cache"):
        model.run(1)


def test_a_source_that_repeats_itself_raises_the_guard_that_was_asked_for() -> None:
    model = Model(max_repeats=2)
    model.search.raise_guards((5, 6, 5, 6, 5, 6, 1), [0])
    assert model.batch.max_repeats[0] == 3
    model.search.raise_guards((5, 6, 1), [0])
    assert model.batch.max_repeats[0] == 3
    other = Model()
    other.search.raise_guards((5, 5, 5, 1), [0])
    assert other.batch.max_repeats[0] == fused_io.UNGUARDED
