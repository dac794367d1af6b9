"""About a minute with a real server: its capacity, and the highest rate at which it keeps the objective."""

import asyncio
import math
import os
from collections.abc import Callable
from dataclasses import dataclass

from service.cli.percentile import percentile
from service.cli.sizing.callers import Answers, Callers, Sample
from service.cli.sizing.measured_server import MeasuredServer, Reading
from service.cli.sizing.rates import Trial, highest_rate, next_rate

_P99 = 0.99
_DISTURBING_CPUS = 0.1  # of each of the server's
_WARM_SECONDS = 2.0
_LEAST_CALLS = 500  # of a trial, for a 99th percentile
_MOST_TIMES = 4  # its share of the time that a trial may take for them
_LEAST_SHARE = 0.02  # of the capacity: what is not kept there is not kept
_NUM_TRIALS = 8
_MOST_REPEATED = 4  # more, if so many were disturbed
# A server that can't keep up with a rate has calls left when the arrivals end, for as long as it lags behind: more than
# this share of the trial, and some unloaded latencies. A lax objective would not notice within seconds.
_OVERTIME_SHARE, _OVERTIME_CALLS = 0.05, 3
_LEAD_SHARE = 0.3  # of a trial's time, before what counts
_CALLERS_PER_SLOT = 2
_GIVEN_UP = 4  # times the objective, and a second: a call that is still open then has long missed it


@dataclass(frozen=True, slots=True)
class Point:
    """A load, and what became of it: latencies in seconds; CPUs used by the server, its callers and by others.

    `load` is what autoscalers see. `others_cpus` are of the server's own CPUs, in use by processes that are neither.
    """

    rate: float
    p50_seconds: float
    p99_seconds: float
    failed_share: float
    load: float
    server_cpus: float
    callers_cpus: float
    others_cpus: float
    keeps_up: bool
    late_seconds: float  # 99th percentile of how late calls were sent
    num_calls: int

    def is_disturbed(self, num_cpus: int) -> bool:
        return self.others_cpus > _DISTURBING_CPUS * num_cpus


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a pod does: `capacity` and `pod_rate` in calls per second; the latter is 0 if no rate keeps the objective.

    `load` is the pod's at that rate; `last` has the counters at the end.
    """

    capacity: float
    pod_rate: float
    load: float
    points: tuple[Point, ...]
    last: Reading


async def measure(
    server: MeasuredServer, sample: Sample, objective_seconds: float, seconds: float, say: Callable[[str], None]
) -> Measurement:
    """Measure for about `seconds`, longer with a slow model; `say` is told of each step."""
    are_shared = not server.cpus.isdisjoint(os.sched_getaffinity(0))
    callers = Callers(server.address, sample, timeout_seconds=1.0 + _GIVEN_UP * objective_seconds)
    try:
        before = await asyncio.to_thread(server.read)
        waiting = _CALLERS_PER_SLOT * round(before.slots[sample.model])
        await callers.wait_for_answers(waiting, _WARM_SECONDS / 2)
        alone_seconds = percentile((await callers.wait_for_answers(1, _WARM_SECONDS / 2)).latencies, 0.5)
        each_seconds = (seconds - _WARM_SECONDS) / (_NUM_TRIALS + 1)
        saturated = await callers.wait_for_answers(waiting, max(each_seconds, _WARM_SECONDS))
        capacity = saturated.rate
        if capacity == 0:
            return Measurement(0.0, 0.0, 0.0, (), before)
        say(f"{capacity:.1f} calls/s with {waiting} callers that wait for their answers")
        trials: list[Trial] = []
        points: list[Point] = []
        while len(trials) < _NUM_TRIALS + min(sum(trial.is_disturbed for trial in trials), _MOST_REPEATED):
            rate = next_rate(capacity, objective_seconds, trials)
            if rate < _LEAST_SHARE * capacity:
                break
            lasts = min(max(each_seconds, _LEAST_CALLS / rate), _MOST_TIMES * each_seconds)
            started = await asyncio.to_thread(server.read)
            lead_seconds = _LEAD_SHARE * lasts
            answers = await callers.arrive(rate, lasts - lead_seconds, lead_seconds, seed=len(trials))
            ended = await asyncio.to_thread(server.read)
            keeps_up = answers.overtime_seconds <= _OVERTIME_SHARE * lasts + _OVERTIME_CALLS * alone_seconds
            points.append(_point(rate, answers, started, ended, are_shared=are_shared, keeps_up=keeps_up))
            trials.append(
                Trial(rate, points[-1].p99_seconds if keeps_up else math.inf, points[-1].is_disturbed(len(server.cpus)))
            )
            say(_line(points[-1]))
        last = await asyncio.to_thread(server.read)
    finally:
        await callers.close()
    pod_rate = highest_rate(objective_seconds, trials)
    nearest = min(points, key=lambda point: abs(point.rate - pod_rate))
    load = nearest.load * pod_rate / nearest.rate
    return Measurement(capacity, pod_rate, load, tuple(points), last)


def _point(
    rate: float, answers: Answers, before: Reading, after: Reading, *, are_shared: bool, keeps_up: bool
) -> Point:
    seconds = after.at_seconds - before.at_seconds
    server_cpus = (after.cpu_seconds - before.cpu_seconds) / seconds
    callers_cpus = answers.cpu_seconds / seconds
    used = (after.machine_cpu_seconds - before.machine_cpu_seconds) / seconds
    load = sum(
        (busy - before.busy_seconds.get(model, 0.0)) / after.batches[model]
        for model, busy in after.busy_seconds.items()
    )
    return Point(
        rate,
        percentile(answers.latencies, 0.5),
        percentile(answers.latencies, _P99),
        answers.failed_share,
        load / seconds,
        server_cpus,
        callers_cpus,
        max(used - server_cpus - are_shared * callers_cpus, 0.0),
        keeps_up,
        percentile(answers.late_seconds, _P99),
        len(answers.latencies),
    )


def _line(point: Point) -> str:
    p99 = f"{1e3 * point.p99_seconds:.0f} ms" if math.isfinite(point.p99_seconds) else "-"
    lag = "" if point.keeps_up else ", can't keep up"
    return f"{point.rate:.1f} calls/s: p99 {p99}, {point.failed_share:.1%} failed, load {point.load:.2f}{lag}"
