"""The engine's output does not depend on the batch: it equals that of the slow reference searches."""

import dataclasses
import itertools
import math
import random
from collections.abc import Sequence as Sequence_
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import typing as npt

from service.domain.translation import FinishReason
from service.engine.config import EngineConfig
from service.engine.runtime.step_search import Need
from service.engine.sequence import Sequence, SequenceUpdate, stream_seed
from tests.unit.engine import reference_search
from tests.unit.engine.fake_runner import EOS_ID, LOG_TOTAL, START_ID, FakeRunner
from tests.unit.engine.recorder import Recorder, new_sequence
from tests.unit.engine.recorder import decode as decoded

HALF = settings(max_examples=settings().max_examples // 2)  # each has up to 14 sequences


def decode(
    runners: FakeRunner | list[FakeRunner], sequences: list[Sequence], max_encode_tokens: int = 60
) -> list[SequenceUpdate]:
    """Submit sequences together and wait for all of them."""
    runners = runners if isinstance(runners, list) else [runners]
    recorder, config = Recorder(), EngineConfig(max_encode_tokens=max_encode_tokens)
    updates = decoded(list(runners), sequences, config, recorder, together=True)
    for update in updates:
        progress = recorder.progress.get(update.sequence, [])
        check_progress(update, progress)
        if runners[0].steps_per_run == 1:
            check_every_token_was_reported(update, progress)
    return updates


def check_progress(update: SequenceUpdate, progress: list[tuple[int, ...]]) -> None:
    """Check that progress is a prefix of the answer, and grows each time."""
    sequence, answer = update.sequence, update.hypotheses[0].token_ids
    assert sequence.wants_progress or not progress
    for before, token_ids in itertools.pairwise([(), *progress]):
        assert len(before) < len(token_ids)
        assert answer[: len(token_ids)] == token_ids


def check_every_token_was_reported(update: SequenceUpdate, progress: list[tuple[int, ...]]) -> None:
    """Check that without a beam each token is reported as certain, the last one with the end."""
    sequence, answer = update.sequence, update.hypotheses[0].token_ids
    if sequence.wants_progress and sequence.num_slots == 1 and not sequence.options.max_repeats:
        first = len(sequence.output_prefix_ids) + 1
        last = len(answer) - (update.finish_reason is not FinishReason.STOP)
        assert list(map(len, progress)) == list(range(first, last + 1))


def expected(runner: FakeRunner, sequence: Sequence) -> reference_search.Result:
    """Return the expected token ids after everything forced."""
    given = sequence.output_prefix_ids
    options = dataclasses.replace(
        sequence.options, max_output_tokens=sequence.max_tokens - len(given), max_repeats=most_repeats(sequence)
    )
    start = (START_ID, *sequence.target_prefix_ids, *given)

    def log_probs(inputs: Sequence_[int]) -> npt.NDArray[np.float32]:
        return runner.log_probs(sequence.source_ids, inputs)

    return reference_search.search(
        log_probs, start, EOS_ID, options, len(given), float(LOG_TOTAL), runner.spec.renormalizes
    )


def most_repeats(sequence: Sequence) -> int:
    asked = sequence.options.max_repeats
    return asked and max(asked, reference_search.most_repeats(sequence.source_ids))


def check(runner: FakeRunner, update: SequenceUpdate) -> None:
    sequence, options = update.sequence, update.sequence.options
    given = sequence.output_prefix_ids
    assert update.error is None
    assert len(update.hypotheses) == options.num_hypotheses
    assert update.finish_reason is update.hypotheses[0].finish_reason
    for hypothesis, (token_ids, score) in zip(update.hypotheses, expected(runner, sequence), strict=True):
        forced = (*sequence.target_prefix_ids, *given)
        excess = reference_search.excess([*forced, *token_ids], len(forced), most_repeats(sequence))
        is_at_limit = len(given) + len(token_ids) == sequence.max_tokens
        num_kept = len(token_ids)
        if token_ids[-1] == EOS_ID:
            reason, num_kept = FinishReason.STOP, num_kept - 1
        elif excess and not (is_at_limit and options.beam_size > 1):
            reason, num_kept = FinishReason.REPETITION, num_kept - excess
        else:
            assert is_at_limit
            reason = FinishReason.LENGTH if sequence.max_tokens == options.max_output_tokens else FinishReason.RATIO
        assert hypothesis.token_ids == (*given, *token_ids[:num_kept])
        assert hypothesis.finish_reason is reason
        if options.beam_size > 1 or options.return_scores:
            assert hypothesis.score == pytest.approx(score, rel=1e-6)
        else:
            assert math.isnan(hypothesis.score)


changes = st.fixed_dictionaries(
    {
        "repetition_penalty": st.sampled_from([1.0, 1.3, 0.5, 5.0]),
        "no_repeat_ngram_size": st.sampled_from([0, 1, 2, 3]),
        "min_output_tokens": st.integers(0, 24),
    }
)


@st.composite
def sequences(draw: st.DrawFn, beam_sizes: tuple[int, ...] = (1, 1, 1, 2, 3, 4, 8), most_repeats: int = 2) -> Sequence:
    beam_size = draw(st.sampled_from(beam_sizes))
    given = tuple(draw(st.lists(st.sampled_from([EOS_ID, 3, 4, 9]), max_size=4)))
    temperature = draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])) if beam_size == 1 else 0.0
    sequence = new_sequence(
        source_ids=tuple(draw(st.lists(st.integers(2, 30), min_size=1, max_size=6)) * draw(st.sampled_from([1, 1, 3]))),
        request_id=draw(st.sampled_from("abc")),
        beam_size=beam_size,
        max_output_tokens=len(given) + draw(st.integers(1, 24)),
        length_penalty=draw(st.sampled_from([-0.5, 0.0, 0.6, 1.0, 2.0])),
        num_hypotheses=draw(st.integers(1, beam_size)),
        return_scores=draw(st.booleans()),
        target_prefix_ids=tuple(draw(st.lists(st.sampled_from([EOS_ID, 3, 9]), max_size=2))),
        temperature=temperature,
        top_k=draw(st.sampled_from([1, 3, 64])),
        top_p=draw(st.sampled_from([0.1, 0.8, 1.0])),
        seed=draw(st.integers(0, 2**64 - 1)),
        stops_early=draw(st.booleans()),
        narrows=draw(st.booleans()),
        forces_end=draw(st.booleans()),
        max_length_ratio=draw(st.sampled_from([0.0, 0.1, 0.5, 2.0])),
        max_repeats=draw(st.integers(0, most_repeats)),
        output_prefix_ids=given,
        wants_progress=draw(st.booleans()),
    )
    changed: dict[str, Any] = draw(st.one_of(st.just({}), st.just({}), changes))
    sequence.options = dataclasses.replace(sequence.options, **changed)
    return sequence


