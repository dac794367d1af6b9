"""The callers, in a separate process: an open-loop schedule, or callers that each wait for their answer.

`python -m benchmarks.load_generator '<JSON of Load>'` prints one line of JSON. SIGTERM ends an open loop early: no new
calls are made, and those in progress are awaited.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
import psutil

from benchmarks.arrivals import poisson_schedule
from benchmarks.light_channel import LightChannel
from benchmarks.workload import held_out_texts, length_penalty_of
from dragoman_client import Target, target_of
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc

TRANSLATE = "/dragoman.v1.TranslationService/Translate"

# A status by name, and the answer, which is empty unless the status is OK.
Translate = Callable[[pb.TranslateRequest], Awaitable[tuple[str, pb.TranslateResponse]]]


@dataclass(frozen=True, slots=True)
class Load:
    """The load on a server. `rate` above 0 is an open loop, arrivals per second; else `callers` wait for answers.

    The generator's process is given lower priority by `niceness`, so that a server on the same CPUs goes first. With
    `is_documented`, callers balance and retry like our client, `address` being as for `Client`; with `is_light`, they
    use a fraction of the CPU of gRPC's client.
    """

    address: str
    seconds: float
    rate: float = 0.0
    callers: int = 0
    texts_per_call: int = 1
    timeout_seconds: float = 60.0
    seed: int = 1
    is_documented: bool = False
    is_light: bool = False
    niceness: int = 0


@dataclass(slots=True)
class Outcome:
    """The result: for each call its scheduled second, its latency from then on, its status, and its output tokens.

    `behind_seconds` is the generator's delay: how long after its schedule each call was sent.
    """

    calls: list[tuple[float, float, str, int]] = field(default_factory=list)
    behind_seconds: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0

    @property
    def largest_delay_seconds(self) -> float:
        """Return the largest delay between a call's schedule and its sending."""
        return max(self.behind_seconds, default=0.0)


async def generate(load: Load) -> Outcome:
    """Make all calls and wait until they end."""
    texts, numbers = held_out_texts(), itertools.count()
    outcome = Outcome()
    async with _light_callers(load) if load.is_light else _grpc_callers(load) as translate:
        before, started = _cpu_seconds(), time.perf_counter()

        async def call(scheduled: float, first_text: int) -> None:
            chosen = [texts[(first_text + i) % len(texts)] for i in range(load.texts_per_call)]
            # Without output guards, as other servers are measured.
            penalty = length_penalty_of(next(numbers))
            options = pb.DecodingOptions(length_penalty=penalty, max_repeats=0, max_length_ratio=0)
            request = pb.TranslateRequest(
                texts=chosen, source_language_code="en", target_language_code="de", options=options
            )
            delay = time.perf_counter() - started - scheduled
            status, response = await translate(request)
            num_tokens = sum(each.hypotheses[0].num_tokens for each in response.translations)
            outcome.behind_seconds.append(delay)
            outcome.calls.append((scheduled, time.perf_counter() - started - scheduled, status, num_tokens))

        if load.rate > 0:
            await _open_loop(load, len(texts), call, started)
        else:
            await _closed_loop(load, len(texts), call, started)
        outcome.wall_seconds = time.perf_counter() - started
        outcome.cpu_seconds = _cpu_seconds() - before
    return outcome


@contextlib.asynccontextmanager
async def _grpc_callers(load: Load) -> AsyncIterator[Translate]:
    to = target_of(load.address) if load.is_documented else Target(load.address, ())
    async with grpc.aio.insecure_channel(to.target, to.options) as channel:
        stub: Any = pb_grpc.TranslationServiceStub(channel)
        await channel.channel_ready()

        async def translate(request: pb.TranslateRequest) -> tuple[str, pb.TranslateResponse]:
            try:
                return "OK", await stub.Translate(request, timeout=load.timeout_seconds)
            except grpc.aio.AioRpcError as error:
                return error.code().name, pb.TranslateResponse()

        yield translate


@contextlib.asynccontextmanager
async def _light_callers(load: Load) -> AsyncIterator[Translate]:
    async with await LightChannel.connect(load.address) as channel:

        async def translate(request: pb.TranslateRequest) -> tuple[str, pb.TranslateResponse]:
            answer = await channel.call(TRANSLATE, request.SerializeToString(), load.timeout_seconds)
            return answer.status, pb.TranslateResponse.FromString(answer.message)

        yield translate


async def _open_loop(load: Load, num_texts: int, call: Any, started: float) -> None:
    tasks, ended = [], asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    for scheduled, text in poisson_schedule(load.rate, load.seconds, num_texts, load.seed):
        pause = scheduled - (time.perf_counter() - started)
        if pause > 0:
            await asyncio.sleep(pause)
        if ended.is_set():
            break
        tasks.append(asyncio.ensure_future(call(scheduled, text)))
    await asyncio.gather(*tasks)


async def _closed_loop(load: Load, num_texts: int, call: Any, started: float) -> None:
    async def caller(number: int) -> None:
        text = number * 17
        while (now := time.perf_counter() - started) < load.seconds:
            await call(now, text % num_texts)
            text += load.texts_per_call * load.callers

    await asyncio.gather(*(caller(number) for number in range(load.callers)))


def _cpu_seconds() -> float:
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    ordered = Load(**json.loads(sys.argv[1]))
    os.nice(ordered.niceness)
    print(json.dumps(dataclasses.asdict(asyncio.run(generate(ordered)))))
