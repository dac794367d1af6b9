"""Admission: real requests, with measurements set by the tests; and how long a queue may be."""

import dataclasses

import pytest

from service.domain.call import Origin
from service.domain.errors import Overloaded, TooLate
from service.domain.translation import Priority
from service.engine.admission import INTERVAL_SECONDS, Admission, BurstAllowance
from service.engine.costs import Costs
from service.engine.request_queue import RequestQueue
from service.engine.sequence import Sequence
from tests.unit.engine.recorder import new_sequence

SECONDS_PER_ROW = 0.01
NOW = 100.0
TOKENS = 10  # of each source and of each output


class Door:
    """Two workers of four rows; a step of a full worker takes 80 ms, and a sequence ten steps."""

    def __init__(self, max_waiting: int = 1000, max_queue_seconds: float = 1.0, is_measured: bool = True) -> None:
        self.costs = Costs(2, 4, {1: 0.04, 4: 0.08} if is_measured else None)
        if is_measured:
            self.costs.ended(new_sequence((5,) * TOKENS), TOKENS)
        self.now = NOW
        self.requests = RequestQueue(max_waiting, lambda: 0.0, self.costs.expected_tokens)
        self.admission = Admission(self.requests, self.costs, max_waiting, max_queue_seconds)

    def enter(self, *sequences: Sequence, num_free: int = 0, num_rows: int = 4) -> None:
        self.admission.check(sequences, num_free, num_rows, now_seconds=self.now)
        self.requests.admit(sequences)


def sequence(
    number: int,
    request_id: str = "",
    beam_size: int = 1,
    seconds: float | None = None,
    origin: Origin | None = None,
) -> Sequence:
    deadline = None if seconds is None else NOW + seconds
    source = tuple(range(number, number + TOKENS))
    name = request_id or str(number)
    return new_sequence(source, name, beam_size, max_output_tokens=30, deadline_seconds=deadline, origin=origin)


def test_the_wait_is_the_work_of_those_who_wait_at_the_measured_rate() -> None:
    door = Door(max_queue_seconds=100)
    assert door.admission.wait_seconds(num_free_slots=1) == 0
    assert door.admission.wait_seconds(0) == pytest.approx(TOKENS * SECONDS_PER_ROW), "one must be done first"
    for number in range(9):
        door.enter(sequence(number))
    assert door.admission.wait_seconds(0) == pytest.approx(10 * TOKENS * SECONDS_PER_ROW)
    assert door.admission.wait_seconds(4) == pytest.approx(6 * TOKENS * SECONDS_PER_ROW), "four begin at once"


def test_work_is_what_counts_not_calls() -> None:
    greedy, beams = Door(max_queue_seconds=100), Door(max_queue_seconds=100)
    for number in range(5):
        greedy.enter(sequence(number))
        beams.enter(sequence(number, beam_size=4))
    assert beams.requests.waiting.expected_rows == pytest.approx(4 * greedy.requests.waiting.expected_rows)
    assert beams.admission.wait_seconds(0) == pytest.approx(4 * greedy.admission.wait_seconds(0))


def test_whoever_would_wait_too_long_is_refused_with_a_hint() -> None:
    door = Door(max_queue_seconds=1.0)
    for number in range(10):
        door.enter(sequence(number))
    with pytest.raises(Overloaded, match=r"would wait about 1\.1 s, and at most 1\.0 s is allowed") as raised:
        door.enter(sequence(10))
    assert raised.value.retry_after_seconds == 0.6  # in tenths, so that equal answers are equal
    with pytest.raises(Overloaded):
        door.admission.check_queue(0, Priority.NORMAL, ("new",), NOW)
    door.admission.check_queue(0, Priority.HIGH, ("new",), NOW)
    assert door.requests.waiting.num_sequences == 10


def test_a_call_of_many_texts_keeps_nobody_else_out() -> None:
    door = Door(max_queue_seconds=1.0)
    door.enter(*(sequence(number, "big") for number in range(900)))
    for number in range(900, 907):
        door.enter(sequence(number))
    assert door.admission.wait_seconds(0) <= 1.0, "requests take turns"


