"""Calls are open until their whole answer is sent; those of services that do not count are not awaited."""

import asyncio
import itertools
from contextlib import ExitStack
from typing import Any

import grpc
import pytest

from service.calls.open_calls import CALL_BYTES, ByteBudget, Hold, OpenCalls
from service.calls.pipeline import CallObserver, CallPipeline
from service.domain.errors import MemoryFull, MessageTooSlow, NotFound
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors
from tests.patience import patient
from tests.unit.faces.grpc.served_call import Context, serve

KIB, MIB = 2**10, 2**20

OWN = "/dragoman.v1.TranslationService/Translate"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
SOON_SECONDS = 0.01
LIMIT_SECONDS = patient(30.0)


def fill(budget: ByteBudget, num_bytes: int, owner: str | None = None, pieces: int = 1) -> None:
    """Hold so many bytes again and again, in `pieces`, for another owner each time."""
    for number in itertools.count():
        hold = budget.hold(str(number) if owner is None else owner)
        for _ in range(pieces):
            hold.grow(num_bytes // pieces)


class Told:
    """The holds that have made room."""

    def __init__(self) -> None:
        self.holds: list[Hold] = []

    def arriving(self, stack: ExitStack, budget: ByteBudget, owner: str) -> Hold:
        hold = budget.hold(owner)
        stack.enter_context(budget.arriving(hold, lambda _: self.holds.append(hold)))
        return hold


def test_what_is_held_is_counted_until_it_is_released() -> None:
    budget = ByteBudget(64 * MIB, MIB)
    one, other = budget.hold(), budget.hold()
    one.grow(MIB)
    other.grow(1000)
    one.grow(-1000)
    assert budget.num_bytes == MIB
    one.release()
    one.release()
    assert budget.num_bytes == 1000


def test_what_is_handed_over_counts_once() -> None:
    budget = ByteBudget(64 * MIB, MIB)
    call = budget.hold("a")
    call.grow(1000)
    document = call.hand_over(900)
    assert (budget.num_bytes, call.num_bytes, document.num_bytes) == (1000, 100, 900)
    call.release()
    assert budget.num_bytes == 900
    document.hand_over(1000).release()
    assert (budget.num_bytes, document.num_bytes) == (0, 0)


def test_a_flood_of_large_messages_leaves_room_for_small_ones() -> None:
    budget = ByteBudget(64 * MIB, MIB)
    with pytest.raises(MemoryFull) as raised:
        fill(budget, MIB)
    assert str(raised.value) == (
        "there is no room for 1048576 bytes beside the messages of other calls; "
        "allowed: 64 MiB for all calls together. Try again later, or send smaller messages."
    )
    assert raised.value.retry_after_seconds > 0
    assert 40 * MIB <= budget.num_bytes <= 49 * MIB
    for number in range(100):
        budget.hold(f"small {number}").grow(CALL_BYTES)


def test_it_is_never_more_than_it_should() -> None:
    budget = ByteBudget(8 * MIB, MIB // 4)
    for size in (MIB // 4, 64 * KIB, 1000, 1):
        with pytest.raises(MemoryFull):
            fill(budget, size)
    assert budget.num_bytes <= budget.max_bytes == 8 * MIB


@pytest.mark.parametrize("max_bytes", [1, 8 * MIB, 1000 * MIB])
def test_the_largest_message_fits_when_nothing_else_is_held(max_bytes: int) -> None:
    budget = ByteBudget(max_bytes, 8 * MIB)
    hold = budget.hold()
    hold.grow(CALL_BYTES)
    hold.grow(8 * MIB)
    hold.release()
    assert budget.num_bytes == 0


def test_the_calls_of_one_owner_hold_at_most_half_and_leave_room_for_small_ones_of_the_same() -> None:
    budget = ByteBudget(64 * MIB, MIB)
    bob = [budget.hold("bob") for _ in range(40)]
    with pytest.raises(MemoryFull, match="beside the messages of your other calls; allowed: 32 MiB"):  # noqa: PT012
        for hold in bob:
            hold.grow(MIB)
    assert 28 * MIB <= budget.num_bytes <= 29 * MIB
    budget.hold("eve").grow(MIB)
    bob[0].release()
    bob[-1].grow(MIB)
    budget.hold("bob").grow(CALL_BYTES)


def test_who_has_no_key_where_others_have_is_one_owner_too() -> None:
    budget = ByteBudget(64 * MIB, MIB)
    with pytest.raises(MemoryFull, match="your other calls"):
        fill(budget, CALL_BYTES, owner="")
    assert budget.num_bytes <= 32 * MIB
    budget.hold("bob").grow(MIB)


def test_a_document_needs_twice_its_size() -> None:
    """C3: of six at once some fit; each was refused for the parts that the others had taken."""
    budget = ByteBudget(192 * MIB, MIB)
    with pytest.raises(MemoryFull):
        fill(budget, 31 * MIB)
    assert budget.num_bytes == 5 * 31 * MIB


def test_it_is_the_same_however_a_message_arrives() -> None:
    budget, whole = ByteBudget(192 * MIB, MIB), ByteBudget(192 * MIB, MIB)
    with pytest.raises(MemoryFull):
        fill(whole, MIB)
    with pytest.raises(MemoryFull):
        fill(budget, MIB, pieces=16)
    assert budget.num_bytes == pytest.approx(whole.num_bytes, abs=2 * MIB)


def test_of_what_has_arrived_in_part_some_goes_on() -> None:
    """Nobody waits for room that nobody gives: who asks in vain ends, and the others have its bytes."""
    budget = ByteBudget(64 * MIB, MIB)
    left = {budget.hold(f"owner {number}"): 0 for number in range(40)}
    whole = []
    while left:
        for hold in [*left]:
            try:
                hold.grow(64 * KIB)
            except (MemoryFull, MessageTooSlow):
                hold.release()
                del left[hold]
            else:
                left[hold] += 64 * KIB
                if left[hold] == 4 * MIB:
                    whole.append(hold)
                    del left[hold]
    assert len(whole) >= 10
    assert budget.num_bytes == len(whole) * 4 * MIB


def test_an_owner_over_its_share_gives_up_what_has_not_grown_for_longest() -> None:
    budget, told = ByteBudget(64 * MIB, MIB), Told()
    with ExitStack() as stack:
        first, second, third = (told.arriving(stack, budget, "bob") for _ in range(3))
        second.grow(12 * MIB)
        first.grow(12 * MIB)
        third.grow(12 * MIB)
        assert told.holds == [second]
        assert (budget.num_bytes, second.num_bytes) == (24 * MIB, 0)
        with pytest.raises(MessageTooSlow, match="did not arrive in time, and other calls needed its memory"):
            second.grow(1)
        with pytest.raises(MemoryFull):
            first.grow(30 * MIB)  # there is no room for that, whatever the third one gives up
        assert told.holds == [second]
        budget.hold("bob").grow(9 * MIB)
        assert told.holds == [second, first]


def test_who_holds_most_gives_up_something_for_others() -> None:
    budget, told = ByteBudget(64 * MIB, MIB), Told()
    with ExitStack() as stack:
        eves = [told.arriving(stack, budget, "eve") for _ in range(3)]
        for hold in eves:
            hold.grow(9 * MIB)
        bob = told.arriving(stack, budget, "bob")
        bob.grow(9 * MIB)
        budget.hold("carl").grow(15 * MIB)
        assert told.holds == eves[:1]
        with pytest.raises(MemoryFull, match="messages of other calls"):
            budget.hold("dora").grow(20 * MIB)  # more than anybody else has
        assert told.holds == eves[:1]
    with pytest.raises(MemoryFull):
        budget.hold("dora").grow(12 * MIB)  # what has arrived stays
    for hold in (*eves, bob):
        hold.release()
    assert budget.num_bytes == 15 * MIB


def pipeline() -> CallPipeline:
    metrics, errors = Metrics(), RecentErrors()
    observer = CallObserver(metrics, errors, AccessLog(0.0, with_texts=False))
    return CallPipeline(metrics, observer, lambda _: None)


async def answered(open_calls: OpenCalls, method: str = OWN, *, failing: bool = False) -> Context:
    """Return a call whose handler has returned, or raised, and whose answer is not sent."""

    async def answer(request: bytes, context: Any) -> bytes:
        if failing:
            raise NotFound("planted", "model", "x")
        return request

    context = Context()
    if failing:
        with pytest.raises(grpc.aio.AbortError):
            await serve(method, answer, context, pipeline(), open_calls)
        assert context.ended
        assert context.ended[0] is grpc.StatusCode.NOT_FOUND
    else:
        assert await serve(method, answer, context, pipeline(), open_calls) == b""
    return context


async def test_without_calls_there_is_nothing_to_wait_for() -> None:
    await asyncio.wait_for(OpenCalls().none_for(SOON_SECONDS), LIMIT_SECONDS)


@pytest.mark.parametrize("failing", [False, True])
async def test_a_call_is_open_until_its_answer_is_sent(failing: bool) -> None:
    open_calls = OpenCalls()
    first, second = [await answered(open_calls, failing=failing) for _ in range(2)]
    waiting = asyncio.create_task(open_calls.none_for(0))
    for context in (first, second):
        assert not (await asyncio.wait({waiting}, timeout=SOON_SECONDS))[0]
        context.sent(context)
    await asyncio.wait_for(waiting, LIMIT_SECONDS)


async def test_a_call_that_comes_while_the_time_runs_is_waited_for() -> None:
    open_calls = OpenCalls()
    waiting = asyncio.create_task(open_calls.none_for(SOON_SECONDS))
    await asyncio.sleep(0)  # lets the time limit start
    late = await answered(open_calls)
    assert not (await asyncio.wait({waiting}, timeout=5 * SOON_SECONDS))[0]
    late.sent(late)
    await asyncio.wait_for(waiting, LIMIT_SECONDS)


async def test_ignored_services_have_no_open_calls() -> None:
    open_calls = OpenCalls(ignored=("grpc.reflection.v1alpha.ServerReflection",))
    await answered(open_calls, REFLECTION)
    await asyncio.wait_for(open_calls.none_for(0), LIMIT_SECONDS)
