"""Messages that are received at the same time, those that have to make room, and limits of connections."""

import asyncio

import pytest

from service.domain.errors import MessageTooSlow
from service.faces.grpc import intake
from service.faces.grpc.intake import Receptions
from service.faces.grpc.server import connection_options


async def silent() -> bytes:
    await asyncio.Event().wait()
    return b""


async def at_once() -> bytes:
    await asyncio.sleep(0)
    return b"message"


async def begun(all_of_them: Receptions, number: int, connection: str = "a") -> list["asyncio.Task[bytes]"]:
    tasks = [asyncio.create_task(all_of_them.receive(silent, connection)) for _ in range(number)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def ended(tasks: list["asyncio.Task[bytes]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_who_waits_alone_is_left_alone() -> None:
    all_of_them = Receptions(4)
    tasks = await begun(all_of_them, 4)
    await asyncio.sleep(5 * intake.SLOW_SECONDS)
    assert not any(task.done() for task in tasks)
    await ended(tasks)
    assert all_of_them.num_under_way == 0


async def test_the_latest_of_the_slow_make_room_and_half_may_go_on() -> None:
    all_of_them = Receptions(4)
    tasks = await begun(all_of_them, 4)
    assert await all_of_them.receive(at_once, "b") == b"message"
    assert [task.done() for task in tasks] == [False, False, True, True]
    with pytest.raises(MessageTooSlow, match="receives 4 at once"):
        await tasks[2]
    await ended(tasks[:2])


async def test_what_has_taken_too_long_makes_room_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "PATIENCE_SECONDS", 0.0)
    all_of_them = Receptions(4)
    tasks = await begun(all_of_them, 4)
    await all_of_them.receive(at_once, "b")
    assert [task.done() for task in tasks] == [True, True, False, False]
    await ended(tasks[2:])
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_connections_take_turns() -> None:
    """A caller on its own connection waits for one message of each other connection, however many these have begun."""
    all_of_them = Receptions(2)
    flood = await begun(all_of_them, 200)
    await all_of_them.receive(at_once, "b")
    assert sum(task.done() for task in flood) < 10
    await ended(flood)
    assert all_of_them.num_under_way == 0


async def test_who_goes_while_waiting_takes_nobodys_turn() -> None:
    all_of_them = Receptions(1)
    (first,) = await begun(all_of_them, 1)
    waiting = await begun(all_of_them, 3, "b")
    last = asyncio.create_task(all_of_them.receive(at_once, "c"))
    await ended(waiting)
    first.cancel()
    assert await last == b"message"
    assert all_of_them.num_under_way == 0


async def test_a_caller_that_goes_is_cancelled_and_not_late() -> None:
    (task,) = await begun(Receptions(2), 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_who_vanished_is_noticed_within_the_documented_time() -> None:
    options = dict(connection_options(1))
    assert options["grpc.keepalive_time_ms"] + options["grpc.keepalive_timeout_ms"] == 40_000
    assert options["grpc.http2.ping_timeout_ms"] == options["grpc.keepalive_timeout_ms"]  # otherwise it takes a minute
