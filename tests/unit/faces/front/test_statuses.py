"""Several workers' states as one: sums where they agree, and who differs where they do not."""

from typing import Any

from service.faces.front.statuses import errors_of, models_of, phase_of, states_of, workers_of
from service.observe.recent_errors import NUM_KEPT


def model(version: str = "1", slots_running: int = 1) -> dict[str, Any]:
    return {
        "name": "tiny",
        "version": version,
        "pairs": [["en", "de"]],
        "slots_running": slots_running,
        "slots_max": 8,
        "queue_sequences": 2,
    }


def state(name: str = "tiny", now: str = "ready", reason: str = "") -> dict[str, Any]:
    return {"name": name, "version": "1", "state": now, "reason": reason}


def test_the_whole_serves_while_any_worker_does() -> None:
    def whole(*phases: str | None) -> str:
        return phase_of({number: phase and {"phase": phase} for number, phase in enumerate(phases)})  # type: ignore[misc]

    assert whole("serving", "loading", None) == "serving"
    assert whole("draining", "loading") == "loading"
    assert whole("draining", "recovering") == "recovering"
    assert whole("failed", "draining", None) == "draining"
    assert whole(None, None) == "silent"


def test_models_are_summed_and_those_of_some_workers_say_of_which() -> None:
    statuses = {0: {"models": [model()]}, 1: {"models": [model(slots_running=3), model("2")]}, 2: None}
    one, two = models_of(statuses)
    assert one == {**model(slots_running=4), "slots_max": 16, "queue_sequences": 4}
    assert two == {**model("2"), "workers": [1]}


def test_states_that_differ_are_all_shown() -> None:
    documents = {
        0: {"models": [state(), state("b")]},
        1: {"models": [state(), state("b", "unavailable", "damaged")]},
        2: None,
        3: {"models": [state(), state("a")]},
    }
    assert states_of(documents)["models"] == [
        {**state("a"), "workers": [3]},
        {**state("b"), "workers": [0]},
        {**state("b", "unavailable", "damaged"), "workers": [1]},
        state(),
    ]


def test_the_latest_errors_of_all_are_kept() -> None:
    statuses = {
        number: {
            "errors": [{"time_seconds": 100.0 - 2 * each - number, "code": "INTERNAL"} for each in range(NUM_KEPT)]
        }
        for number in range(2)
    }
    errors = errors_of({**statuses, 2: None})
    assert len(errors) == NUM_KEPT
    assert [(error["time_seconds"], error["worker"]) for error in errors[:3]] == [(100.0, 0), (99.0, 1), (98.0, 0)]


def test_each_worker_has_a_line() -> None:
    status = {
        "phase": "serving",
        "pid": 7,
        "uptime_seconds": 1.5,
        "calls": {"OK": 2, "INTERNAL": 1},
        "sequences_running": 4,
        "queue_sequences": 5,
        "memory_bytes": 6,
    }
    one, two = workers_of({0: status, 3: None})
    assert one == {
        "number": 0,
        "phase": "serving",
        "pid": 7,
        "uptime_seconds": 1.5,
        "calls": 3,
        "sequences_running": 4,
        "queue_sequences": 5,
        "memory_bytes": 6,
    }
    assert two == {"number": 3, "phase": "silent"}
