"""One client process of a soak: mixed calls at a rate, some of them cancelled, until SIGTERM.

`python -m tests.soak.caller '<JSON of Traffic>'` prints a line of JSON, a `Report`, every few seconds and at the end.
"""

import asyncio
import dataclasses
import json
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.mixed_calls import ALL_KINDS, Place
from tests.patience import patient
from tests.soak.answers import Asked, ask, difference, load

TIMEOUT_SECONDS = patient(60.0)
MAX_TOLD = 5  # failures that a report describes in full
# How calls are made, as weights.
MANNERS = {"plain": 88, "cancelled": 4, "out of time": 3, "abandoned": 2, "reconnected": 3}
CACHED_SHARE = 0.2  # of the calls that may be answered from the translation cache


@dataclass(frozen=True, slots=True)
class Traffic:
    """The load on a server: `rate` is in calls per second, 0 as fast as `most_at_once` allows."""

    address: str
    http_url: str
    answers: str  # a file of `answers.save`
    rate: float
    most_at_once: int
    seed: int
    report_seconds: float = 1.0


@dataclass(slots=True)
class Report:
    """The outcome of the calls since the last report.

    `milliseconds` are of plain calls with the right answer, by kind; `held_back` calls were late because `most_at_once`
    were in progress.
    """

    seconds: float = 0.0  # since the first call
    calls: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    manners: Counter[str] = field(default_factory=Counter)
    milliseconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: int = 0
    told: list[dict[str, Any]] = field(default_factory=list)
    held_back: int = 0


class Caller:
    def __init__(self, traffic: Traffic, asked: list[Asked]) -> None:
        self._traffic = traffic
        self._random = random.Random(traffic.seed)
        self._by_kind: defaultdict[str, list[Asked]] = defaultdict(list)
        for each in asked:
            self._by_kind[each.call.kind].append(each)
        self._kinds = [kind for kind in ALL_KINDS if self._by_kind[kind]]
        self._shares = [ALL_KINDS[kind] for kind in self._kinds]
        self._number = traffic.seed * 100_003
        self._report = Report()
        self._stopped = asyncio.Event()
        self._started = time.monotonic()

    async def run(self) -> None:
        """Call until SIGTERM, then wait for calls in progress."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stopped.set)
        room = asyncio.Semaphore(self._traffic.most_at_once)
        channel = grpc.aio.insecure_channel(self._traffic.address)
        async with channel, asyncio.TaskGroup() as tasks:
            reporting = tasks.create_task(self._report_on())
            watching = tasks.create_task(self._watch_health(channel))
            calls: set[asyncio.Task[None]] = set()
            await channel.channel_ready()
            self._tell()  # signals the start
            self._started = due = time.monotonic()
            while not self._stopped.is_set():
                if self._traffic.rate:
                    due += self._random.expovariate(self._traffic.rate)
                    await self._pause(due - time.monotonic())
                self._report.held_back += room.locked() and self._traffic.rate > 0
                await room.acquire()
                call = tasks.create_task(self._call(Place(channel, self._traffic.http_url)))
                calls.add(call)
                call.add_done_callback(calls.discard)
                call.add_done_callback(lambda _: room.release())
            if calls:
                await asyncio.wait(calls, timeout=TIMEOUT_SECONDS + 10)
            watching.cancel()
            reporting.cancel()
        self._tell()

    async def _pause(self, seconds: float) -> None:
        if seconds > 0:
            try:
                await asyncio.wait_for(self._stopped.wait(), seconds)
            except TimeoutError:
                return

    async def _call(self, place: Place) -> None:
        (kind,) = self._random.choices(self._kinds, self._shares)
        (manner,) = self._random.choices(list(MANNERS), list(MANNERS.values()))
        if manner == "abandoned":
            kind = self._random.choice(("stream", "http stream"))
        asked = self._random.choice(self._by_kind[kind])
        self._report.calls[kind] += 1
        self._report.manners[manner] += 1
        try:
            if manner == "plain":
                await self._check(place, asked, TIMEOUT_SECONDS, manner)
            elif manner == "reconnected":
                options = [("grpc.use_local_subchannel_pool", 1)]  # or it would share the other channel's connection
                async with grpc.aio.insecure_channel(self._traffic.address, options) as another:
                    await self._check(Place(another, place.http_url), asked, TIMEOUT_SECONDS, manner)
            elif manner == "out of time":
                await self._check(place, asked, self._random.uniform(0.001, 0.04), manner)
            elif manner == "abandoned":
                await asked.call.give_up(place, "at a part", 0.0)
            else:
                call = asyncio.ensure_future(self._check(place, asked, TIMEOUT_SECONDS, manner))
                await asyncio.wait({call}, timeout=self._random.uniform(0.0, 0.06))
                if not call.cancel():
                    call.result()
        except Exception as error:  # any error is a finding
            self._fail(asked, manner, repr(error))

    async def _check(self, place: Place, asked: Asked, timeout_seconds: float, manner: str) -> None:
        began = time.monotonic()
        self._number += 1
        call = asked.call if self._random.random() < CACHED_SHARE else asked.call.uncached(self._number)
        answer = await ask(place, call, timeout_seconds)
        self._report.codes[answer.code] += 1
        if answer.code == "RESOURCE_EXHAUSTED":  # the machine was busy for a moment; counted
            return
        if manner == "out of time" and answer.code == "DEADLINE_EXCEEDED":
            return
        if not answer.is_one_of(asked.expected):
            self._fail(asked, manner, difference(answer, asked.expected))
        elif manner == "plain":
            self._report.milliseconds[asked.call.kind].append((time.monotonic() - began) * 1000)

    def _fail(self, asked: Asked, manner: str, what: Any) -> None:
        self._report.failures += 1
        if len(self._report.told) < MAX_TOLD:
            self._report.told.append({"kind": asked.call.kind, "manner": manner, "what": what})

    async def _watch_health(self, channel: grpc.aio.Channel) -> None:
        async for status in health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest()):
            if status.status != health_pb2.HealthCheckResponse.SERVING:
                self._report.failures += 1
                self._report.told.append({"kind": "health", "what": str(status)})

    async def _report_on(self) -> None:
        while True:
            await asyncio.sleep(self._traffic.report_seconds)
            self._tell()

    def _tell(self) -> None:
        report, self._report = self._report, Report()
        report.seconds = time.monotonic() - self._started
        print(json.dumps({each.name: getattr(report, each.name) for each in dataclasses.fields(report)}), flush=True)


async def main(traffic: Traffic) -> None:
    await Caller(traffic, load(Path(traffic.answers))).run()


if __name__ == "__main__":
    asyncio.run(main(Traffic(**json.loads(sys.argv[1]))))
