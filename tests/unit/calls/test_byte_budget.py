"""The number of bytes that all calls may hold together."""

import pytest

from service.calls.byte_budget import CALL_BYTES, ByteBudget
from service.domain.errors import MemoryFull

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


def test_what_finds_no_room_changes_nothing() -> None:
    budget = ByteBudget(8 * MIB, MIB)
    hold = budget.hold()
    hold.grow(5)
    with pytest.raises(MemoryFull):
        hold.grow(100 * MIB)
    assert budget.num_bytes == 5
