"""Admission, queue and turns under open-loop load, in simulated time that only turns advance: machine-independent."""

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

import pytest

from service.domain.errors import Overloaded
from service.domain.translation import FinishReason
from service.engine.admission import BURST_SECONDS, INTERVAL_SECONDS, Admission
from service.engine.costs import Costs
from service.engine.request_queue import RequestQueue
from service.engine.scheduler import schedule
from service.engine.sequence import DecodedHypothesis, Sequence
from tests.clock import Clock
from tests.unit.engine.recorder import new_sequence

NUM_SLOTS = 32
MEAN_TOKENS = 24.0  # approximate, of sources and of outputs
MOST = 5.0  # times the capacity
SETTLE_SECONDS = MOST * INTERVAL_SECONDS + 2.0  # until what came before the queue counted as standing is done
SECONDS = 20.0  # that are measured


def turn_seconds(num_rows: int) -> float:
    return 0.004 + 0.0005 * num_rows


CAPACITY = NUM_SLOTS / turn_seconds(NUM_SLOTS) / MEAN_TOKENS  # calls per second


@dataclass
class Outcome:
    """Calls of one caller: when each arrived, and, of those accepted, how long it took."""

    accepted: list[tuple[float, float]] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)

    def latencies(self, begin: float = SETTLE_SECONDS, end: float = math.inf) -> list[float]:
        return sorted(seconds for came, seconds in self.accepted if begin <= came < end)

    def p99(self) -> float:
        latencies = self.latencies()
        return latencies[int(0.99 * (len(latencies) - 1))]

    def goodput(self) -> float:
        return sum(SETTLE_SECONDS <= came + took < SETTLE_SECONDS + SECONDS for came, took in self.accepted) / SECONDS


def poisson(rate: float, caller: str, chance: random.Random) -> Iterable[tuple[float, str]]:
    """Generate the arrival times of calls of one sentence."""
    now = 0.0
    while (now := now + chance.expovariate(rate)) < SETTLE_SECONDS + SECONDS:
        yield now, caller


def played(calls: Iterable[tuple[float, str]], max_queue_seconds: float = 0.0) -> dict[str, Outcome]:
    """Simulate calls on one worker; return the outcomes by caller."""
    chance, clock = random.Random(7), Clock()
    costs = Costs(1, NUM_SLOTS, {number: turn_seconds(number) for number in (1, NUM_SLOTS)})
    costs.ended(new_sequence((7,) * round(MEAN_TOKENS)), round(MEAN_TOKENS))
    requests = RequestQueue(100_000, clock, costs.expected_tokens)
    admission = Admission(requests, costs, 100_000, max_queue_seconds)
    coming = sorted(calls, reverse=True)
    outcomes = {caller: Outcome() for _, caller in coming}
    owners: dict[Sequence, str] = {}
    steps: dict[Sequence, int] = {}
    left: dict[Sequence, int] = {}  # of running sequences
    clock.now = 0.0
    while coming or left or requests.waiting.num_sequences:
        if not left and not requests.waiting.num_sequences:
            clock.now = max(clock.now, coming[-1][0])
        while coming and coming[-1][0] <= clock.now:
            came, caller = coming.pop()
            number = len(coming)
            length = max(3, int(chance.lognormvariate(math.log(MEAN_TOKENS), 0.5)))
            source = (5 + number % 1000, 5 + number // 1000, *[7] * (length - 2))
            sequence = new_sequence(
                source, origin=(caller, 1, number), max_output_tokens=200, arrived_seconds=came, deadline_seconds=1e9
            )
            try:
                admission.check([sequence], NUM_SLOTS - len(left), len(left), clock.now)
            except Overloaded:
                outcomes[caller].refused.append(came)
            else:
                requests.admit([sequence])
                owners[sequence] = caller
        plan = schedule(requests.waiting.candidates(), NUM_SLOTS - len(left), 1024, NUM_SLOTS, pads=True)
        requests.start(plan.admitted)
        for each in plan.admitted:
            left[each] = steps[each] = max(2, int(len(each.source_ids) * chance.uniform(0.7, 1.2)))
        seconds = turn_seconds(len(left))
        clock.now += seconds
        costs.stepped(len(left), 1, len(left), seconds)
        for sequence in list(left):
            left[sequence] -= 1
            if not left[sequence]:
                del left[sequence]
                requests.finish(sequence, (DecodedHypothesis((), 0.0, FinishReason.STOP),))
                costs.ended(sequence, steps[sequence])
                came = sequence.arrived_seconds
                outcomes[owners[sequence]].accepted.append((came, clock.now - came))
    return outcomes


@cache
def open_loop(multiple: float) -> Outcome:
    return played(poisson(multiple * CAPACITY, "one", random.Random(1)))["one"]


@pytest.mark.parametrize("multiple", [2.0, MOST])
def test_an_overload_that_lasts_is_held_as_short_as_was_promised(multiple: float) -> None:
    assert open_loop(multiple).p99() < 2.0 * open_loop(0.9).p99()
    assert open_loop(multiple).goodput() > 0.9 * open_loop(1.0).goodput()


def test_its_first_seconds_are_a_bursts() -> None:
    first = open_loop(MOST).latencies(0.0, INTERVAL_SECONDS)
    assert 5.0 < first[-1] < INTERVAL_SECONDS + BURST_SECONDS
    later = open_loop(MOST).latencies(SETTLE_SECONDS)
    assert later[-1] < first[-1] / 2


def test_a_burst_of_hundreds_is_let_in_and_one_that_takes_too_long_is_not() -> None:
    assert not played([(1.0, "one")] * 500)["one"].refused
    refused = played([(1.0, "one")] * 4000)["one"].refused
    assert 0 < 4000 - len(refused) - NUM_SLOTS < 1.5 * BURST_SECONDS * CAPACITY


def test_a_limit_that_is_set_holds_for_bursts_too() -> None:
    """The positive control."""
    assert played([(1.0, "one")] * 500, max_queue_seconds=0.25)["one"].refused


def test_beside_a_greedy_caller_a_small_one_is_never_refused_and_hardly_waits() -> None:
    chance = random.Random(3)
    calls = [*poisson(5.0 * CAPACITY, "greedy", chance), *poisson(0.1 * CAPACITY, "small", chance)]
    outcomes = played(calls)
    assert not outcomes["small"].refused
    assert outcomes["small"].p99() < 2.0 * open_loop(0.9).p99()
    assert outcomes["greedy"].refused
