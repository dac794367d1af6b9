"""Callers of the server under measurement: as many as wait for their answers, or as arrive, whatever the answers."""

import asyncio
import itertools
import math
import random
import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman_client import AsyncClient, ClientError, Options

# Equal texts are decoded once while one of them is in progress, so that a short sample would look cheap: each call has
# a length penalty of its own, hardly different from the model's. Few of them, as a server keeps those it has checked.
_NUM_PENALTIES = 199
_PENALTY_STEP = 1e-9


@dataclass(frozen=True, slots=True)
class Sample:
    """What callers send: texts of one model, one a call. `length_penalty` is the model's own."""

    texts: Sequence[str]
    model: str
    source: str
    target: str
    length_penalty: float


@dataclass(slots=True)
class Answers:
    """What became of the calls: seconds from when each was due to its answer, infinite for one that failed.

    `late_seconds` is how long after its time each call was sent, `overtime_seconds` from the end of the arrivals to
    the last answer, and `cpu_seconds` what the callers took themselves.
    """

    latencies: list[float] = field(default_factory=list)
    late_seconds: list[float] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    overtime_seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Return the calls answered per second."""
        return sum(map(math.isfinite, self.latencies)) / self.seconds if self.seconds else 0.0

    @property
    def failed_share(self) -> float:
        """Return the share of calls that failed, from 0 to 1."""
        return 1 - sum(map(math.isfinite, self.latencies)) / max(len(self.latencies), 1)


class Callers:
    """Callers of one server; for the event loop in which they are made."""

    def __init__(self, address: str, sample: Sample, timeout_seconds: float, connections: int = 8) -> None:
        # No patience: a call that the server can't take is one that failed.
        self._clients = [AsyncClient(address, timeout_seconds, patience_seconds=0.0) for _ in range(connections)]
        self._turns = itertools.cycle(self._clients)
        self._sample = sample
        self._number = itertools.count()

    async def close(self) -> None:
        await asyncio.gather(*(client.close() for client in self._clients))

    async def wait_for_answers(self, callers: int, seconds: float) -> Answers:
        """Let `callers` call again and again for `seconds`, each as soon as it has its answer."""
        answers, text, started = Answers(), itertools.count(), time.perf_counter()

        async def caller() -> None:
            while (now := time.perf_counter()) < started + seconds:
                await self._call(next(text), now, answers)

        return await self._timed(answers, [caller() for _ in range(callers)])

    async def arrive(self, rate: float, seconds: float, lead_seconds: float, seed: int) -> Answers:
        """Call at the times of a Poisson process of `rate` a second, for `lead_seconds` that don't count and `seconds`.

        Latencies count from the time that a call is due, even if the one before it has delayed it.
        """
        lead, answers = Answers(), Answers()

        async def call(due: float, text: int, started: float) -> None:
            await self._call(text, started + due, lead if due < lead_seconds else answers)

        async def all_of_them() -> None:
            calls, started = [], time.perf_counter()
            for due, text in arrivals(rate, lead_seconds + seconds, len(self._sample.texts), seed):
                pause = started + due - time.perf_counter()
                if pause > 0:
                    await asyncio.sleep(pause)
                calls.append(asyncio.ensure_future(call(due, text, started)))
            await asyncio.gather(*calls)

        await self._timed(answers, [all_of_them()])
        answers.overtime_seconds = answers.seconds - lead_seconds - seconds
        return answers

    async def _timed(self, answers: Answers, work: "list[Coroutine[Any, Any, None]]") -> Answers:
        started, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*work)
        answers.seconds, answers.cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
        return answers

    async def _call(self, text: int, due: float, answers: Answers) -> None:
        sample, penalty = self._sample, _PENALTY_STEP * (next(self._number) % _NUM_PENALTIES)
        options = Options(length_penalty=sample.length_penalty + penalty)
        answers.late_seconds.append(time.perf_counter() - due)
        try:
            await next(self._turns).translate(
                [sample.texts[text % len(sample.texts)]],
                sample.source,
                sample.target,
                model=sample.model,
                options=options,
            )
            answers.latencies.append(time.perf_counter() - due)
        except ClientError as error:
            if error.code in ("INVALID_ARGUMENT", "NOT_FOUND"):  # of the sample, not of the load
                raise
            answers.latencies.append(math.inf)
            answers.errors[error.code] = answers.errors.get(error.code, 0) + 1


def arrivals(rate: float, seconds: float, num_texts: int, seed: int) -> Iterator[tuple[float, int]]:
    """Yield when calls are due, in seconds from the start, and the index of their text."""
    drawn = random.Random(seed)
    due = drawn.expovariate(rate)
    while due < seconds:
        yield due, drawn.randrange(num_texts)
        due += drawn.expovariate(rate)