@HALF
@given(
    st.lists(sequences(), min_size=1, max_size=14),
    st.integers(8, 24),
    st.sampled_from([-3.0, 2.0, 4.0]),
    st.integers(1, 3),
    st.fixed_dictionaries(
        {"steps_per_run": st.sampled_from([0, 1, 3, 64]), "has_ties": st.booleans(), "renormalizes": st.booleans()}
    ),
)
def test_every_answer_is_the_reference_answer_in_any_company(
    batch: list[Sequence], num_slots: int, eos_weight: float, num_workers: int, kind: dict[str, Any]
) -> None:
    runners = [FakeRunner(max_slots=num_slots, eos_weight=eos_weight, **kind) for _ in range(num_workers)]
    for update in decode(runners, batch):
        check(runners[0], update)


@HALF
@given(
    st.lists(sequences(beam_sizes=(1, 2, 3), most_repeats=4), min_size=1, max_size=10),
    st.sampled_from([-30.0, -3.0, 0.0]),
    st.integers(1, 2),
)
def test_a_model_of_few_words_repeats_itself_as_the_reference_says(
    batch: list[Sequence], eos_weight: float, num_workers: int
) -> None:
    for sequence in batch:  # too few words for beams without repetition
        if sequence.num_slots > 1:
            sequence.options = dataclasses.replace(sequence.options, no_repeat_ngram_size=0)
    runners = [FakeRunner(max_slots=12, vocabulary_size=9, eos_weight=eos_weight) for _ in range(num_workers)]
    for update in decode(runners, batch):
        check(runners[0], update)


