"""`Decode` against what it means in NumPy; the same bits however rows are batched, shared out, run or computed."""

from collections.abc import Sequence as Several
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from service.bundle.fused_io import AT_LIMIT, INTERRUPT_FOR_NEWCOMERS, RUNNING, STOPPED
from service.engine.sequence import Sequence
from tests.export.tiny_models import random_sources
from tests.kernels.compute import Compute
from tests.kernels.fused_graphs import EOS_ID, START_ID, Shape
from tests.kernels.mixed_batch import Answer, decode, mixed_sequences
from tests.kernels.operators import Floats, Ids, Operators
from tests.references.fused_model import Decoding, FusedDecoder, FusedEncoder
from tests.unit.engine import reference_search
from tests.unit.engine.recorder import new_sequence


@pytest.fixture(scope="module")
def answers(operators: Operators, shape: Shape, sources: list[Ids]) -> list[Answer]:
    """What each sequence gets by itself."""
    return [decode(operators, [sequence])[0] for sequence in mixed_sequences(shape, sources)]


def test_tokens_and_scores_are_the_reference_s(
    operators: Operators, folder: Path, shape: Shape, sources: list[Ids]
) -> None:
    """Each token is the reference's or, given the same tokens before it, as good as."""
    encoder, decoder = FusedEncoder(folder / "encoder.onnx"), FusedDecoder(folder / "decoder.onnx")
    sequences = [new_sequence(source, max_output_tokens=20, return_scores=True) for source in sources]
    decode(operators, sequences)
    num_tokens, num_equal, errors = 0, 0, []
    for row, source in enumerate(sources):
        state, before, log_prob = decoder.start(encoder.encode(source), encoder.allowed(source)), START_ID, 0.0
        for token in operators.output(row):
            log_probs = state.log_probs(before)
            assert log_probs[token] > log_probs.max() - 0.3
            num_tokens, num_equal = num_tokens + 1, num_equal + int(log_probs.argmax() == token)
            before, log_prob = token, log_prob + float(log_probs[token])
        errors.append(abs(log_prob - operators.state.rows["log_prob"][row]))
    assert num_equal >= 0.97 * num_tokens > 10
    assert np.median(errors) < 1e-4
    assert max(errors) < 1.0


def test_beams_are_those_of_the_reference(operators: Operators, folder: Path, sources: list[Ids]) -> None:
    """But for one whose score is nearly that of another; scores are right whatever the beam."""
    sequences = [new_sequence(source, max_output_tokens=12, beam_size=3, num_hypotheses=3) for source in sources[:6]]
    native = decode(operators, sequences)
    model = ReferenceModel(folder)
    num_equal, errors = 0, []
    for sequence, answer in zip(sequences, native, strict=True):
        expected = model.best(sequence)
        hypotheses = [(score, tuple(ids)) for score, *ids in cast(tuple[tuple[Any, ...], ...], answer[2:-1])]
        assert len(hypotheses) == 3
        num_equal += hypotheses[0][1] == expected
        errors += [abs(score - model.score(ids)) for score, ids in hypotheses]
    assert num_equal >= 5
    assert np.median(errors) < 1e-5
    assert max(errors) < 0.2


def test_a_sequence_among_others_gets_the_same_bits(
    operators: Operators, shape: Shape, sources: list[Ids], answers: list[Answer]
) -> None:
    assert len({status for status, *_ in answers} & {STOPPED, AT_LIMIT}) >= 1
    rng = np.random.default_rng(0)
    for num_threads in (1, 2, 4, 3):
        operators.num_threads = num_threads
        rows = rng.permutation(operators.state.num_slots).tolist()
        assert decode(operators, mixed_sequences(shape, sources), rows) == answers
    operators.num_threads = 1


def test_threads_with_rows_of_their_own_choose_the_same(
    kernels_library: Path, tmp_path: Path, shape: Shape, sources: list[Ids], answers: list[Answer]
) -> None:
    """Enough rows of every kind for each thread to compute some of them, until so many have ended that none does."""
    copies, most_threads = 5, 4
    many = Operators.tiny(kernels_library, tmp_path, shape, num_slots=80)
    for num_threads in (2, 3, most_threads):
        many.num_threads = num_threads
        sequences = [sequence for _ in range(copies) for sequence in mixed_sequences(shape, sources)]
        assert sum(sequence.num_slots for sequence in sequences) >= 16 * most_threads
        assert decode(many, sequences) == copies * answers


def test_several_runs_are_like_one(
    operators: Operators, shape: Shape, sources: list[Ids], answers: list[Answer]
) -> None:
    num_steps = []

    def in_runs_of(max_steps: int, **limits: int) -> None:
        def run(operators: Operators) -> None:
            while (operators.state.rows["status"] == RUNNING).any():
                num_steps.append(operators.run(max_steps, **limits))
                assert 1 <= num_steps[-1] <= max_steps

        assert decode(operators, mixed_sequences(shape, sources), run=run) == answers

    in_runs_of(1)
    in_runs_of(7)
    operators.state.control["interrupt"] = 1
    num_steps.clear()
    in_runs_of(1000)
    assert set(num_steps) == {1}, "an interrupt is seen after each step"
    operators.state.control["interrupt"], operators.state.control["least_steps"] = INTERRUPT_FOR_NEWCOMERS, 5
    num_steps.clear()
    in_runs_of(1000)
    assert set(num_steps[:-1]) == {5}, "newcomers wait until a run has paid for its turn"
    assert num_steps[-1] <= 5
    operators.state.control["interrupt"] = 0
    num_steps.clear()
    in_runs_of(1000, returns_after=1)
    assert max(num_steps) < 30


