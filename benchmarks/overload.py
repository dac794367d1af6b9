"""Measures an overloaded server: goodput, latency of accepted calls, rejections, memory.

Calls of one sentence arrive as a Poisson process at multiples of the capacity, which is measured first with as many
callers as there are slots. They have long deadlines and are not retried: rejecting excess load is up to the server. The
callers are a separate process on the same CPUs, given lower priority by `nice`, and use a hand-written HTTP/2 client:
five times as many callers must not take CPU from the server. A server that rejects nothing is measured as a control: it
must fail.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from benchmarks.load_generator import Load, Outcome
from benchmarks.measures import percentile
from benchmarks.models import MODELS, prepare
from benchmarks.report import write_records
from benchmarks.servers import RunningServer, running, send, serve_command
from benchmarks.serving_points import closed_loop
from service.engine.admission import INTERVAL_SECONDS
from service.engine.cpus import available_cpus

MULTIPLES = (0.5, 0.9, 1.0, 2.0, 5.0)
NICENESS = 5
SLOTS = ("--max-slots", "32")  # by default it is 32 or 64, varying between starts, and rounds could not be compared
TIMEOUT_SECONDS = 60.0
# Until queue and slots are as full as the load makes them, and calls from before a standing queue was detected are
# done. Not counted; docs/reliability.md describes the first seconds of an overload.
SETTLE_SECONDS = MULTIPLES[-1] * INTERVAL_SECONDS + 4.0
REFUSED = "RESOURCE_EXHAUSTED"
# What docs/reliability.md promises.
LEAST_GOODPUT = 0.7  # at five times the capacity, relative to that at the capacity
MOST_P99 = 2.0  # of accepted calls, relative to that at 0.9 times the capacity
MOST_REFUSAL_SECONDS = 0.02
MOST_MEMORY = 1.25  # relative to that at the capacity
WITHOUT_LIMITS = ("--max-queue-seconds", "86400", "--max-waiting", "1000000", "--default-deadline-seconds", "86400")


@click.command()
@click.option("--model", default="base", show_default=True, type=click.Choice(sorted(MODELS)))
@click.option("--precision", default="int8", show_default=True)
@click.option("--seconds", default=20.0, show_default=True, help="Of each load.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--control/--no-control", default=True, show_default=True, help="Also a server without limits.")
def main(model: str, precision: str, seconds: float, rounds: int, control: bool) -> None:
    """Measure, print, judge and write build/bench/overload.json."""
    bundle = prepare(MODELS[model], precision, click.echo)
    records: list[dict[str, Any]] = []
    verdicts = {}
    for kind, flags, times in (("limits", (), rounds), ("no limits", WITHOUT_LIMITS, 1 if control else 0)):
        points: list[dict[str, Any]] = []
        for number in range(times):
            with running(serve_command(str(bundle.parents[1]), *SLOTS, *flags)) as server:
                callers = round(server.counter("dragoman_slots_max"))  # one more might be rejected
                closed = Load(server.address, seconds / 2, callers=callers, niceness=NICENESS)
                send(replace(closed, seconds=3.0))  # warm up
                capacity = closed_loop(server, closed)["sentences_per_second"]
                click.echo(f"{kind}, round {number + 1}: capacity {capacity:.1f} calls/s")
                for multiple in MULTIPLES:
                    rate = multiple * capacity
                    load = Load(
                        server.address,
                        SETTLE_SECONDS + seconds,
                        rate=rate,
                        timeout_seconds=TIMEOUT_SECONDS,
                        seed=number + 1,
                        niceness=NICENESS,
                    )
                    points.append({"load": multiple, "capacity": capacity, **measured(server, load)})
                    click.echo(f"  {line(points[-1])}")
        if points:
            verdicts[kind] = judged(points)
            for goal, (value, is_held) in verdicts[kind].items():
                click.echo(f"{kind}: {goal}: {value:.3g}{'' if is_held else '  NOT HELD'}")
        records += [{"kind": kind, "model": model, "precision": precision, **point} for point in points]
    click.echo(f"Wrote {write_records('overload', records)}.")
    if control and all(is_held for _, is_held in verdicts["no limits"].values()):
        raise click.ClickException("a server without limits passes: this measures nothing.")


def measured(server: RunningServer, load: Load) -> dict[str, Any]:
    """Send one load and return its measurements."""
    before = server.cpu_seconds()
    outcome = send(load)
    server_cpus = (server.cpu_seconds() - before) / outcome.wall_seconds
    client_cpus = outcome.cpu_seconds / outcome.wall_seconds
    found = of_outcome(outcome, load.seconds)
    return {
        "rate": load.rate,
        **found,
        "goodput_per_cpu": found["goodput"] / (available_cpus() - client_cpus),
        "server_cpus": server_cpus,
        "client_cpus": client_cpus,
        "memory_mib": server.memory_mib(),
    }


def of_outcome(outcome: Outcome, seconds: float) -> dict[str, Any]:
    """Return plain numbers for the outcome of a load of `seconds`, once it has settled.

    Goodput counts the answers from then until the load ended. Latencies are counted from sending; the delay of the
    callers themselves under load is `behind_p99_ms`.
    """
    accepted, refused, others = [], [], 0
    answered = 0
    for (scheduled, latency, status, _), behind in zip(outcome.calls, outcome.behind_seconds, strict=True):
        answered += status == "OK" and SETTLE_SECONDS <= scheduled + latency < seconds
        if scheduled < SETTLE_SECONDS:
            continue
        if status == "OK":
            accepted.append(latency - behind)
        elif status == REFUSED:
            refused.append(latency - behind)
        else:
            others += 1
    return {
        "calls": len(outcome.calls),
        "goodput": answered / (seconds - SETTLE_SECONDS),
        "accepted_p50_ms": percentile(accepted, 0.5) * 1e3,
        "accepted_p99_ms": percentile(accepted, 0.99) * 1e3,
        "refused": len(refused),
        "refused_p50_ms": percentile(refused, 0.5) * 1e3 if refused else math.nan,
        "refused_p99_ms": percentile(refused, 0.99) * 1e3 if refused else math.nan,
        "other_statuses": others,
        "behind_p99_ms": percentile(outcome.behind_seconds, 0.99) * 1e3,
    }


def judged(points: Sequence[dict[str, Any]]) -> dict[str, tuple[float, bool]]:
    """Return each goal's value, the median of the rounds, and whether it is met.

    Loads are compared within their round, as the machine's own speed may change between rounds.
    """

    def of_rounds(load: float, name: str) -> list[float]:
        return [point[name] for point in points if point["load"] == load]

    def ratio(load: float, base: float, name: str) -> float:
        pairs = zip(of_rounds(load, name), of_rounds(base, name), strict=True)
        return percentile([value / of_base for value, of_base in pairs], 0.5)

    goodput = ratio(5.0, 1.0, "goodput")
    goodput_per_cpu = ratio(5.0, 1.0, "goodput_per_cpu")
    p99 = ratio(5.0, 0.9, "accepted_p99_ms")
    refusal = percentile(of_rounds(5.0, "refused_p99_ms"), 0.5) / 1e3
    memory = ratio(5.0, 1.0, "memory_mib")
    others = sum(point["other_statuses"] for point in points)
    return {
        "goodput at 5x, of that at 1x": (goodput, goodput >= LEAST_GOODPUT),
        "the same, by the CPUs that callers left": (goodput_per_cpu, goodput_per_cpu >= LEAST_GOODPUT),
        "p99 of accepted calls at 5x, of that at 0.9x": (p99, p99 <= MOST_P99),
        "p99 of refusals at 5x, seconds": (refusal, refusal <= MOST_REFUSAL_SECONDS),
        "memory at 5x, of that at 1x": (memory, memory <= MOST_MEMORY),
        "calls with another status": (others, not others),
    }


def line(point: dict[str, Any]) -> str:
    """Return one load as a line for the terminal."""
    return (
        f"{point['load']:g}x ({point['rate']:.0f}/s): goodput {point['goodput']:.1f}/s, accepted p50 "
        f"{point['accepted_p50_ms']:.0f} p99 {point['accepted_p99_ms']:.0f} ms, {point['refused']} of {point['calls']} "
        f"refused (p50 {point['refused_p50_ms']:.1f} p99 {point['refused_p99_ms']:.1f} ms), other "
        f"{point['other_statuses']}, CPUs {point['server_cpus']:.2f} + {point['client_cpus']:.2f}, "
        f"{point['memory_mib']:.0f} MiB, callers behind p99 {point['behind_p99_ms']:.0f} ms"
    )


if __name__ == "__main__":
    main()
