"""The number of bytes that all calls may hold together."""

import pytest

from service.calls.byte_budget import CALL_BYTES, PATIENCE_SECONDS, ByteBudget
from service.domain.errors import MemoryFull, MessageTooSlow, ServiceError

KIB, MIB = 2**10, 2**20


def fill(budget: ByteBudget, num_bytes: int) -> None:
    while True:
        budget.hold().grow(num_bytes)


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


def test_a_flood_of_large_messages_leaves_room_for_small_ones() -> None:
    budget = ByteBudget(64 * MIB, MIB)
    with pytest.raises(MemoryFull) as raised:
        fill(budget, MIB)
    assert str(raised.value) == (
        "there is no room for 1048576 bytes beside the messages of other calls; "
        "allowed is 64 MiB for all calls together. Try again later, or send smaller messages."
    )
    assert raised.value.retry_after_seconds > 0
    assert 40 * MIB <= budget.num_bytes <= 49 * MIB
    for _ in range(100):
        budget.hold().grow(CALL_BYTES)


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


def test_the_calls_of_one_key_hold_at_most_half() -> None:
    budget = ByteBudget(64 * MIB, MIB)
    holds = [budget.hold() for _ in range(40)]
    with pytest.raises(MemoryFull, match="beside the messages of your other calls; allowed is 32 MiB"):  # noqa: PT012
        for hold in holds:
            hold.belong_to("bob")
            hold.grow(MIB)
    assert budget.num_bytes == 32 * MIB
    other = budget.hold()
    other.belong_to("eve")
    other.grow(MIB)
    holds[0].release()
    holds[1].grow(MIB)


def test_what_was_held_before_its_owner_is_known_counts_as_the_owners() -> None:
    budget = ByteBudget(64 * MIB, MIB)
    hold = budget.hold()
    hold.grow(MIB)
    hold.belong_to("bob")
    assert budget.num_bytes == MIB
    other = budget.hold()
    other.belong_to("bob")
    with pytest.raises(MemoryFull):
        other.grow(32 * MIB - 1)
    hold.release()
    assert budget.num_bytes == 0


def test_a_document_needs_twice_its_size() -> None:
    """C3: of six at once some fit; each was refused for the parts that the others had taken."""
    budget = ByteBudget(192 * MIB, MIB)
    with pytest.raises(MemoryFull):
        fill(budget, 31 * MIB)
    assert budget.num_bytes == 5 * 31 * MIB


def test_what_arrives_slowly_makes_room() -> None:
    now = [0.0]
    budget = ByteBudget(64 * MIB, MIB, clock=lambda: now[0])
    slow, quick = budget.hold(), budget.hold()
    told: list[ServiceError] = []
    with budget.arriving(slow, told.append):
        slow.grow(24 * MIB)
        now[0] = PATIENCE_SECONDS
        with budget.arriving(quick, told.append):
            quick.grow(20 * MIB)
            assert told == []
            budget.hold().grow(16 * MIB)  # there is no room, but for the slow one
            assert [type(each) for each in told] == [MessageTooSlow]
            with pytest.raises(MemoryFull):
                budget.hold().grow(16 * MIB)  # the other one has just begun
            assert len(told) == 1
    slow.release()
    assert budget.num_bytes == 36 * MIB
