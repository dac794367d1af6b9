"""Progress of running sequences: in order, only for callers that want it, never after the end."""

import threading

from service.domain.errors import Cancelled, Unavailable
from service.domain.translation import FinishReason
from service.engine.sequence import Sequence, SequenceProgress, SequenceUpdate
from tests.unit.engine.fake_runner import FakeRunner
from tests.unit.engine.recorder import WAIT_SECONDS, held, new_sequence
from tests.unit.engine.test_engine import Rig
from tests.unit.engine.test_engine_decoding import check_progress


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
    for sequence in sequences:
        check_progress(rig.recorder.update(sequence), rig.recorder.progress.get(sequence, []))
    num_early = sum(bool(sizes(rig, sequence)) for sequence in sequences)
    assert num_early > len(sequences) // 2


def test_progress_ends_with_a_sequence_that_is_given_up_and_equal_ones_go_on() -> None:
    rig = Rig()
    given_up, watched, silent = watching(request_id="a"), watching(request_id="b"), new_sequence((2, 1), "c", 1, 20)
    rig.runner.before_step = lambda number: rig.engine.abort([given_up]) if number == 5 else None
    with rig:
        rig.engine.submit([given_up, watched, silent])
        rig.recorder.wait(3)
    assert isinstance(rig.error(given_up), Cancelled)
    assert sizes(rig, given_up) == list(range(1, 6))
    assert sizes(rig, watched) == list(range(1, 20))
    assert not sizes(rig, silent)
    assert not held(rig.engine)["watched"]


def test_progress_ends_when_everything_is_failed() -> None:
    rig, sequence = Rig(), watching(max_output_tokens=38)
    reached, go_on = threading.Event(), threading.Event()

    def before_step(number: int) -> None:
        if number == 5:
            reached.set()
            assert go_on.wait(WAIT_SECONDS)

    rig.runner.before_step = before_step
    with rig:
        rig.engine.submit([sequence])
        assert reached.wait(WAIT_SECONDS)
        rig.runner.terminate = lambda: None  # type: ignore[method-assign]  # so that the step under way gives a token
        assert not rig.engine.stop(0.0), "the thread is in a step"
        assert isinstance(rig.error(sequence), Unavailable)
        go_on.set()
    assert sizes(rig, sequence) == [1, 2, 3, 4]


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
