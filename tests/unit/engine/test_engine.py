"""What the engine refuses, how it fails, stops and starts again, and what it tells of turns and progress.

`tests.faults.engine_machine` plays what callers, clocks and devices may do in any order.
"""

import threading
from dataclasses import replace
from typing import Any

import pytest

from service.domain.errors import EngineFailure, InvalidRequest, TooLong, TooMany, Unavailable
from service.domain.options import RequestedOptions
from service.domain.translation import FinishReason
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.engine.sequence import Sequence, SequenceProgress, SequenceStatus, SequenceUpdate
from tests.clock import Clock
from tests.servers import eventually
from tests.unit.engine.fake_runner import NAN_STEP_SOURCE_ID, FakeRunner
from tests.unit.engine.recorder import WAIT_SECONDS, Recorder, new_sequence, stop


class Rig:
    """An engine on a fake runner with a recorder; `endless` sequences run to their limit."""

    def __init__(self, *runners: FakeRunner, max_waiting: int = 100, max_encode_tokens: int = 64) -> None:
        self.runners = runners or (FakeRunner(eos_weight=-30.0),)
        self.runner = self.runners[0]
        self.recorder = Recorder()
        self.clock = Clock()
        config = EngineConfig(max_waiting=max_waiting, max_encode_tokens=max_encode_tokens, checks_integrity=True)
        self.engine = Engine(self.runners, config, self.recorder, clock=self.clock)

    def __enter__(self) -> "Rig":
        self.engine.start()
        return self

    def __exit__(self, *_: object) -> None:
        stop(self.engine)

    def error(self, sequence: Sequence) -> BaseException | None:
        return self.recorder.update(sequence).error


def endless(number: int = 2, request_id: str = "r", beam_size: int = 1, return_scores: bool = False) -> Sequence:
    return new_sequence((number, 1), request_id, beam_size=beam_size, max_output_tokens=38, return_scores=return_scores)


def test_what_can_never_run_is_refused_at_the_door() -> None:
    with Rig(max_waiting=5) as rig:
        cases: list[tuple[type[InvalidRequest], list[Sequence]]] = [
            (TooLong, [new_sequence(tuple([5] * 33))]),
            (TooLong, [new_sequence(())]),
            (InvalidRequest, [new_sequence(max_output_tokens=41)]),
            (InvalidRequest, [new_sequence(max_output_tokens=39, target_prefix_ids=(3, 4))]),
            (InvalidRequest, [new_sequence(beam_size=9)]),
            (InvalidRequest, [new_sequence(max_output_tokens=2, output_prefix_ids=(3, 4))]),
            (TooMany, [new_sequence() for _ in range(6)]),
        ]
        for kind, sequences in cases:
            good = new_sequence()
            with pytest.raises(kind):
                rig.engine.submit([good, *sequences])
            assert rig.engine.snapshot().num_waiting == 0, "all or nothing"


def test_a_model_whose_graph_returns_no_logits_changes_no_scores() -> None:
    runner = FakeRunner()
    runner.spec = replace(runner.spec, has_logits=False)
    rig = Rig(runner)
    assert not rig.engine.can_change_scores
    with pytest.raises(InvalidRequest, match="return"):
        rig.engine.submit([new_sequence(min_output_tokens=2)])
    defaults = new_sequence().options
    with pytest.raises(InvalidRequest, match="export the bundle again") as raised:
        RequestedOptions(no_repeat_ngram_size=2).resolve(defaults, can_change_scores=False)
    assert raised.value.field == "options.no_repeat_ngram_size"
    assert RequestedOptions(no_repeat_ngram_size=0).resolve(defaults, can_change_scores=False) == defaults