def test_the_number_of_texts_stays_bounded() -> None:
    door = Door(max_waiting=3, max_queue_seconds=100)
    door.enter(sequence(1), sequence(2))
    with pytest.raises(Overloaded, match="2 sequences, 2 of at most 3 are waiting"):
        door.enter(sequence(3), sequence(4))
    door.enter(sequence(3))


def test_while_nothing_is_measured_nobody_is_refused_for_the_time() -> None:
    door = Door(max_queue_seconds=0.001, is_measured=False)
    for number in range(500):
        door.enter(sequence(number, seconds=0.5))


def test_a_greedy_caller_is_refused_and_another_is_not() -> None:
    door = Door(max_queue_seconds=1.0)
    greedy = [sequence(number, origin=("A", number)) for number in range(11)]
    for each in greedy[:10]:
        door.enter(each)
    with pytest.raises(Overloaded, match=r"wait about 1\.1 s"):
        door.enter(greedy[10])
    for number in range(4):
        door.enter(sequence(20 + number, origin=("B", number)))
    assert door.admission.wait_seconds(0) == pytest.approx(1.5), "the queue as a whole"


def test_a_queue_that_is_full_of_one_callers_has_room_for_another() -> None:
    door = Door(max_waiting=20, max_queue_seconds=100)
    for number in range(17):
        door.enter(sequence(number, origin=("A", number)))
    with pytest.raises(Overloaded, match="1 sequence, 17 of at most 20 are waiting, and this caller may add 0"):
        door.enter(sequence(17, origin=("A", 17)))
    door.enter(sequence(20, origin=("B", 1)))
    three = [sequence(30 + number, origin=("C", 1)) for number in range(3)]
    with pytest.raises(Overloaded):
        door.enter(*three)
    assert door.requests.waiting.num_sequences == 18


def test_an_open_limit_lets_a_burst_in_and_no_standing_queue() -> None:
    door = Door(max_queue_seconds=0.0)
    for number in range(50):
        door.enter(sequence(number))
    assert door.admission.wait_seconds(0) == pytest.approx(5.1)
    door.now += INTERVAL_SECONDS
    with pytest.raises(Overloaded, match=r"5\.1 s, and at most 0\.2 s is allowed"):
        door.enter(sequence(50))
    door.admission.check_queue(0, Priority.HIGH, ("new",), door.now)  # its own queue is not standing


def test_the_open_limit_of_a_standing_queue_follows_a_slow_model() -> None:
    door = Door(max_queue_seconds=0.0)
    for number in range(9):
        door.enter(sequence(number))
    slow = Costs(1, 4, {4: 2.0})
    slow.ended(new_sequence((5,) * 10), 80)
    admission = Admission(door.requests, slow, 1000, 0.0)
    for now in (0.0, INTERVAL_SECONDS):
        with pytest.raises(Overloaded, match=r"at most 40\.0 s is allowed"):  # a quarter of 160 s
            admission.check_queue(0, Priority.NORMAL, ("new",), now)


def test_what_could_not_be_done_in_time_on_an_idle_server_is_too_late() -> None:
    door = Door()
    with pytest.raises(TooLate, match=r"has 0\.20 s left and takes about 0\.40 s"):
        door.enter(sequence(1, seconds=0.2), num_free=8, num_rows=0)
    door.enter(sequence(1, seconds=0.41), num_free=8, num_rows=0)


def test_time_that_is_reserved_for_what_comes_after_counts() -> None:
    reserving = dataclasses.replace(sequence(1, seconds=0.9), reserved_seconds=0.9)
    with pytest.raises(TooLate, match=r"has 0\.90 s left and takes about 1\.30 s"):
        Door().enter(reserving, num_free=8, num_rows=0)
    Door().enter(dataclasses.replace(sequence(1, seconds=0.9), reserved_seconds=0.49), num_free=8, num_rows=0)
    assert Door().admission.alone_seconds([sequence(1), sequence(2)]) == pytest.approx(0.4)
    assert Door().admission.alone_seconds([]) == 0.0


