"""A runner that makes several steps in one run: answers are identical to those of single steps."""

import random

import pytest

from service.domain.errors import EngineFailure
from service.engine.config import EngineConfig
from service.engine.sequence import Sequence, SequenceUpdate
from tests.unit.engine.fake_runner import NAN_STEP_SOURCE_ID, FakeRunner
from tests.unit.engine.recorder import decode, new_sequence

CONFIG = EngineConfig(max_encode_tokens=60)


def greedy(seed: int, count: int = 40) -> list[Sequence]:
    """Return sequences with and without prefixes, scores, guards and readers; some cannot be decoded to their end."""
    rng = random.Random(seed)
    return [
        new_sequence(
            (rng.choice((NAN_STEP_SOURCE_ID, *range(2, 12))), *[7] * rng.randint(0, 5), 1),
            str(number),
            max_output_tokens=rng.randint(3, 20),
            return_scores=rng.random() < 0.5,
            target_prefix_ids=rng.choice(((), (9,), (9, 8))),
            output_prefix_ids=rng.choice(((), (), (5, 6))),
            max_repeats=rng.choice((0, 1, 2)),
            wants_progress=rng.random() < 0.3,
        )
        for number in range(count)
    ]


def told(updates: list[SequenceUpdate]) -> list[str]:
    return [repr((update.hypotheses, type(update.error), update.finish_reason)) for update in updates]


@pytest.mark.parametrize("max_steps", [2, 3, 8, 64])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_several_steps_in_one_run_change_no_answer(max_steps: int, seed: int) -> None:
    single = decode(FakeRunner(), greedy(seed), CONFIG)
    several = FakeRunner(max_steps=max_steps)
    assert told(decode(several, greedy(seed), CONFIG)) == told(single)
    assert several.num_runs < several.num_steps, "there were runs of several steps"
    assert any(isinstance(update.error, EngineFailure) for update in single)
    assert any(update.error is None for update in single)


def test_who_is_sampled_or_searched_with_beams_holds_all_to_single_steps() -> None:
    def company(number: int) -> list[Sequence]:
        beam = new_sequence((3, 1), beam_size=2, max_output_tokens=9)
        sampled = new_sequence((4, 1), temperature=0.8, seed=3, max_output_tokens=9)
        return [[beam], [sampled], [beam, sampled]][number] + [new_sequence((5, 1), max_output_tokens=30)]

    for number in range(3):
        single, several = FakeRunner(), FakeRunner(max_steps=8)
        assert told(decode(several, company(number), CONFIG)) == told(decode(single, company(number), CONFIG))


def test_a_run_ends_with_the_last_row() -> None:
    runner = FakeRunner(max_steps=64, eos_weight=-30.0)
    decode(runner, [new_sequence((5, 1), max_output_tokens=10)], CONFIG)
    assert runner.num_steps == 10
    assert runner.num_runs == 1


def test_nothing_that_a_run_holds_behind_a_rows_end_is_told() -> None:
    runner = FakeRunner(max_steps=64, eos_weight=-30.0)
    sequences = [new_sequence((5 + n, 1), str(n), max_output_tokens=5 * n) for n in range(1, 5)]
    updates = decode(runner, sequences, CONFIG)
    assert [len(update.hypotheses[0].token_ids) for update in updates] == [5, 10, 15, 20]
