"""Totals of a model's work."""

import threading
import time
from typing import Any

from service.engine.reports import TurnStats
from service.models.loaded_model import Duration, InferenceStatistics
from tests.patience import patient


def turn(rows: int, seconds: float) -> TurnStats:
    empty: dict[str, Any] = dict.fromkeys(TurnStats.__annotations__, 0) | {
        "queue_seconds": (),
        "first_token_seconds": (),
    }
    return TurnStats(**(empty | {"batch_size": rows, "run_seconds": seconds}))


def test_calls_are_counted_by_how_they_end() -> None:
    statistics = InferenceStatistics()
    assert statistics.last_used_seconds == 0
    statistics.called(3, 0.5, succeeded=True)
    statistics.called(5, 0.5, succeeded=False)
    assert (statistics.succeeded.count, statistics.failed.count, statistics.num_texts) == (1, 1, 3)
    assert abs(statistics.last_used_seconds - time.time()) < 10


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