def test_what_continues_a_call_does_not_meet_the_limit_of_the_queue() -> None:
    door = Door(max_queue_seconds=0.5)
    for number in range(8):
        door.requests.admit([sequence(number)])
    with pytest.raises(Overloaded):
        door.enter(sequence(20))
    door.enter(dataclasses.replace(sequence(20), is_continued=True))


def test_a_deadline_that_has_passed_is_too_late_whatever_is_known() -> None:
    with pytest.raises(TooLate):
        Door(is_measured=False).enter(sequence(1, seconds=-0.001))


def test_what_others_make_too_late_is_overload() -> None:
    door = Door(max_queue_seconds=100)
    for number in range(20):
        door.enter(sequence(number))
    with pytest.raises(Overloaded, match=r"including 2\.10 s of waiting") as raised:
        door.enter(sequence(20, seconds=2.0))
    assert raised.value.retry_after_seconds == 1.3
    with pytest.raises(Overloaded, match=r"would take about 3\.3"):
        door.enter(sequence(20, seconds=3.3))  # those that just fit would all be late
    door.enter(sequence(20, seconds=3.4))


def test_those_who_wait_for_the_next_turn_count_as_running() -> None:
    door = Door(max_queue_seconds=100)
    for number in range(4):
        door.enter(sequence(number), num_free=8, num_rows=0)
    with pytest.raises(Overloaded, match=r"would take about 0\.77 s"):
        door.enter(sequence(4, seconds=0.45), num_free=8, num_rows=0)


def test_a_call_with_many_texts_needs_time_for_all_of_them() -> None:
    def texts(seconds: float) -> list[Sequence]:
        return [sequence(number, "big", seconds=seconds) for number in range(100)]

    with pytest.raises(TooLate, match=r"10\.00 s"):
        Door().enter(*texts(5.0), num_free=8, num_rows=0)
    Door().enter(*texts(10.1), num_free=8, num_rows=0)


def test_a_call_without_sequences_is_let_in() -> None:
    Door(max_waiting=1).enter()


def used_up(*noted: tuple[float, bool]) -> bool:
    """Return whether the allowance is used up after noting, at each of these moments, whether the queue is long."""
    allowance = BurstAllowance()
    for moment, is_long in noted:
        allowance.note(moment * INTERVAL_SECONDS, is_long=is_long)
    return allowance.is_used_up


LONG, SHORT = True, False


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        ([(5.0, SHORT), (5.0, LONG), (5.9, LONG)], False),
        ([(5.0, LONG), (5.5, LONG), (6.0, LONG)], True),
        ([(5.0, LONG), (5.8, SHORT), (6.0, LONG), (6.7, LONG)], False),  # it was short in between
        ([(5.0, LONG), (6.0, LONG), (7.5, LONG)], True),  # nobody came, and it was long
        ([(5.0, LONG), (6.0, LONG), (60.0, SHORT), (60.0, LONG)], False),
        ([(5.0, LONG), (60.0, SHORT), (60.9, LONG)], False),  # when it became short is unknown
    ],
)
def test_a_burst_may_wait_and_a_queue_that_stays_long_may_not(noted: list[tuple[float, bool]], expected: bool) -> None:
    assert used_up(*noted) is expected


def test_a_queue_that_is_held_at_its_limit_recovers_only_while_it_is_short_most_of_the_time() -> None:
    held = [(6.0 + 0.1 * number, number % 3 != 0) for number in range(60)]  # as a limit that works makes it
    assert used_up((5.0, LONG), *held, (12.0, LONG))
    assert not used_up((5.0, LONG), (6.0, LONG), (10.0, SHORT), (10.9, LONG)), (
        "four intervals later it may be long again"
    )
    assert used_up((5.0, LONG), (6.0, LONG), (10.0, SHORT), (11.0, LONG))
