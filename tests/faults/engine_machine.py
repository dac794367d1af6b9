"""A real engine on fake runners, its workers stepped in any order, checked against a model of what it promises.

No thread is started: rules perform what a worker's thread does in a turn (`Turns.begin`, `Worker.run`, `Turns.end`),
so that any order of several workers' turns, and everything that may happen in between, can be played and replayed.
"""

import itertools
from collections import Counter
from functools import cache
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from service.domain.call import Origin
from service.domain.errors import (
    Cancelled,
    DeadlineExceeded,
    EngineFailure,
    InvalidRequest,
    Overloaded,
    TooLate,
    Unavailable,
)
from service.domain.options import DecodingOptions
from service.domain.translation import Priority
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.engine.scheduler import StepPlan
from service.engine.sequence import DecodedHypothesis, Sequence, SequenceStatus
from service.engine.worker import Turn, Worker
from tests.clock import Clock
from tests.unit.engine.fake_runner import BAD_SOURCE_ID, NAN_SOURCE_ID, NAN_STEP_SOURCE_ID, FakeRunner
from tests.unit.engine.recorder import Recorder, held, new_sequence

MAX_WAITING = 16
KV_CAPACITY = 16
MAX_SOURCE_TOKENS = 8
MAX_SLOTS = 5  # of the first worker; the others have one less
BROKEN = (BAD_SOURCE_ID, NAN_SOURCE_ID, NAN_STEP_SOURCE_ID)

_MOST_STEPS = KV_CAPACITY  # of one sequence
_PER_NEWCOMER = (1, 9, 73)  # by how much each newcomer reduces the free room, by level
_LOW_PRIORITY_PERIOD = 21  # at least one of this many turns goes to the lowest priority

Key = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], DecodingOptions]


def key_of(sequence: Sequence) -> Key:
    return sequence.source_ids, sequence.target_prefix_ids, sequence.output_prefix_ids, sequence.options


@cache
def solo(key: Key) -> tuple[DecodedHypothesis, ...] | None:
    """Return the result of a sequence that has an engine to itself; `None` if it fails."""
    source_ids, target_prefix_ids, output_prefix_ids, options = key
    sequence = Sequence(source_ids, options, 0.0, target_prefix_ids, output_prefix_ids=output_prefix_ids)
    recorder = Recorder()
    runner = FakeRunner(MAX_SLOTS, KV_CAPACITY, MAX_SOURCE_TOKENS)
    engine = Engine([runner], EngineConfig(), recorder, clock=lambda: 0.0)
    engine.open()
    engine.submit([sequence])
    (worker,) = engine.turns.workers
    while not recorder.updates:
        assert engine.turns.run_turn(worker)
    (update,) = recorder.updates
    assert update.error is None or isinstance(update.error, EngineFailure)
    return update.hypotheses if update.error is None else None


@st.composite
def sequences(draw: st.DrawFn) -> dict[str, Any]:
    """Generate what to submit: from few sources, so that some are equal; some cannot be encoded or decoded."""
    beam_size = draw(st.sampled_from((1, 1, 1, 2, 3, 4)))
    broken = draw(st.sampled_from((*BROKEN, *[0] * 17)))
    is_sampled = beam_size == 1 and draw(st.integers(0, 3)) == 0
    return {
        "source_ids": (broken or draw(st.integers(2, 6)), *[7] * draw(st.integers(0, MAX_SOURCE_TOKENS - 2)), 1),
        "request_id": draw(st.sampled_from("abcd")),
        "beam_size": beam_size,
        "num_hypotheses": draw(st.integers(1, beam_size)),
        "max_output_tokens": draw(st.integers(3, 10)),
        "return_scores": draw(st.booleans()),
        "target_prefix_ids": draw(st.sampled_from(((), (), (9,), (9, 8)))),
        "output_prefix_ids": draw(st.sampled_from(((), (), (5,), (5, 6)))),
        "deadline_seconds": draw(st.sampled_from((None, None, 3.0, 9.0, 1e6))),  # from now
        "temperature": 0.8 if is_sampled else 0.0,
        "seed": draw(st.integers(0, 2)) if is_sampled else None,
        "max_repeats": draw(st.sampled_from((0, 0, 1, 2))),
        "no_repeat_ngram_size": draw(st.sampled_from((0, 0, 2))),
        "min_output_tokens": draw(st.sampled_from((0, 0, 4))),
        "wants_progress": draw(st.booleans()),
    }


