"""The event loop's heartbeat."""

import asyncio

import pytest

from service.process.lifecycle import Heartbeat
from tests.clock import Clock
from tests.servers import LoopThread, eventually


def test_silence_is_counted_from_the_last_beat(loop_thread: LoopThread) -> None:
    clock = Clock()
    late: list[float] = []
    heartbeat = Heartbeat(late.append, clock)
    clock.now += 3
    assert heartbeat.silent_seconds() == 3

    async def start() -> None:
        heartbeat.start()

    loop_thread.run(start())
    assert heartbeat.silent_seconds() == 0
    clock.now += 5
    eventually(lambda: late != [])  # it beats again, and should have after half a second to one
    assert 4 <= late[0] <= 4.5
    assert heartbeat.silent_seconds() == 0
    loop_thread.loop.call_soon_threadsafe(heartbeat.stop)


async def test_after_a_stop_it_beats_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.process.lifecycle.LOOK_SECONDS", 0.0)
    beats: list[None] = []

    def clock() -> float:  # which each beat reads
        beats.append(None)
        return 0.0

    heartbeat = Heartbeat(lambda _: None, clock)
    heartbeat.stop()  # harmless before the start
    heartbeat.start()
    for _ in range(10):
        await asyncio.sleep(0)
    heartbeat.stop()
    num_beats = len(beats)
    assert num_beats > 2
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(beats) == num_beats
