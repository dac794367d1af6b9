from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.costs import Costs
from service.engine.runner import RunLimits
from service.engine.scheduler import awaited_seconds, encode_budget, run_limits, schedule
from service.engine.sequence import Sequence
from service.engine.waiting import WaitingQueue
from tests.unit.engine.recorder import new_sequence


def of_length(length: int, request_id: str = "r", beam_size: int = 1) -> Sequence:
    return new_sequence(tuple([5] * length), request_id, beam_size)


@pytest.mark.parametrize(
    ("lengths", "num_slots", "budget", "most", "pads", "admitted"),
    [
        ([4, 4, 4, 4, 4], 3, 1000, 100, True, [0, 1, 2]),
        ([4, 4, 4, 4, 4], 0, 1000, 100, True, []),
        ([4, 4, 4, 4, 4], 64, 1000, 2, True, [0, 1]),
        ([4, 4, 4, 4, 4], 64, 1000, 0, True, []),
        ([10, 10, 10, 10, 10], 64, 35, 100, True, [0, 1, 2]),
        ([100, 3], 64, 50, 100, True, [0]),  # longer than the budget: a run of its own
        ([4, 5, 90, 4, 6], 64, 1000, 100, True, [0, 1, 4]),  # what is unsuitable is passed over, and so is its request
        ([4, 90, 5, 300, 6], 64, 120, 100, False, [0, 1, 2]),
    ],
)
def test_who_joins_is_taken_in_order_within_slots_and_budget(
    lengths: list[int], num_slots: int, budget: int, most: int, pads: bool, admitted: list[int]
) -> None:
    waiting = [of_length(length, request) for length, request in zip(lengths, "abccd", strict=False)]
    plan = schedule(waiting, num_slots, budget, most, pads=pads)
    assert plan.admitted == tuple(waiting[index] for index in admitted)


def test_a_wide_beam_that_does_not_fit_is_not_overtaken() -> None:
    wide, narrow = of_length(4, "wide", beam_size=4), of_length(4, "narrow")
    assert schedule([wide, narrow], 3, 1000, 100, pads=True).admitted == ()
    assert schedule([narrow, wide, narrow], 4, 1000, 100, pads=True).admitted == (narrow,)
    assert schedule([wide, narrow], 5, 1000, 100, pads=True).admitted == (wide, narrow)


def test_a_thousand_unsuitable_sources_are_not_all_looked_at() -> None:
    seen = 0

    def candidates() -> Iterator[Sequence]:
        nonlocal seen
        yield of_length(4)
        for number in range(1000):
            seen += 1
            yield of_length(500, str(number))

    schedule(candidates(), 64, 600, 100, pads=True)
    assert seen < 100


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 40), st.integers(1, 8)), min_size=1, max_size=40),
    st.integers(8, 16),
    st.integers(20, 200),
    st.booleans(),
)
def test_everyone_gets_a_turn_and_every_plan_keeps_the_limits(
    waiting: list[tuple[str, int, int]], num_slots: int, budget: int, pads: bool
) -> None:
    queue = WaitingQueue(100)
    queue.admit(of_length(length, request, beam) for request, length, beam in waiting)
    turns = 0
    while queue.num_sequences:
        head = next(queue.candidates())
        order = list(queue.candidates())
        plan = schedule(queue.candidates(), num_slots, budget, 100, pads=pads)
        assert plan.admitted[0] is head  # all slots are free in each turn here
        assert sum(sequence.num_slots for sequence in plan.admitted) <= num_slots
        assert plan.num_tokens <= plan.num_padded_tokens <= max(budget, len(head.source_ids))
        for sequence in plan.admitted:  # first come, first served within a request
            assert all(
                earlier in plan.admitted
                for earlier in order[: order.index(sequence)]
                if earlier.call.request_id == sequence.call.request_id
            )
        queue.take(plan.admitted)
        turns += 1
    assert turns <= len(waiting)


def costs_of(step_seconds: float, token_seconds: float = 0.0, max_rows: int = 64) -> Costs:
    """Return what is known of steps that take as long with any number of rows, and of sources of ten tokens."""
    costs = Costs(1, max_rows, {max_rows: step_seconds})
    if token_seconds:
        costs.encoded(20, 200, 200 * token_seconds)
    return costs