@pytest.mark.parametrize("returns_after", [1, 2, 3])
def test_a_run_returns_once_enough_rows_have_ended(
    operators: Operators, sources: list[Ids], returns_after: int
) -> None:
    limits = (3, 9, 3, 5)
    sequences = [new_sequence(source, max_output_tokens=n) for source, n in zip(sources, limits, strict=False)]
    ends = [len(ids) for *_, ids, _ in decode(operators, sequences)]  # type: ignore[arg-type]
    seen, numbers_ended = [], []

    def run(operators: Operators) -> None:
        while (operators.state.rows["status"] == RUNNING).any():
            lengths = operators.state.rows["length"][:4].copy()
            operators.run(returns_after=returns_after)
            seen.append(int(operators.state.rows["length"][:4].max()))
            row_steps = int((operators.state.rows["length"][:4] - lengths).sum())
            assert operators.state.control["num_row_steps"] == row_steps
            numbers_ended.append(int(operators.state.control["num_ended"]))

    decode(operators, sequences, run=run)
    expected, waiting = [], sorted(ends)
    while waiting:
        expected.append(waiting[min(returns_after, len(waiting)) - 1])
        waiting = [end for end in waiting if end > expected[-1]]
    assert seen == expected
    assert sum(numbers_ended) == len(sequences)
    assert all(number >= returns_after for number in numbers_ended[:-1])


def test_no_step_without_rows_or_with_a_limit_of_none(operators: Operators, sources: list[Ids]) -> None:
    assert operators.run() == 0
    operators.encode([sources[0]], [0])
    operators.join(new_sequence(sources[0]), [0], [0], 0)
    assert [operators.run(0), operators.run(-5), operators.run(num_rows=0)] == [0, 0, 0]
    assert operators.state.rows["length"][0] == 0
    operators.run()


def test_outputs_fill_the_capacity(kernels_library: Path, folder: Path, tmp_path: Path, shape: Shape) -> None:
    """And the positions; a row that is not a multiple of a block is not longer than its memory."""
    capacity = shape.num_positions
    source = random_sources(shape.num_tokens, [64])[0]
    asked: dict[str, Any] = {"max_output_tokens": capacity, "min_output_tokens": capacity}
    sequences = [new_sequence(source, **asked), new_sequence(source, beam_size=2, forces_end=True, **asked)]
    whole = Operators.tiny(kernels_library, tmp_path, shape, num_slots=3, capacity=capacity)
    answers = decode(whole, sequences)
    assert answers[0][:2] == (AT_LIMIT, capacity)
    assert len(answers[1][2]) == capacity + 1  # type: ignore[arg-type]
    wider = Operators.tiny(kernels_library, tmp_path, shape, num_slots=6, capacity=capacity + 30, source_tokens=100)
    assert decode(wider, sequences) == answers, "the room for others changes nothing"


def test_instruction_sets_change_no_bit(
    kernels_library: Path, computes: list[Compute], tmp_path: Path, shape: Shape, sources: list[Ids],
    answers: list[Answer], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for compute in computes:
        monkeypatch.setenv("DRAGOMAN_KERNELS", compute.name)
        operators = Operators.tiny(kernels_library, tmp_path / compute.name, shape)
        assert decode(operators, mixed_sequences(shape, sources)) == answers, compute.name


class ReferenceModel:
    """Both references, in the reference search."""

    def __init__(self, folder: Path) -> None:
        self._encoder, self._decoder = FusedEncoder(folder / "encoder.onnx"), FusedDecoder(folder / "decoder.onnx")

    def best(self, sequence: Sequence) -> Ids:
        """Return all tokens of the best hypothesis of a sequence."""
        self._cross, self._allowed = (
            self._encoder.encode(sequence.source_ids),
            self._encoder.allowed(sequence.source_ids),
        )
        self._known: dict[Ids, tuple[Decoding, Floats]] = {}
        found = reference_search.search(self._log_probs, [START_ID], EOS_ID, sequence.options)
        return found[0][0]

    def score(self, output_ids: Ids) -> float:
        """Return the score of any hypothesis of the sequence that `best` was asked for last."""
        inputs = START_ID, *output_ids
        log_probs = [float(self._log_probs(inputs[: n + 1])[token]) for n, token in enumerate(output_ids)]
        return sum(log_probs) / len(output_ids)

    def _log_probs(self, inputs: Several[int]) -> Floats:
        inputs = tuple(inputs)
        if inputs not in self._known:
            state = self._decoder.start(self._cross, self._allowed)
            if inputs[:-1]:
                self._log_probs(inputs[:-1])
                before, _ = self._known[inputs[:-1]]
                state.cache, state.length = before.cache.copy(), before.length
            self._known[inputs] = state, state.log_probs(inputs[-1])
        return self._known[inputs][1]
