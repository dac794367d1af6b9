"""Deadlines: infeasible calls are rejected on arrival, expired ones are removed at the next step.

Steps are counted, not seconds: a turn counts against a call if it began after the call's deadline.
"""

import random
import threading
import time
from collections.abc import Callable

import grpc
import pytest

from service.domain.errors import DeadlineExceeded
from service.engine.engine import Engine
from service.engine.scheduler import StepPlan
from service.engine.sequence import Sequence, SequenceProgress, SequenceUpdate
from service.engine.worker import Turn, Worker
from tests.grpc_calls import refused, request_of, stub_of
from tests.patience import patient
from tests.servers import InProcessServer, Serve, distinct_texts, eventually
from tests.unit.engine.fake_runner import FakeRunner
from tests.unit.engine.recorder import new_sequence
from tests.unit.engine.test_engine import Rig

MOST_STEPS = 2
NUM_CALLS = 300


class Turns:
    """Records every turn of an engine when it began: whose rows ran, and which results had been delivered by then."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ran: list[tuple[float, tuple[Sequence, ...]]] = []
        self._lock = threading.Lock()
        for worker in engine.turns.workers:
            monkeypatch.setattr(worker, "run", self._noting(worker))

    def _noting(self, worker: Worker) -> Callable[..., Turn]:
        run = worker.run

        def noted(plan: StepPlan) -> Turn:
            began = time.monotonic()
            turn = run(plan)
            with self._lock:
                self.ran.append((began, (*plan.admitted, *worker.batch.sequences)))
            return turn

        return noted

    def steps_after_deadline(self) -> dict[Sequence, int]:
        """Return, for each sequence with a deadline, how many turns began after it in which it still had slots."""
        outlived: dict[Sequence, int] = {}
        for began, sequences in self.ran:
            for sequence in set(sequences):
                if sequence.deadline_seconds is not None:
                    outlived[sequence] = outlived.get(sequence, 0) + (began > sequence.deadline_seconds)
        return outlived


@pytest.mark.parametrize("num_workers", [1, 2])
def test_what_runs_out_of_time_is_told_at_the_next_step_and_its_slot_is_free_in_the_one_after(num_workers: int) -> None:
    """On a clock that only steps advance, sequence `n` expires during step `n`."""
    rig = Rig(*(FakeRunner(max_slots=8, eos_weight=-30.0) for _ in range(num_workers)))
    told: dict[Sequence, float] = {}
    rows: dict[int, int] = {}

    def on_updates(updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        told.update({update.sequence: rig.clock.now for update in updates})
        heard(updates, progress)

    heard, rig.recorder.on_updates = rig.recorder.on_updates, on_updates  # type: ignore[method-assign]

    def before_step(number: int) -> None:
        rows[number] = sum(worker.batch.num_rows for worker in rig.engine.turns.workers)
        rig.clock.now += 1.0

    for runner in rig.runners:
        runner.before_step = before_step
    started = rig.clock.now
    sequences = [
        new_sequence((n, 1), str(n), max_output_tokens=38, deadline_seconds=started + n + 0.5) for n in range(2, 10)
    ]
    with rig:
        rig.engine.submit(sequences)
        rig.recorder.wait(len(sequences))
    for sequence in sequences:
        assert isinstance(rig.recorder.update(sequence).error, DeadlineExceeded)
        assert sequence.deadline_seconds is not None
        assert told[sequence] - sequence.deadline_seconds <= 1.0 * num_workers, "told before its worker's next step"
    if num_workers == 1:  # two workers' row counts are of slightly different moments
        assert [rows[number] for number in range(3, 11)] == [8, 7, 6, 5, 4, 3, 2, 1], "free in the step after"


def test_no_call_outlives_its_deadline_by_more_than_two_steps(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(max_slots=8, num_threads=2, max_queue_seconds=60.0)
    turns = Turns(server.server.models[0].engine, monkeypatch)
    codes = send_with_deadlines(server, NUM_CALLS, seed=1)
    outlived = turns.steps_after_deadline()
    assert codes.get("OK", 0) > 0
    assert sum(codes.get(code, 0) for code in ("DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED")) > 10
    assert sum(codes.values()) == NUM_CALLS
    assert set(codes) <= {"OK", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"}
    assert len(outlived) > 20
    assert max(outlived.values()) <= MOST_STEPS
    engine = server.server.models[0].engine
    eventually(lambda: engine.snapshot().slots_used == engine.snapshot().num_waiting == 0)


@pytest.mark.plain
def test_an_engine_that_forgets_deadlines_is_caught(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control."""
    server = serve(max_slots=8, num_threads=2, max_queue_seconds=60.0)
    engine = server.server.models[0].engine
    turns = Turns(engine, monkeypatch)
    monkeypatch.setattr(engine.turns.queue, "take_unwanted", lambda now_seconds: [])
    monkeypatch.setattr(engine, "abort", lambda sequences: None)  # otherwise the handler's cancellation would help it
    send_with_deadlines(server, 60, seed=2)
    eventually(lambda: engine.snapshot().slots_used == engine.snapshot().num_waiting == 0)
    assert max(turns.steps_after_deadline().values()) > MOST_STEPS


def test_what_cannot_be_done_in_time_is_refused_at_the_door(serve: Serve) -> None:
    """No step is run for it, and the caller is told immediately instead of at its deadline."""
    server = serve(max_slots=1)
    engine = server.server.models[0].engine
    with server.client() as client:  # so that the engine knows its pace
        client.translate(distinct_texts(20), "en", "de")
    admitted = server.metric("dragoman_admissions_total", model="tiny")
    texts = distinct_texts(900)
    seconds = 0.4 * 900 * engine.costs.typical_tokens * engine.costs.seconds_per_row
    request = request_of(texts)
    with stub_of(server.address) as stub:
        error = refused(stub.Translate, request, timeout=seconds)
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert "takes about" in error.details()  # so the server rejected it before the deadline
    assert server.metric("dragoman_admissions_total", model="tiny") == admitted
    assert server.metric("dragoman_rejected_total", reason="deadline") == 1


def send_with_deadlines(server: InProcessServer, num_calls: int, seed: int) -> dict[str, int]:
    """Make calls of one to three texts, most with short random deadlines; return how many had which status."""
    chance = random.Random(seed)
    codes: dict[str, int] = {}
    with stub_of(server.address) as stub:
        calls = []
        for number in range(num_calls):
            request = request_of(distinct_texts(chance.randint(1, 3)))
            seconds = chance.uniform(0.005, patient(1.5)) if number % 15 else patient(30)  # enough on a busy machine
            calls.append(stub.Translate.future(request, timeout=seconds))
        for call in calls:
            code = call.code().name  # waits for the end; each call has a deadline
            codes[code] = codes.get(code, 0) + 1
    return codes