def test_a_sequence_is_submitted_once() -> None:
    with Rig() as rig:
        sequence = new_sequence()
        with pytest.raises(ValueError, match="twice"):
            rig.engine.submit([sequence, sequence])
        rig.engine.submit([sequence])
        with pytest.raises(ValueError, match=r"twice|already"):
            rig.engine.submit([sequence])
        rig.recorder.wait(1)
        with pytest.raises(ValueError, match="finished already"):
            rig.engine.submit([sequence])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"return_scores": True},
        {"beam_size": 3},
        {"repetition_penalty": 1.5},
        {"repetition_penalty": 1.5, "beam_size": 3},
    ],
)
def test_a_row_without_numbers_fails_alone(options: dict[str, Any]) -> None:
    """At its limit."""
    bad, good = (new_sequence((first, 1), max_output_tokens=3, **options) for first in (NAN_STEP_SOURCE_ID, 3))
    with Rig() as rig:
        rig.engine.submit([bad, good])
        assert isinstance(rig.error(bad), EngineFailure)
        assert rig.error(good) is None
    assert not rig.recorder.failures


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_row_without_numbers_fails_while_its_prefix_is_forced(beam_size: int) -> None:
    """Otherwise it would be moved with its NaN, which would also stay in its old place."""
    bad = new_sequence((NAN_STEP_SOURCE_ID, 1), beam_size=beam_size, output_prefix_ids=(5, 6, 7, 8, 9))
    brief = new_sequence((3, 1), max_output_tokens=3)
    with Rig(FakeRunner(max_slots=4, eos_weight=-30.0)) as rig:
        rig.engine.submit([brief, bad])
        assert isinstance(rig.error(bad), EngineFailure)
        assert rig.error(brief) is None
        rig.engine.submit([late := endless(4, beam_size=4)])
        assert rig.error(late) is None
    assert not rig.recorder.failures


def test_a_failed_step_fails_who_ran_and_the_engine_goes_on() -> None:
    def before_step(number: int) -> None:
        if number == 3:
            raise RuntimeError("device error with\nseveral lines")

    with Rig(FakeRunner(max_slots=2, eos_weight=-30.0, before_step=before_step)) as rig:
        sequences = [endless(number + 2) for number in range(4)]
        rig.engine.submit(sequences)
        rig.recorder.wait(4)
        snapshot = rig.engine.snapshot()
    errors = [rig.error(sequence) for sequence in sequences]
    assert [type(error) for error in errors] == [EngineFailure, EngineFailure, type(None), type(None)]
    assert "\n" not in str(errors[0])
    assert isinstance(errors[0].__cause__ if errors[0] else None, RuntimeError)
    assert snapshot.is_alive


def test_an_engine_that_only_fails_dies_and_says_so() -> None:
    def before_step(number: int) -> None:
        raise RuntimeError("device lost")

    with Rig(FakeRunner(max_slots=1, before_step=before_step)) as rig:
        sequences = [endless(number + 2, str(number)) for number in range(20)]
        rig.engine.submit(sequences)
        error = rig.recorder.wait_for_failure()
        with pytest.raises(Unavailable, match="failed"):
            rig.engine.submit([endless()])
        assert not rig.engine.snapshot().is_alive
    assert "in a row" in str(error)
    kinds = [type(rig.error(sequence)) for sequence in sequences]
    assert kinds == [EngineFailure] * 5 + [Unavailable] * 15


