"""The engine's promises hold whatever callers, clocks and devices do, and in whatever order workers take turns."""

import contextlib
from collections.abc import Sequence as Sequence_
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from dragoman_client import ClientError
from service.config.server_config import ServerConfig
from service.domain.translation import FinishReason, Priority
from service.engine import waiting
from service.engine.integrity import IntegrityError
from service.engine.request_queue import RequestQueue, Unwanted
from service.engine.sequence import Sequence
from service.engine.turns import Turns
from service.engine.waiting import WaitingQueue
from service.engine.worker import Worker
from tests.faults.engine_machine import EngineMachine
from tests.faults.planted import swap_answers
from tests.servers import LoopThread, in_process

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
_PLANTED = (500, 35)  # the search ends with the first that finds the fault


def play(num_examples: int, num_steps: int, phases: Sequence_[Phase] = tuple(Phase)) -> None:
    form = settings(
        phases=phases,
        max_examples=num_examples,
        stateful_step_count=num_steps,
        derandomize=True,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=_QUIET,
    )
    run_state_machine_as_test(EngineMachine, settings=form)


@pytest.mark.parametrize(
    ("examples", "steps"), [(100, 40), pytest.param(2000, 60, marks=[pytest.mark.full, pytest.mark.timeout(1800)])]
)
def test_promises_hold_in_any_order_of_events(examples: int, steps: int) -> None:
    play(examples, steps)


class Planted:
    """Faults of the engine, each of which the machine must find."""

    @staticmethod
    def a_deadline_is_missed(patch: pytest.MonkeyPatch) -> None:
        take = RequestQueue.take_unwanted

        def take_aborted(queue: RequestQueue, now: float) -> list[Unwanted]:
            return [each for each in take(queue, now) if each[-1] is not FinishReason.DEADLINE]

        patch.setattr(RequestQueue, "take_unwanted", take_aborted)

    @staticmethod
    def nobody_is_given_up(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Turns, "_drop", lambda self, worker, sequence, *_: self.queue.drop(sequence, *_))

    @staticmethod
    def somebody_who_has_ended_is_not_told(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(RequestQueue, "finish", lambda self, sequence, hypotheses: None)

    @staticmethod
    def somebody_is_told_twice(patch: pytest.MonkeyPatch) -> None:
        take = RequestQueue.take_updates
        patch.setattr(RequestQueue, "take_updates", lambda self: 2 * take(self))

    @staticmethod
    def somebody_is_forgotten_when_the_engine_dies(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(
            RequestQueue, "fail_all", lambda self, error: [self._end(each, error=error) for each in list(self.live)[1:]]
        )

    @staticmethod
    def a_low_priority_starves(patch: pytest.MonkeyPatch) -> None:
        patch.setitem(waiting._STRIDES, Priority.HIGH, 0)

    @staticmethod
    def rows_of_the_abandoned_stay(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Worker, "remove_abandoned", lambda self: None)

    @staticmethod
    def answers_are_swapped(patch: pytest.MonkeyPatch) -> None:
        swap_answers(patch)

    @staticmethod
    def who_left_the_queue_is_still_counted(patch: pytest.MonkeyPatch) -> None:
        drop = WaitingQueue.drop

        def drop_and_count(queue: WaitingQueue, sequence: Sequence) -> None:
            drop(queue, sequence)
            queue.num_sequences += 1

        patch.setattr(WaitingQueue, "drop", drop_and_count)

    @staticmethod
    def a_wake_up_is_missed(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Turns, "has_work", lambda self, worker: bool(worker.batch.num_rows))


@pytest.mark.parametrize("fault", [name for name in vars(Planted) if not name.startswith("_")])
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    getattr(Planted, fault)(monkeypatch)
    with pytest.raises(AssertionError):
        play(*_PLANTED, phases=[Phase.generate])


def test_a_servers_engine_compares_its_books(loop_thread: LoopThread, tiny_models: Path) -> None:
    """Real servers of these tests fail when an engine's state is inconsistent."""
    config = ServerConfig(models=tiny_models, num_threads=1, grace_seconds=5.0)

    def translate_with_wrong_books() -> None:
        with in_process(loop_thread, config) as server, server.client() as client:
            server.server.models[0].engine.turns.queue.waiting.num_tokens += 1
            with contextlib.suppress(ClientError):
                client.translate(["Hello"], "en", "de")

    with pytest.raises(IntegrityError, match="tokens wait"):
        translate_with_wrong_books()
