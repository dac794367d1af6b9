"""Totals of a model's work."""

import threading
import time
from typing import Any

import pytest

from service.domain.options import DecodingOptions
from service.domain.translation import FinishReason
from service.engine.reports import TurnStats
from service.engine.sequence import Sequence, SequenceUpdate
from service.models.loaded_model import Duration, InferenceStatistics
from tests.patience import patient


def update(arrived: float, admitted: float, finished: float) -> SequenceUpdate:
    sequence = Sequence((1,), DecodingOptions(1, 1.0, 1, 10), arrived, admitted_seconds=admitted)
    return SequenceUpdate(sequence, FinishReason.STOP, finished_seconds=finished)


def turn(rows: int, seconds: float) -> TurnStats:
    empty: dict[str, Any] = dict.fromkeys(TurnStats.__annotations__, 0) | {
        "queue_seconds": (),
        "first_token_seconds": (),
    }
    return TurnStats(**(empty | {"batch_size": rows, "run_seconds": seconds}))


def test_calls_are_counted_by_how_they_end() -> None:
    statistics = InferenceStatistics()
    assert statistics.last_used_seconds == 0
    with statistics.call(3):
        pass
    with pytest.raises(KeyError), statistics.call(5):
        raise KeyError
    assert (statistics.succeeded.count, statistics.failed.count, statistics.num_texts) == (1, 1, 3)
    assert abs(statistics.last_used_seconds - time.time()) < 10


def test_a_call_waits_until_its_first_text_runs_and_runs_until_its_last_is_done() -> None:
    statistics = InferenceStatistics()
    statistics.decoded([update(1.0, 3.0, 4.0), update(1.0, 2.0, 2.5), update(1.0, 3.5, 7.0)])
    statistics.decoded([update(1.0, 1.5, 2.0)])
    assert statistics.queue == Duration(2, 1.5)
    assert statistics.decode == Duration(2, 5.5)


def test_turns_of_several_workers_are_added_up() -> None:
    statistics = InferenceStatistics()

    def run(rows: int) -> None:
        for _ in range(2000):
            statistics.turn(turn(rows, 0.5))
            statistics.turn(turn(0, 9.0))  # only encoded

    threads = [threading.Thread(target=run, args=(rows,)) for rows in (3, 1, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patient(20))
    assert statistics.step_seconds() == {1: Duration(2000, 1000.0), 3: Duration(4000, 2000.0)}
    assert list(statistics.step_seconds()) == [1, 3]
