"""Sequences whose options change scores, beside others that cost what they always did."""

from typing import Any

import numpy as np
import pytest

from service.domain.errors import InvalidRequest
from service.domain.options import RequestedOptions
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.engine.sequence import Sequence
from tests.unit.engine.fake_runner import EOS_ID, NAN_STEP_SOURCE_ID, FakeRunner
from tests.unit.engine.recorder import Recorder, new_sequence
from tests.unit.engine.test_engine_decoding import decode

DEFAULTS = new_sequence().options


def outputs(runner: FakeRunner, sequences: list[Sequence]) -> list[tuple[int, ...]]:
    return [update.hypotheses[0].token_ids for update in decode(runner, sequences)]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_no_run_comes_twice_and_no_output_is_too_short(beam_size: int) -> None:
    def sequences(**asked: Any) -> list[Sequence]:
        return [
            new_sequence((number, EOS_ID), beam_size=beam_size, max_output_tokens=24, **asked)
            for number in range(2, 22)
        ]

    given = outputs(FakeRunner(max_slots=16, eos_weight=3.0), sequences(no_repeat_ngram_size=1, min_output_tokens=10))
    plain = outputs(FakeRunner(max_slots=16, eos_weight=3.0), sequences())
    assert all(len(set(ids)) == len(ids) >= 10 for ids in given)
    assert min(map(len, plain)) < 10


def test_scores_are_those_of_the_changed_probabilities() -> None:
    runner = FakeRunner(eos_weight=-30.0)
    sequence = new_sequence(max_output_tokens=3, return_scores=True, no_repeat_ngram_size=1, length_penalty=0.0)
    (update,) = decode(runner, [sequence])
    total, inputs = 0.0, [0]
    for token_id in update.hypotheses[0].token_ids:
        allowed = np.exp(np.delete(runner.log_probs(sequence.source_ids, inputs), inputs).astype(np.float64))
        total += float(runner.log_probs(sequence.source_ids, inputs)[token_id]) - float(np.log(allowed.sum()))
        inputs.append(token_id)
    assert update.hypotheses[0].score == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_row_without_numbers_fails_alone(beam_size: int) -> None:
    asked: dict[str, Any] = {"beam_size": beam_size, "repetition_penalty": 1.5, "max_output_tokens": 12}
    good, bad = new_sequence((5, 1), **asked), new_sequence((NAN_STEP_SOURCE_ID, 1), **asked)
    alone = outputs(FakeRunner(), [new_sequence((5, 1), **asked)])
    recorder = Recorder()
    engine = Engine([FakeRunner(eos_weight=2.0)], EngineConfig(checks_integrity=True), recorder)
    engine.start()
    try:
        engine.submit([good, bad])
        recorder.wait(2)
    finally:
        engine.stop(20.0)
    assert recorder.update(bad).error is not None
    assert [recorder.update(good).hypotheses[0].token_ids] == alone


def test_a_model_whose_graph_returns_no_logits_says_so() -> None:
    with pytest.raises(InvalidRequest, match=r"options\.no_repeat_ngram_size is 2.*export the bundle again") as raised:
        RequestedOptions(repetition_penalty=1.0, no_repeat_ngram_size=2).resolve(DEFAULTS, can_change_scores=False)
    assert raised.value.field == "options.no_repeat_ngram_size"
    off = RequestedOptions(repetition_penalty=1.0, no_repeat_ngram_size=0, min_output_tokens=0)
    assert off.resolve(DEFAULTS, can_change_scores=False) == DEFAULTS
    runner = FakeRunner()
    runner.spec = runner.spec.__class__(8, 40, 32, EOS_ID, 0, 4096)
    engine = Engine([runner], EngineConfig(), Recorder())
    assert not engine.can_change_scores
    with pytest.raises(InvalidRequest, match="return"):
        engine.submit([new_sequence(min_output_tokens=2)])
