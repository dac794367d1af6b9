"""The search in Python and the one in C++, step by step on the same logits."""

import math
from collections.abc import Mapping
from collections.abc import Sequence as Several
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import pytest

from service.bundle.fused_io import AT_LIMIT, BROKEN, REPEATING, RUNNING, STOPPED
from service.engine.batch import Batch
from service.engine.runner import ONE_STEP, Fetch, Rows, RunnerSpec, RunOutput, StepRunner
from service.engine.search import rescoring
from service.engine.search.hypotheses import decoded, score
from service.engine.search.processors import Ids, Scores
from service.engine.search.stepwise import StepwiseSearch
from service.engine.sequence import DecodedHypothesis, Sequence
from tests.kernels.native_search import NativeSearch, State
from tests.kernels.random_model import RandomModel

CAPACITY = 40
EOS_ID = 1
START_ID = 0

Answer = tuple[DecodedHypothesis, ...] | None  # None: the model produced NaN


class ModelRunner:
    """What the search in Python needs of a `StepRunner`: a step of the random model for all rows of a batch."""

    def __init__(self, spec: RunnerSpec, model: RandomModel, batch: Batch, numbers: Mapping[Sequence, int]) -> None:
        self.spec = spec
        self._model, self._batch, self._numbers = model, batch, numbers

    def run(self, rows: Rows, fetch: Fetch, max_steps: int) -> RunOutput:
        assert max_steps == 1
        numbers = [self._numbers[self._batch.owner(row)] for row in range(self._batch.num_rows)]
        return self._model.run(self._batch, numbers, fetch)

    def reorder(self, source_rows: Several[int], target_rows: Several[int], lengths: Several[int]) -> None:
        """There are no caches."""


class Both:
    """A batch of sequences in both searches; every step compares their states, every end the answers."""

    def __init__(self, library: Path, sequences: Several[Sequence], model: RandomModel, spec: RunnerSpec,
                 random: Random) -> None:  # fmt: skip
        self._library, self._model, self._spec = library, model, spec
        self._numbers = {sequence: number for number, sequence in enumerate(sequences)}
        self._batch = Batch(spec.max_slots, CAPACITY)
        runner = ModelRunner(spec, model, self._batch, self._numbers)
        self._search = StepwiseSearch(cast(StepRunner, runner), self._batch)
        self._state = State(spec.max_slots, CAPACITY)
        num_rows = sum(sequence.num_slots for sequence in sequences)
        rows, slots = random.sample(range(num_rows), num_rows), random.sample(range(spec.max_slots), num_rows)
        self._rows: dict[Sequence, list[int]] = {}
        for sequence in sequences:
            own = self._rows[sequence] = rows[: sequence.num_slots]
            self._state.join(sequence, own, slots[: sequence.num_slots], spec)
            del rows[: sequence.num_slots], slots[: sequence.num_slots]
            self._batch.join(sequence, spec.decoder_start_id)
            self._search.join(sequence)
        control = self._state.control
        control["num_rows"], control["eos_id"], control["decoder_start_id"] = num_rows, spec.eos_id, START_ID
        self._cache = np.full((spec.max_slots, CAPACITY), -1, np.int64)  # as the decoder's: each row's inputs
        self._num_generated = 0
        self.answers: dict[Sequence, Answer] = {}

    def run(self, num_steps: int) -> bool:
        """Make some steps in one native run; returns whether sequences are still running."""
        num_tokens, renormalizes = self._model.num_tokens, self._spec.renormalizes
        with NativeSearch(self._library, self._state, num_tokens, renormalizes=renormalizes) as native:
            for _ in range(num_steps):
                running = list(self._batch.sequences)
                if not running:
                    break
                ended = self._step_python()
                has_ended = self._step_native(native)
                assert has_ended == bool(ended)
                self._compare(running, ended)
        return bool(self._batch.num_sequences)

    def _step_python(self) -> dict[Sequence, Answer]:
        batch = self._batch
        outcome = self._search.run(ONE_STEP)
        self._num_generated += outcome.num_generated
        ended: dict[Sequence, Answer] = dict.fromkeys(outcome.failed)
        for sequence, hypotheses in outcome.finished:
            ended.setdefault(sequence, hypotheses)
        for sequence in ended:
            self._search.leave(sequence)
            batch.leave(sequence)
        return ended

    def _step_native(self, native: NativeSearch) -> bool:
        state = self._state
        owners = {row: sequence for sequence, own in self._rows.items() for row in own}
        live = native.live()
        assert live == np.flatnonzero(state.rows["status"][: state.control["num_rows"]] == RUNNING).tolist()
        projected = []
        for row, need in zip(live, native.needs(), strict=True):
            length = int(state.rows["length"][row])
            self._cache[state.rows["slot"][row], length] = state.rows["token_id"][row]
            output_ids = state.output_ids[row, :length]
            if owners[row].num_slots > 1:
                inputs = self._cache[state.history[row, : length + 1], np.arange(length + 1)]
                assert inputs.tolist() == [self._spec.decoder_start_id, *output_ids.tolist()], "another one's cache"
            projected.append(self._model.of(self._numbers[owners[row]], output_ids, need))
        return native.advance(projected)

    def _compare(self, running: list[Sequence], ended: dict[Sequence, Answer]) -> None:
        state, batch = self._state, self._batch
        assert state.control["num_generated"] == self._num_generated
        for sequence in running:
            own = self._rows[sequence]
            statuses = set(state.rows["status"][own].tolist())
            if sequence in ended:
                answer = self._native_answer(sequence, *statuses)
                assert_same(answer, ended[sequence], tolerance(sequence))
                self.answers[sequence] = answer
                continue
            assert statuses == {RUNNING}
            length = int(state.rows["length"][own[0]])
            assert (state.rows["length"][own] == batch.lengths[sequence.slots]).all()
            assert (state.rows["token_id"][own] == batch.token_ids[sequence.slots]).all()
            assert (state.output_ids[own, :length] == batch.output_ids[sequence.slots, :length]).all()
            if sequence.options.return_scores or sequence.num_slots > 1:
                log_probs = state.rows["log_prob"][own], batch.log_probs[sequence.slots]
                assert_close(*log_probs, tolerance(sequence))

    def _native_answer(self, sequence: Sequence, status: int) -> Answer:
        own, state, options = self._rows[sequence], self._state, sequence.options
        if status == BROKEN:
            return None
        leader = state.rows[own[0]]
        if sequence.num_slots > 1:
            finished, given_up = own[: leader["num_finished"]], own[: leader["num_given_up"]]
            places = [*finished, *(state.num_slots + row for row in given_up)]
            return tuple(self._native_hypothesis(sequence, place) for place in places[: options.num_hypotheses])
        output_ids = tuple(state.output_ids[own[0], : leader["length"]].tolist())
        is_at_limit = len(output_ids) == leader["limit"]
        assert (status == STOPPED) == (output_ids[-1] == EOS_ID)
        assert (status == REPEATING) == (leader["excess"] > 0)
        assert status != AT_LIMIT or is_at_limit
        own_score = math.nan
        if options.return_scores:
            length = len(output_ids) + (status != STOPPED and is_at_limit and options.forces_end)
            own_score = score(sequence, float(leader["log_prob"]), length)
        return (decoded(sequence, own_score, output_ids, int(leader["excess"]), EOS_ID),)

    def _native_hypothesis(self, sequence: Sequence, place: int) -> DecodedHypothesis:
        score, length, excess, _ = self._state.hypotheses[place].tolist()
        return decoded(sequence, score, tuple(self._state.hypothesis_ids[place, :length].tolist()), excess, EOS_ID)