def test_a_listener_that_raises_hears_all_once_more_and_nobody_hangs() -> None:
    class Raising(Recorder):
        def on_updates(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
            if not self.failures:
                raise OSError("listener")
            super().on_updates(updates, progress)

    rig = Rig()
    rig.engine = Engine([rig.runner], EngineConfig(), listener := Raising())
    finished, running = new_sequence(max_output_tokens=2), endless(3)
    with rig:
        rig.engine.submit([finished, running])
        listener.wait(2)
    assert listener.update(finished).error is None
    assert isinstance(listener.update(running).error, Unavailable)


def prove_nothing(runners: object, config: object) -> None:
    pass


def test_a_restarted_engine_begins_with_empty_books_and_works() -> None:
    fails = [True]

    def before_step(number: int) -> None:
        if fails[0]:
            raise RuntimeError("device lost")

    proved: list[object] = []
    with Rig(FakeRunner(max_slots=1, before_step=before_step)) as rig:
        engine, recorder = rig.engine, rig.recorder
        lost = [endless(number + 2, str(number)) for number in range(8)]
        engine.submit(lost)
        error = recorder.wait_for_failure()
        recorder.wait(8)
        assert engine.failure is error
        eventually(lambda: not engine.has_threads)
        with pytest.raises(ZeroDivisionError):
            engine.restart(lambda runners, config: 1 / 0)
        assert engine.failure is error
        fails[0] = False
        engine.restart(lambda runners, config: proved.extend(runners))
        assert proved == [rig.runner]
        snapshot = engine.snapshot()
        assert (snapshot.num_waiting, snapshot.num_running, snapshot.slots_used) == (0, 0, 0)
        assert snapshot.is_alive
        again = new_sequence(max_output_tokens=2)
        engine.submit([again])
        assert recorder.update(again).error is None
    assert len(recorder.updates) == 9
    assert len(recorder.failures) == 1


def test_only_what_has_failed_and_ended_is_restarted() -> None:
    reached, go_on = threading.Event(), threading.Event()

    def before_step(number: int) -> None:
        reached.set()
        assert go_on.wait(WAIT_SECONDS)

    with Rig(FakeRunner(max_slots=1, before_step=before_step)) as rig:
        engine = rig.engine
        with pytest.raises(RuntimeError, match="has failed"):
            engine.restart(prove_nothing)
        sequence = endless()
        engine.submit([sequence])
        assert reached.wait(WAIT_SECONDS)
        engine.fail(TimeoutError("stuck"), "it was stuck")
        assert "it was stuck" in str(rig.error(sequence))  # while the thread hangs
        assert engine.snapshot().num_running == 0
        with pytest.raises(RuntimeError, match="has not ended"):
            engine.restart(prove_nothing)
        go_on.set()
        eventually(lambda: not engine.has_threads)
        with pytest.raises(RuntimeError, match="stopped"):
            engine.restart(lambda runners, config: engine.stop(0.0))  # while it verifies the runners
        with pytest.raises(Unavailable, match="stopped"):
            engine.submit([endless()])
    assert len(rig.recorder.updates) == 1


def test_a_stopped_engine_does_not_fail() -> None:
    with Rig() as rig:
        stop(rig.engine)
        rig.engine.fail(RuntimeError("late"))
        assert rig.engine.failure is None
    assert rig.recorder.failures == []


def test_stop_fails_what_is_left_and_refuses_more() -> None:
    rig = Rig(FakeRunner(max_slots=2, eos_weight=-30.0))
    reached, go_on = threading.Event(), threading.Event()

    def before_step(number: int) -> None:
        if number == 3:
            reached.set()
            assert go_on.wait(WAIT_SECONDS)

    rig.runner.before_step = before_step
    sequences = [endless(number + 2) for number in range(5)]
    rig.engine.start()
    rig.engine.submit(sequences)
    assert reached.wait(WAIT_SECONDS)
    assert not rig.engine.stop(0.0), "the thread is in a run"
    assert len(rig.recorder.updates) == 5, "nobody waits for a run that hangs"
    go_on.set()
    stop(rig.engine)
    assert len(rig.recorder.updates) == 5
    assert all(isinstance(update.error, Unavailable) for update in rig.recorder.updates)
    assert not rig.recorder.failures
    with pytest.raises(Unavailable, match="stopped"):
        rig.engine.submit([endless()])
    assert rig.engine.snapshot().slots_used == 0


def test_stopping_an_idle_or_unstarted_engine() -> None:
    assert Rig().engine.stop(0.0)
    with Rig() as rig:
        pass
    assert rig.recorder.updates == []
    assert rig.runner.num_steps == 0


def test_all_updates_of_a_turn_come_in_one_call_and_stats_add_up() -> None:
    rig = Rig()
    one, beam, prefixed = (
        new_sequence((number, 1), max_output_tokens=4, arrived_seconds=90.0, target_prefix_ids=prefix, beam_size=width)
        for number, prefix, width in ((2, (), 1), (3, (), 2), (4, (9, 9), 1))
    )
    with rig:
        rig.engine.submit([one, beam, prefixed])
        rig.recorder.wait(3)
    assert [len(call) for call in rig.recorder.calls] == [2, 1]
    turns = rig.recorder.turns
    assert (turns[0].num_encoded, turns[0].encoded_tokens, turns[0].padded_tokens) == (3, 6, 6)
    assert turns[0].queue_seconds == [10.0, 10.0, 10.0]
    assert [turn.first_token_seconds for turn in turns[:3]] == [[10.0, 10.0], [], [10.0]]
    assert [turn.num_generated for turn in turns] == [2, 2, 3, 3, 1, 1], "a beam generates one token in a step"
    assert [turn.batch_size for turn in turns] == [4, 4, 4, 4, 1, 1]
    assert (one.admitted_seconds, one.first_token_seconds, one.status) == (100.0, 100.0, SequenceStatus.FINISHED)


def test_the_snapshot_tells_how_long_a_turn_takes() -> None:
    rig = Rig()
    ages = []

    def before_step(number: int) -> None:
        rig.clock.now += 3.0
        ages.append(rig.engine.snapshot().turn_seconds)

    rig.runner.before_step = before_step
    with rig:
        rig.engine.submit([new_sequence(max_output_tokens=2)])
        rig.recorder.wait(1)
    assert ages == [3.0, 3.0]
    assert rig.engine.snapshot().turn_seconds == 0.0


def watching(number: int = 2, request_id: str = "r", beam_size: int = 1, max_output_tokens: int = 20) -> Sequence:
    return new_sequence(
        (number, 1), request_id, beam_size=beam_size, max_output_tokens=max_output_tokens, wants_progress=True
    )


def sizes(rig: Rig, sequence: Sequence) -> list[int]:
    return list(map(len, rig.recorder.progress.get(sequence, [])))


def test_all_progress_of_a_turn_comes_in_the_call_of_its_updates() -> None:
    rig, calls = Rig(), []
    keep = rig.recorder.on_updates

    def on_updates(updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        calls.append((len(updates), len(progress)))
        keep(updates, progress)

    rig.recorder.on_updates = on_updates  # type: ignore[method-assign]
    with rig:
        rig.engine.submit([watching(2, max_output_tokens=3), watching(3), watching(4, beam_size=1)])
        rig.recorder.wait(3)
    assert calls[:4] == [(0, 3), (0, 3), (1, 2), (0, 2)]
    assert len(calls) == 20


def test_beams_tell_something_before_the_end() -> None:
    """A positive control: reporting nothing would pass the other tests, too."""
    with Rig(FakeRunner(max_slots=16, eos_weight=-3.0)) as rig:
        sequences = [watching(number, str(number), beam_size=3) for number in range(2, 30)]
        rig.engine.submit(sequences)
        rig.recorder.wait(len(sequences))
    num_early = sum(bool(sizes(rig, sequence)) for sequence in sequences)
    assert num_early > len(sequences) // 2


def test_a_given_beginning_is_told_with_the_first_token_and_delays_its_time() -> None:
    sequence = new_sequence(
        (3, 1), target_prefix_ids=(9,), output_prefix_ids=(7, 8), max_output_tokens=6, wants_progress=True
    )
    with Rig() as rig:
        rig.engine.submit([sequence])
        update = rig.recorder.update(sequence)
    assert update.hypotheses[0].token_ids[:2] == (7, 8)
    assert update.hypotheses[0].finish_reason is FinishReason.LENGTH
    assert sizes(rig, sequence) == [3, 4, 5]
    assert [len(turn.first_token_seconds) for turn in rig.recorder.turns] == [0, 0, 0, 1, 0, 0, 0]
    assert [turn.num_generated for turn in rig.recorder.turns] == [0, 0, 0, 1, 1, 1, 1]