class EngineMachine(RuleBasedStateMachine):
    """Every accepted sequence gets exactly one result: that of an otherwise idle engine, or the reason for its failure.

    No sequence holds rows for nothing or waits forever.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = Clock()
        self.recorder = Recorder()
        self.num_told = 0  # updates checked so far
        self.accepted: list[Sequence] = []
        self.live: set[Sequence] = set()
        self.aborted: list[Sequence] = []
        self.waiting: list[Sequence] = []
        self.decoded: set[Sequence] = set()  # and wanted
        self.worker_of: dict[Sequence, Worker] = {}  # of all whose rows may not be free yet
        self.steps_past: Counter[Sequence] = Counter()  # steps run for sequences after they were cancelled or expired
        self.plans: dict[Worker, StepPlan] = {}  # workers in the middle of a turn: admission planned,
        self.turns: dict[Worker, Turn] = {}  # or run
        self.faulty: set[Worker] = set()  # whose next step raises
        self.has_ended = False

    @initialize(
        num_workers=st.integers(1, 3),
        ending=st.sampled_from(("drain", "siege", "stop", "death")),
        steps_per_run=st.sampled_from((1, 1, 3, KV_CAPACITY)),
    )
    def start(self, num_workers: int, ending: str, steps_per_run: int) -> None:
        """Start an engine on runners that make so many steps in a run."""
        self.ending = ending
        runners = []
        for number in range(num_workers):
            limits = MAX_SLOTS - (number > 0), KV_CAPACITY, MAX_SOURCE_TOKENS
            before_step = self._before_step(number)
            runners.append(FakeRunner(*limits, before_step=before_step, steps_per_run=steps_per_run))
        config = EngineConfig(
            max_waiting=MAX_WAITING, max_queue_seconds=1e9, max_encode_tokens=24, checks_integrity=True
        )
        self.engine = Engine(runners, config, self.recorder, clock=self.now)
        self.workers = self.engine.turns.workers
        self.engine.open()

    def _before_step(self, number: int) -> Any:
        def raise_if_asked(_: int) -> None:
            if self.workers[number] in self.faulty:
                raise RuntimeError("planted")

        return raise_if_asked

    # Actions of callers.

    @rule(
        each=st.lists(sequences(), min_size=1, max_size=5),
        host=st.sampled_from("AB"),
        connection=st.integers(1, 2),
        priority=st.sampled_from(Priority),
    )
    def submit(self, each: list[dict[str, Any]], host: str, connection: int, priority: Priority) -> None:
        self._submit([given | {"priority": priority} for given in each], host, connection)

    def _submit(self, each: list[dict[str, Any]], *caller: Any) -> bool:
        """Submit a call of this caller; its request ids may equal those of other callers."""
        origin = (*caller, object())
        made = []
        for given in each:
            deadline = given["deadline_seconds"]
            after = None if deadline is None else self.now.now + deadline
            fields = {"deadline_seconds": after, "arrived_seconds": self.now.now, "origin": origin}
            made.append(new_sequence(**given | fields))
        try:
            self.engine.submit(made)
        except (Overloaded, TooLate):
            is_full, has_deadline = len(made) > self._room(origin), any(each.deadline_seconds for each in made)
            assert is_full or has_deadline, "there was room, and time"
            return False
        except Unavailable:
            assert self.has_ended
            return False
        assert len(made) <= self._room(origin), "there was no room"
        assert len(self.waiting) + len(made) <= MAX_WAITING, "more wait than are allowed"
        assert not self.has_ended
        self.accepted += made
        self.live.update(made)
        self.waiting += made
        return True

    def _room(self, origin: Origin) -> int:
        """Return how many sequences this caller may submit.

        A caller with nothing waiting may use all free room. Otherwise an eighth of what it has must stay free on each
        level, or, for a connection with something waiting, as many as will have left it.
        """
        left = [MAX_WAITING - len(self.waiting)]
        for depth in range(1, len(origin)):
            if not (own := sum(each.origin[:depth] == origin[:depth] for each in self.waiting)):
                return max(min(left), 0)
            left.append(8 * left[-1] - own)
        return max(min(*left, left[-1] // _PER_NEWCOMER[len(origin) - 1]), 0)

    @rule(
        good=st.lists(sequences(), max_size=2),
        bad=st.sampled_from(
            ({"source_ids": ()}, {"source_ids": (5,) * 9}, {"beam_size": 6}, {"max_output_tokens": KV_CAPACITY + 1})
        ),
    )
    def submit_what_can_never_run(self, good: list[dict[str, Any]], bad: dict[str, Any]) -> None:
        made = [new_sequence(**given) for given in good]
        with pytest.raises(InvalidRequest):
            self.engine.submit([*made, new_sequence(**bad)])

    @precondition(lambda self: self.accepted)
    @rule(data=st.data(), count=st.integers(1, 4))
    def abort(self, data: st.DataObject, count: int) -> None:
        """Abort sequences, some of which may have ended."""
        recent = self.accepted[-20:]
        chosen = [recent[data.draw(st.integers(0, len(recent) - 1))] for _ in range(count)]
        self.engine.abort([new_sequence(), *chosen])
        self.aborted += chosen

    @rule(seconds=st.sampled_from((0.5, 2.0, 5.0)))
    def time_passes(self, seconds: float) -> None:
        self.now.now += seconds

    # Actions of workers: each turn has three parts, which may interleave with other workers' parts.

    @rule(number=st.integers(0, 2))
    def begin(self, number: int) -> None:
        worker = self.workers[number % len(self.workers)]
        is_idle = worker not in self.plans and worker not in self.turns
        if is_idle and not self.has_ended and self.engine.turns.has_work(worker):
            self._begin(worker)

    def _begin(self, worker: Worker) -> None:
        expected = self._receive()
        has_cause = bool(expected or worker.abandoned or self.aborted or worker.batch.num_rows)
        self.aborted.clear()
        plan = self.engine.turns.begin(worker)
        assert plan is not None
        for sequence in plan.admitted:
            assert sequence in self.waiting, "who joins did not wait"
            self.waiting.remove(sequence)
            self.decoded.add(sequence)
            self.worker_of[sequence] = worker
        assert has_cause or plan.admitted, "a worker woke for nothing"
        rows = [*worker.batch.sequences, *plan.admitted]
        assert all(self.worker_of.get(each) is worker and each in self.decoded for each in rows), "rows for nobody"
        assert sum(each.num_slots for each in rows) <= worker.batch.max_slots
        self._told(expected)
        self.plans[worker] = plan

    def _receive(self) -> dict[Sequence, type]:
        """Return the results due before a worker's next turn, and remove those sequences from the model."""
        expected: dict[Sequence, type] = {}
        for sequence in self.aborted:
            if sequence in self.live and sequence not in expected:
                expected[sequence] = Cancelled
        for sequence in self.live - expected.keys():
            # A sequence that has finished and only awaits delivery gets its result.
            is_past = sequence.deadline_seconds is not None and sequence.deadline_seconds <= self.now.now
            if is_past and sequence.status is not SequenceStatus.FINISHED:
                expected[sequence] = DeadlineExceeded
        for sequence in expected:
            self._leave(sequence)
        return expected

    def _leave(self, sequence: Sequence) -> None:
        if sequence in self.waiting:
            self.waiting.remove(sequence)
            return
        assert sequence in self.decoded, "a sequence neither waits nor is decoded"
        self.decoded.remove(sequence)

    @rule(number=st.integers(0, 2))
    def run(self, number: int) -> None:
        worker = self.workers[number % len(self.workers)]
        if worker in self.plans:
            self._run(worker)

    def _run(self, worker: Worker) -> None:
        plan = self.plans.pop(worker)
        for sequence in (*worker.batch.sequences, *plan.admitted):
            if sequence not in self.decoded or sequence in self.aborted or self._is_past(sequence):
                self.steps_past[sequence] += 1
                assert self.steps_past[sequence] <= 2, "rows are held for nobody"
        if plan.admitted or worker.batch.num_rows:
            makes_step = not worker.runner.is_interrupted  # type: ignore[attr-defined]
            self.turns[worker] = worker.run(plan)
            if self.turns[worker].num_rows:
                result = self.turns[worker].result
                is_terminated = worker.runner.is_terminated  # type: ignore[attr-defined]
                is_to_fail = (worker in self.faulty and makes_step) or is_terminated
                gave_no_numbers = bool(result.failed) and not result.finished and not worker.batch.num_rows
                assert result.has_run_failed == (is_to_fail or gave_no_numbers)
                if makes_step:
                    self.faulty.discard(worker)

    def _is_past(self, sequence: Sequence) -> bool:
        return sequence.deadline_seconds is not None and sequence.deadline_seconds <= self.now.now

    @rule(number=st.integers(0, 2))
    def conclude(self, number: int) -> None:
        worker = self.workers[number % len(self.workers)]
        if worker in self.turns:
            self._conclude(worker)

    def _conclude(self, worker: Worker) -> None:
        turn = self.turns.pop(worker)
        expected: dict[Sequence, Any] = {}
        for sequence, _ in turn.result.finished:
            answer = solo(key_of(sequence))
            assert answer is not None, "what alone fails was decoded in company"
            expected[sequence] = answer
        for sequence, _ in (*turn.refused, *turn.result.failed):
            is_broken = solo(key_of(sequence)) is None
            assert is_broken or turn.result.has_run_failed or self.has_ended, "what alone is decoded failed in company"
            expected[sequence] = Unavailable if self.has_ended else EngineFailure
        for sequence in expected:
            del self.worker_of[sequence]
        expected = {sequence: told for sequence, told in expected.items() if sequence in self.decoded & self.live}
        self.decoded -= expected.keys()
        self.engine.turns.end(worker, turn)
        self._told(expected)
        try:
            worker.count_failures(turn)
        except RuntimeError as error:
            assert turn.result.has_run_failed or not turn.num_rows
            self._die(worker, error)

    @rule(number=st.integers(0, 2))
    def turn(self, number: int) -> None:
        """Run a worker's whole turn, or the rest of one."""
        self._turn(self.workers[number % len(self.workers)])

    def _turn(self, worker: Worker) -> None:
        if worker not in self.plans and worker not in self.turns:
            if not self.engine.turns.has_work(worker):
                return
            if self.has_ended:
                self._leave_loop(worker)
                return
            self._begin(worker)
        if worker in self.plans:
            self._run(worker)
        if worker in self.turns:
            self._conclude(worker)

    @rule(rounds=st.integers(1, 6))
    def turns_of_all(self, rounds: int) -> None:
        for _ in range(rounds):
            for worker in self.workers:
                self._turn(worker)

    @rule(number=st.integers(0, 2))
    def next_step_fails(self, number: int) -> None:
        self.faulty.add(self.workers[number % len(self.workers)])

    # Ends of an engine.

    def _die(self, worker: Worker, error: BaseException) -> None:
        """End a worker's loop by an error, which is not reported if the engine had been stopped before."""
        tells = not self.has_ended
        with patch.object(self.engine.turns, "begin", side_effect=error):
            self.engine.run(worker)
        self._all_are_told()
        assert not tells or self.recorder.failures[-1] is error

    def _leave_loop(self, worker: Worker) -> None:
        self.engine.run(worker)  # sees that it has to end
        self._all_are_told()

    def _all_are_told(self) -> None:
        self.has_ended = True
        expected = dict.fromkeys(self.live, Unavailable)
        self._told(expected)

    def _told(self, expected: dict[Sequence, Any]) -> None:
        """Check that the updates since the last check are exactly the expected ones."""
        updates = self.recorder.updates[self.num_told :]
        self.num_told += len(updates)
        assert Counter(update.sequence for update in updates) == Counter(expected.keys()), "others were told"
        for update in updates:
            told = expected[update.sequence]
            if isinstance(told, type):
                assert type(update.error) is told
                assert not update.hypotheses
            else:
                assert update.error is None
                assert repr(update.hypotheses) == repr(told), "company changed an answer"
        self.live -= expected.keys()

    # Invariants, and conditions at the end.

    @invariant()
    def somebody_looks_after_who_is_left(self) -> None:
        if self.live and not self.plans and not self.turns:
            assert any(self.engine.turns.has_work(worker) for worker in self.workers), (
                "all workers sleep and somebody waits"
            )

    @invariant()
    def the_queue_is_as_long_as_it_should_be(self) -> None:
        if not self.has_ended:
            snapshot = self.engine.snapshot()
            assert snapshot.num_waiting == len(self.waiting)
            assert snapshot.num_waiting_tokens == sum(len(each.source_ids) for each in self.waiting)
            assert all(sequence in self.engine.turns.queue for sequence in self.live)

    def teardown(self) -> None:
        if not hasattr(self, "engine"):
            return
        if self.ending == "stop":
            self.engine.stop(0.0)
            self.has_ended = True
        elif self.ending == "death" and not self.has_ended:
            self._die(self.workers[0], RuntimeError("planted"))
        elif self.ending == "siege":
            self._besiege()
        self._drain()
        assert not self.live
        told = Counter(update.sequence for update in self.recorder.updates)
        assert told == Counter(self.accepted), "each is told once"
        if not self.has_ended:
            assert not any(held(self.engine).values()), "something is left over"
            self.engine.turns.check_integrity(self.workers[0])
        self._progress_was_true()

    def _drain(self) -> None:
        """Check that all get their results within a bounded number of turns."""
        most = (len(self.live) + 1) * (_MOST_STEPS + 3)
        for _ in range(most):
            if not self.live and not any(map(self._is_busy, self.workers)):
                return
            for worker in self.workers:
                self._turn(worker)
        raise AssertionError(f"{len(self.live)} are left after {most} rounds")

    def _is_busy(self, worker: Worker) -> bool:
        return (
            worker in self.plans
            or worker in self.turns
            or bool(not self.has_ended and self.engine.turns.has_work(worker))
        )

    def _besiege(self) -> None:
        """Refill the queue with newcomers of the highest priority; earlier sequences must still get their results."""
        patient = {"source_ids": (19, 1), "priority": Priority.LOW, "deadline_seconds": None}
        self._submit([patient], "patient")
        old, number = set(self.live), 0
        most = _LOW_PRIORITY_PERIOD * (len(old) + 1) + 4 * _MOST_STEPS
        for _ in range(most):
            if not old & self.live or self.has_ended:
                return
            while len(self.waiting) < MAX_WAITING:
                number += 1
                newcomer = {"source_ids": (20 + number % 20, 1), "max_output_tokens": 3}
                self._submit([newcomer | {"priority": Priority.HIGH, "deadline_seconds": None}], f"new {number}")
            for worker in self.workers:
                self._turn(worker)
        raise AssertionError(f"{len(old & self.live)} were passed over for {most} rounds")

    def _progress_was_true(self) -> None:
        for sequence, told in self.recorder.progress.items():
            assert sequence.wants_progress
            assert all(longer[: len(before)] == before for before, longer in itertools.pairwise(told))
            assert len(set(told)) == len(told), "the same was told twice"
            answer = solo(key_of(sequence))
            assert answer is None or answer[0].token_ids[: len(told[-1])] == told[-1], "progress was taken back"