def limits(costs: Costs, num_rows: int = 8, num_sequences: int = 8, **given: Any) -> RunLimits:
    asked: dict[str, Any] = {"is_awaited": False, "needs_row": False, **given}
    return run_limits(costs, num_rows, num_sequences, **asked)


UNMEASURED, USUAL = costs_of(0.01), costs_of(0.01, 0.0001)


@pytest.mark.parametrize(
    ("costs", "num_rows", "num_free", "num_tokens"),
    [
        (USUAL, 0, 64, 1000),  # nobody runs, so nobody is held up
        (UNMEASURED, 3, 1, 1000),  # before anything was encoded only the bound counts
        (USUAL, 32, 32, 100),  # half of the slots are in use: encoding takes as long as a run
        (USUAL, 60, 4, 100),
        (USUAL, 8, 56, 700),  # empty slots let it take longer
        (USUAL, 1, 63, 1000),
        (costs_of(0.01, 1.0), 64, 1, 1),  # there is always room for one
        # Though steps are faster, it may take as long as four sources.
        (costs_of(0.001, 0.00001), 32, 32, 600),
        (costs_of(0.001, 0.0003), 32, 32, 40),
        (costs_of(0.001, 0.001), 32, 32, 20),
    ],
)
def test_how_much_is_encoded_in_a_turn(costs: Costs, num_rows: int, num_free: int, num_tokens: int) -> None:
    assert encode_budget(costs, num_rows, num_free, 1000) == pytest.approx(num_tokens, rel=0.01, abs=1)


@pytest.mark.parametrize(("token_seconds", "seconds"), [(0.00001, 0.006), (0.0003, 0.012), (0.001, 0.02)])
def test_an_awaited_run_takes_as_long_as_four_sources_within_bounds(token_seconds: float, seconds: float) -> None:
    assert awaited_seconds(costs_of(0.001, token_seconds)) == pytest.approx(seconds)


def test_the_first_run_is_one_step_and_ends_with_the_first_row() -> None:
    assert limits(Costs(1, 64)) == RunLimits(1, 0)
    assert limits(Costs(1, 64), needs_row=True) == RunLimits(1, 1)


@pytest.mark.parametrize(
    ("step_seconds", "unhurried", "awaited"),
    [(0.00001, 64, 64), (0.0005, 20, 12), (0.001, 10, 6), (0.004, 2, 1), (0.1, 1, 1)],
)
def test_runs_are_shorter_when_somebody_waits(step_seconds: float, unhurried: int, awaited: int) -> None:
    costs = costs_of(step_seconds * 0.999)
    assert limits(costs).max_steps == unhurried
    assert limits(costs, is_awaited=True).max_steps == awaited


def test_a_run_is_never_shorter_than_an_awaited_one_and_goes_on_for_its_time_whoever_comes() -> None:
    run = limits(costs_of(0.000999))
    assert (run.max_steps, run.least_steps) == (10, 6)
    costs = costs_of(0.000999, 0.0003)
    assert limits(costs).max_steps == limits(costs, is_awaited=True).max_steps == 12


def test_runs_end_at_a_deadline_and_with_the_first_token_that_somebody_reads() -> None:
    costs = costs_of(0.000999)
    assert limits(costs, seconds_left=0.004).max_steps == 4
    assert limits(costs, seconds_left=-1.0).max_steps == 1
    assert limits(costs, steps_to_first_token=2).max_steps == 2
    assert limits(costs, steps_to_first_token=50).max_steps == 10


@pytest.mark.parametrize(
    ("step_seconds", "num_rows", "num_sequences", "returns_after"),
    [
        (0.01, 8, 8, 1),
        (0.00125, 8, 8, 2),
        (0.0005, 16, 16, 6),
        (0.0005, 16, 4, 4),
        (0.00001, 8, 8, 8),
        (0.0005, 1, 1, 1),
    ],
)
def test_a_run_lets_others_join_once_enough_sequences_have_ended(
    step_seconds: float, num_rows: int, num_sequences: int, returns_after: int
) -> None:
    costs = costs_of(step_seconds)
    assert limits(costs, num_rows, num_sequences, needs_row=True).returns_after == returns_after
    assert limits(costs, num_rows, num_sequences).returns_after == 0