def test_the_reference_is_not_trivial() -> None:
    """A positive control: wide beams find other answers than greedy search, and stop at different lengths."""
    runner = FakeRunner()
    results = []
    for number in range(20):
        one, wide = (new_sequence((number + 2, 1), beam_size=beam_size) for beam_size in (1, 4))
        results.append((expected(runner, one)[0][0], expected(runner, wide)[0][0]))
    assert sum(greedy != beam for greedy, beam in results) > 5
    assert len({len(beam) for _, beam in results}) > 2


def test_sequences_join_and_leave_a_batch_that_goes_on() -> None:
    runner = FakeRunner(max_slots=4)
    limits = [12, 2, 3, 4, 2, 5, 2, 3]
    batch = [new_sequence((number + 2, 1), str(number), max_output_tokens=limit) for number, limit in enumerate(limits)]
    for update in decode(runner, batch):
        check(runner, update)
    assert max(runner.batch_sizes) == 4
    assert runner.num_encodes > 1, "some joined while others ran"
    tokens = sum(len(expected(runner, sequence)[0][0]) for sequence in batch)
    assert sum(runner.batch_sizes) == tokens, "no row was stepped for nothing"


def test_only_what_is_needed_is_computed() -> None:
    runner = FakeRunner(max_slots=16)

    def needs(*asked: dict[str, Any]) -> set[Need]:
        runner.needs.clear()
        decode(runner, [new_sequence(**{"max_output_tokens": 2} | each) for each in asked])
        return set(runner.needs)

    assert needs({}) == {Need(0, 0, 0, 0)}
    assert needs({"return_scores": True}) == {Need(0, 1, 0, 0)}
    assert needs({}, {"temperature": 1.0, "top_k": 9}) == {Need(9, 0, 0, 0)}
    assert needs({"beam_size": 3}, {"beam_size": 4}) == {Need(8, 0, 0, 0)}
    assert needs({"no_repeat_ngram_size": 1}) == {Need(0, 0, 1, 0)}
    assert needs({}, {"beam_size": 4, "repetition_penalty": 2.0}) == {Need(0, 0, 1, 1)}
    assert needs({"target_prefix_ids": (5, 6), "beam_size": 4}) == {Need(0, 0, 0, 0), Need(8, 0, 0, 0)}


def test_the_batch_is_full_while_work_waits() -> None:
    runner = FakeRunner(max_slots=8, eos_weight=-30.0)
    random_lengths = random.Random(3)
    batch = [
        new_sequence((number % 40 + 2, 1), str(number), max_output_tokens=random_lengths.randint(1, 20))
        for number in range(60)
    ]
    decode(runner, batch, max_encode_tokens=1000)
    assert sum(runner.batch_sizes) / len(runner.batch_sizes) > 7


def test_random_numbers_are_those_of_splitmix64_and_seeds_stay_what_they_were() -> None:
    """The published generator's first outputs for seed 1234567, which other implementations test against."""
    words = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    numbers = [reference_search.uniform(1234567, position) for position in range(3)]
    assert numbers == [(word >> 11) * 2.0**-53 for word in words]
    seeds = [stream_seed(*each) for each in ((0, 0), (5, 1), (-1, 3), (2**64, 0))]
    assert seeds == [5197578548964807871, 9292961731620677989, 18107108118898898902, 5197578548964807871]
    assert len({stream_seed(seed, sample) for seed in range(50) for sample in range(8)}) == 400
