from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.scheduler import schedule
from service.engine.sequence import Sequence
from service.engine.waiting import WaitingQueue
from tests.unit.engine.recorder import new_sequence


def of_length(length: int, request_id: str = "r", beam_size: int = 1) -> Sequence:
    return new_sequence(tuple([5] * length), request_id, beam_size)


def test_admits_in_order_while_slots_are_free() -> None:
    waiting = [of_length(4, str(number)) for number in range(5)]
    assert schedule(waiting, 3, 1000, 100, pads=True).admitted == tuple(waiting[:3])
    assert schedule(waiting, 0, 1000, 100, pads=True).admitted == ()


def test_no_more_are_admitted_than_asked_for() -> None:
    waiting = [of_length(4, str(number)) for number in range(5)]
    assert schedule(waiting, 64, 1000, 2, pads=True).admitted == tuple(waiting[:2])
    assert schedule(waiting, 64, 1000, 0, pads=True).admitted == ()


def test_a_wide_beam_that_does_not_fit_is_not_overtaken() -> None:
    wide, narrow = of_length(4, "wide", beam_size=4), of_length(4, "narrow")
    assert schedule([wide, narrow], 3, 1000, 100, pads=True).admitted == ()
    assert schedule([narrow, wide, narrow], 4, 1000, 100, pads=True).admitted == (narrow,)
    assert schedule([wide, narrow], 5, 1000, 100, pads=True).admitted == (wide, narrow)


def test_the_encoder_run_stays_within_its_budget_of_padded_tokens() -> None:
    waiting = [of_length(10, str(number)) for number in range(10)]
    plan = schedule(waiting, 64, 35, 100, pads=True)
    assert len(plan.admitted) == 3
    assert plan.num_tokens == plan.num_padded_tokens == 30


def test_a_source_longer_than_the_budget_gets_a_run_of_its_own() -> None:
    long, short = of_length(100, "long"), of_length(3, "short")
    assert schedule([long, short], 64, 50, 100, pads=True).admitted == (long,)


def test_an_unsuitable_length_is_passed_over_for_this_turn_but_its_request_keeps_its_order() -> None:
    short, also_short = of_length(4, "a"), of_length(5, "b")
    long, after_long, other = of_length(90, "c"), of_length(4, "c"), of_length(6, "d")
    waiting = [short, also_short, long, after_long, other]
    assert schedule(waiting, 64, 1000, 100, pads=True).admitted == (short, also_short, other)


def test_without_padding_every_length_is_suitable_within_the_budget() -> None:
    waiting = [of_length(length, str(length)) for length in (4, 90, 5, 300, 6)]
    plan = schedule(waiting, 64, 120, 100, pads=False)
    assert plan.admitted == (waiting[0], waiting[1], waiting[2], waiting[4])
    assert plan.num_tokens == plan.num_padded_tokens == 105


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


@settings(derandomize=True, deadline=None, max_examples=150)
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
