"""The callers, in a separate process: an open-loop schedule, or callers that each wait for their answer.

`python -m benchmarks.load_generator '<JSON of Load>'` prints one line of JSON.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import json
import os
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import psutil

from benchmarks.arrivals import poisson_schedule
from benchmarks.callers import Translate, grpc_callers, http_callers
from benchmarks.workload import held_out_texts, length_penalty_of
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb

MOST_TOKENS = 30  # of an output, as of the models in `benchmarks.models` that never end theirs


@dataclass(frozen=True, slots=True)
class Load:
    """The load on a server. `rate` above 0 is an open loop, arrivals per second; else `callers` wait for answers for
    `seconds`.

    The generator's process is given lower priority by `niceness`, so that a server on the same CPUs goes first.
    Callers use a fraction of the CPU of gRPC's client, over as many `connections`. An address that begins with http://
    is that of a server with LibreTranslate's API, or of our own if it ends with /v1. With `tokens_per_word`, an output
    has at most so many tokens for each word of its text: lengths as of real texts from a model that never ends.
    """

    address: str
    seconds: float
    rate: float = 0.0
    callers: int = 0
    timeout_seconds: float = 60.0
    seed: int = 1
    niceness: int = 0
    connections: int = 1
    target_language_code: str = "de"  # of texts in English
    tokens_per_word: float = 0.0


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
    async with _callers(load) as translate:
        before, started = _cpu_seconds(), time.perf_counter()

        async def call(scheduled: float, text: int) -> None:
            # Without output guards, as other servers are measured.
            penalty = length_penalty_of(next(numbers))
            options = pb.DecodingOptions(length_penalty=penalty, max_repeats=0, max_length_ratio=0)
            if load.tokens_per_word:
                options.max_output_tokens = min(round(load.tokens_per_word * len(texts[text].split())), MOST_TOKENS)
            request = pb.TranslateRequest(
                texts=[texts[text]],
                source_language_code="en",
                target_language_code=load.target_language_code,
                options=options,
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


def _callers(load: Load) -> contextlib.AbstractAsyncContextManager[Translate]:
    if load.address.startswith("http://"):
        return http_callers(load.address, load.timeout_seconds, load.connections)
    return grpc_callers(load.address, load.timeout_seconds, load.connections)


async def _open_loop(load: Load, num_texts: int, call: Any, started: float) -> None:
    tasks = []
    for scheduled, text in poisson_schedule(load.rate, load.seconds, num_texts, load.seed):
        pause = scheduled - (time.perf_counter() - started)
        if pause > 0:
            await asyncio.sleep(pause)
        tasks.append(asyncio.ensure_future(call(scheduled, text)))
    await asyncio.gather(*tasks)


async def _closed_loop(load: Load, num_texts: int, call: Any, started: float) -> None:
    async def caller(number: int) -> None:
        text = number * 17
        while (now := time.perf_counter() - started) < load.seconds:
            await call(now, text % num_texts)
            text += load.callers

    await asyncio.gather(*(caller(number) for number in range(load.callers)))


def _cpu_seconds() -> float:
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    ordered = Load(**json.loads(sys.argv[1]))
    os.nice(ordered.niceness)
    print(json.dumps(dataclasses.asdict(asyncio.run(generate(ordered)))))
