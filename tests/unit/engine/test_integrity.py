"""Each part of the engine's state is falsified in turn, and the integrity check must detect it."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from service.domain.translation import Priority
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.engine.integrity import IntegrityError
from service.engine.request_queue import RequestQueue
from service.engine.sequence import Sequence, SequenceStatus, SequenceUpdate
from service.engine.worker import Worker
from tests.unit.engine.fake_runner import FakeRunner
from tests.unit.engine.recorder import Recorder, new_sequence
from tests.unit.engine.test_engine import Rig, endless

_BOUND = 5


class Scene(NamedTuple):
    """An engine between two turns of its only worker, with sequences in every state."""

    engine: Engine
    worker: Worker
    running: Sequence
    beam: Sequence
    waiting: Sequence

    @property
    def requests(self) -> RequestQueue:
        return self.engine.turns.queue


def scene() -> Scene:
    config = EngineConfig(max_waiting=_BOUND, checks_integrity=True)
    engine = Engine([FakeRunner(max_slots=3, eos_weight=-30.0)], config, Recorder())
    (worker,) = engine.turns.workers
    engine.open()  # its thread would not stand still
    running = new_sequence((2, 1), "running", max_output_tokens=38, wants_progress=True, max_repeats=3)
    beam = new_sequence((3, 1), "beam", beam_size=2, max_output_tokens=38, deadline_seconds=1e12)
    waiting = endless(4, "waiting")
    engine.submit([running, beam, waiting])
    for _ in range(3):
        engine.turns.run_turn(worker)
    return Scene(engine, worker, running, beam, waiting)


def check(a: Scene) -> None:
    a.engine.turns.check_integrity(a.worker)
    a.worker.check_rows()


def test_books_that_are_right_pass() -> None:
    check(scene())


Falsify = Callable[[Scene], object]


def _swap_rows(a: Scene) -> None:
    a.running.slots, a.beam.slots = [a.beam.slots[0]], [a.running.slots[0], a.beam.slots[1]]


FAULTS: dict[str, tuple[str, Falsify]] = {
    "a slot is owned twice": ("owned rows", lambda a: a.beam.slots.__setitem__(0, a.running.slots[0])),
    "a slot is lost": ("owned rows", lambda a: a.beam.slots.pop()),
    "rows are swapped": ("not the owner", _swap_rows),
    "a live row lies beyond the others": ("owned rows", lambda a: a.running.slots.__setitem__(0, 7)),
    "a row's source is another's": ("another row's source", lambda a: a.worker.batch.source_lengths.__setitem__(0, 9)),
    "a row's guard is another's": ("another row's guard", lambda a: a.worker.batch.max_repeats.fill(7)),
    "a row ran past its limit": ("past its limit", lambda a: a.worker.batch.lengths.fill(39)),
    "who has ended has not left": ("has ended", lambda a: a.worker.batch.state.rows["status"].fill(1)),
    "a beam does not know its rows": ("are known as", lambda a: a.worker.batch.state.rows["beam_rows"].fill(0)),
    "slots are no permutation": ("no permutation", lambda a: a.worker.batch.state.rows["slot"].fill(0)),
    "a beam has two sources": (
        "have the sources",
        lambda a: a.worker.batch.state.rows["source_slot"].__setitem__(2, 0),
    ),
    "a beam has a rank twice": ("have the ranks", lambda a: a.worker.batch.state.rows["rank"].fill(0)),
    "who runs is not known to run": ("owns", lambda a: setattr(a.running, "status", SequenceStatus.WAITING)),
    "a sequence has no rows at home": ("have no rows there", lambda a: a.worker.batch.leave(a.beam)),
    "a sequence has rows elsewhere": ("are nowhere", lambda a: a.worker.assigned.remove(a.beam)),
    "a sequence in demand is doomed": ("an abandoned sequence", lambda a: a.worker.abandoned.append(a.beam)),
    "a sequence is abandoned twice": ("abandoned twice", lambda a: a.worker.abandoned.extend([a.waiting] * 2)),
    "the queue forgets one": ("are nowhere", lambda a: a.requests.waiting.drop(a.waiting)),
    "those who wait are miscounted": ("are counted", lambda a: setattr(a.requests.waiting, "num_sequences", 0)),
    "waiting tokens are miscounted": ("tokens wait", lambda a: setattr(a.requests.waiting, "num_tokens", 1)),
    "who waits is known to run": ("a running sequence waits", lambda a: setattr(a.waiting, "status", a.running.status)),
    "a priority changed in the queue": ("waits as", lambda a: setattr(a.waiting, "priority", Priority.LOW)),
    "an origin changed in the queue": ("waits as", lambda a: setattr(a.waiting, "origin", ("another",))),
    "a watcher is forgotten": ("are watched", lambda a: a.worker.watched.clear()),
    "waiting rows are miscounted": ("rows wait", lambda a: setattr(a.requests.waiting, "expected_rows", 1.5)),
    "who was told is still here": ("still here", lambda a: a.requests.live.remove(a.waiting)),
    "who was told goes on": ("continues", lambda a: a.requests.updates.append(_update(a.running))),
    "a sequence gets two updates": ("gets two updates", lambda a: a.requests.updates.extend([_update(endless())] * 2)),
    "a deadline is forgotten": ("is not watched", lambda a: setattr(a.waiting, "deadline_seconds", 1e12)),
}


def _update(sequence: Sequence) -> SequenceUpdate:
    return SequenceUpdate(sequence, None)


@pytest.mark.parametrize(("named", "falsify"), FAULTS.values(), ids=FAULTS.keys())
def test_a_book_that_is_falsified_is_named(named: str, falsify: Falsify) -> None:
    a = scene()
    falsify(a)
    with pytest.raises(IntegrityError, match=named):
        check(a)


def test_rows_that_are_promised_must_be_free() -> None:
    a = scene()
    wide = new_sequence((9, 1), beam_size=3)
    a.worker.assigned.add(wide)
    with pytest.raises(IntegrityError, match="3 rows are promised, 0 are free"):
        a.worker.check_integrity([wide])


def test_an_engine_with_wrong_books_fails_and_says_so() -> None:
    """The loop itself checks: an inconsistency injected while it runs ends it."""
    rig = Rig()
    rig.runner.before_step = lambda number: setattr(rig.engine.turns.queue.waiting, "num_tokens", 7)
    with rig:
        rig.engine.submit([endless()])
        failure = rig.recorder.wait_for_failure()
        assert isinstance(failure, IntegrityError)
        failure.add_note("planted")  # so that no server in this process, which sees the log too, takes it for its own


def test_nothing_is_compared_unless_asked_for() -> None:
    rig = Rig()
    rig.engine = Engine([rig.runner], EngineConfig(), rig.recorder)
    rig.runner.before_step = lambda number: setattr(rig.engine.turns.queue.waiting, "num_tokens", 7)
    with rig:
        rig.engine.submit([sequence := endless()])
        assert rig.error(sequence) is None
