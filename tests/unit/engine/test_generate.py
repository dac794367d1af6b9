"""The blocking interface: hypotheses in order, errors raised, no caller left waiting."""

import threading

import pytest

from service.domain.errors import EngineFailure, InvalidRequest, Unavailable
from service.domain.options import DecodingOptions
from service.engine.config import EngineConfig
from service.engine.generate import OfflineEngine, sequences_of
from service.engine.reports import TurnStats
from tests.patience import patient
from tests.unit.engine.fake_runner import BAD_SOURCE_ID, FakeRunner
from tests.unit.engine.recorder import new_sequence

SECONDS = patient(20.0)


def offline(*runners: FakeRunner, **options: object) -> OfflineEngine:
    return OfflineEngine(runners or [FakeRunner()], EngineConfig(checks_integrity=True), **options)  # type: ignore[arg-type]


def test_hypotheses_come_in_the_order_of_the_sequences() -> None:
    sequences = [new_sequence((number, 7, 1), str(number), max_output_tokens=3 + number) for number in range(2, 14)]
    with offline() as engine:
        together = engine.generate(sequences, SECONDS)
    for sequence, hypotheses in zip(sequences, together, strict=True):
        with offline() as engine:
            again = new_sequence(sequence.source_ids, max_output_tokens=sequence.options.max_output_tokens)
            assert repr(engine.generate([again], SECONDS)) == repr([hypotheses])


def test_rows_of_source_and_prefix_are_decoded_with_the_same_options() -> None:
    rows = [((2, 1), ()), ((2, 1), (9, 8)), ((3, 1), (9,))]
    options = DecodingOptions(beam_size=2, length_penalty=1.0, num_hypotheses=2, max_output_tokens=6)
    with offline() as engine:
        decoded = engine.decode(rows, options)
        assert repr(decoded) == repr(engine.generate(sequences_of(rows, options), SECONDS))
    assert [len(hypotheses) for hypotheses in decoded] == [2, 2, 2]


def test_a_refusal_is_raised_and_leaves_no_trace() -> None:
    with offline() as engine:
        assert engine.generate([], SECONDS) == []
        refused = [new_sequence((2, 1)), new_sequence(())]
        with pytest.raises(InvalidRequest):
            engine.generate(refused, SECONDS)
        (hypotheses,) = engine.generate(refused[:1], SECONDS)
        assert hypotheses


def test_a_failure_is_raised_and_concerns_its_own_call_only() -> None:
    with offline() as engine:
        good = engine.submit([new_sequence((2, 1))])
        with pytest.raises(EngineFailure):
            engine.generate([new_sequence((3, 1)), new_sequence((BAD_SOURCE_ID, 1))], SECONDS)
        assert len(good.result(SECONDS)) == 1


def test_what_the_engine_died_of_is_the_cause() -> None:
    def die(number: int) -> None:
        raise SystemExit("planted")

    with offline(FakeRunner(before_step=die)) as engine:
        with pytest.raises(Unavailable) as caught:
            engine.generate([new_sequence()], SECONDS)
        assert isinstance(caught.value.__cause__, SystemExit)
        caught.value.__cause__.add_note("planted")


def test_who_does_not_wait_for_ever_is_told_so() -> None:
    goes_on = threading.Event()

    def wait(number: int) -> None:
        assert goes_on.wait(SECONDS)

    with offline(FakeRunner(before_step=wait)) as engine:
        with pytest.raises(TimeoutError):
            engine.generate([new_sequence()], 0.01)
        goes_on.set()


def test_turns_are_reported() -> None:
    turns: list[TurnStats] = []
    with offline(on_turn=turns.append) as engine:
        engine.generate([new_sequence()], SECONDS)
    assert turns[0].num_encoded == 1
    assert all(turn.batch_size == 1 for turn in turns)