def tolerance(sequence: Sequence) -> float:
    """Return the relative difference that scores may have: only NumPy's sums over a vocabulary have another order."""
    return 1e-5 if sequence.options.changes_scores else 0.0


def assert_close(score: Any, expected: Any, rtol: float) -> None:
    """Compare log-probabilities; near 0, they are the differences of two larger float32 numbers."""
    np.testing.assert_allclose(score, expected, rtol=rtol, atol=rtol / 10)


def assert_same(answer: Answer, expected: Answer, rtol: float = 0.0) -> None:
    assert (answer is None) == (expected is None)
    for one, other in zip(answer or (), expected or (), strict=True):
        assert (one.token_ids, one.finish_reason) == (other.token_ids, other.finish_reason)
        assert_close(one.score, other.score, rtol)


def decode_both(library: Path, sequences: Several[Sequence], model: RandomModel, *, num_steps: int = 5,
                renormalizes: bool = False, seed: int = 0) -> list[Answer]:  # fmt: skip
    """Decode in both searches, some steps per native run; returns the answers, which are the same."""
    num_rows = sum(sequence.num_slots for sequence in sequences)
    spec = RunnerSpec(num_rows + 3, CAPACITY, 64, EOS_ID, START_ID, 1, has_logits=True, renormalizes=renormalizes)
    both = Both(library, sequences, model, spec, Random(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rescoring, "top", _top)
        while both.run(num_steps):
            pass
    return [both.answers[sequence] for sequence in sequences]


def _top(scores: Scores, num_candidates: int) -> tuple[Ids, Scores]:
    """Return what `rescoring.top` does, but the lowest ids also among those that are equal to the worst of the best."""
    ids = np.argsort(-scores, axis=1, kind="stable")[:, :num_candidates]
    return ids, np.take_along_axis(scores, ids, axis=1)
