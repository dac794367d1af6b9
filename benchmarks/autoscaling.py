"""What the autoscalers see: the shipped query's answer at multiples of a server's capacity, by a real Prometheus.

`python -m benchmarks.autoscaling` needs the program `prometheus`. In each scenario calls of one sentence arrive as a
Poisson process for longer than the query's window. Capacity is measured before and after each load, with twice as many
callers as there are slots, and the load is told in the mean of both, as the speed of a shared machine changes. Callers
are a process on the same CPUs, given lower priority, as in `benchmarks.overload`.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import yaml

from benchmarks.load_generator import Load, Outcome
from benchmarks.measures import percentile
from benchmarks.overload import NICENESS, REFUSED, SLOTS
from benchmarks.prometheus import Prometheus, scraping
from benchmarks.report import write_records
from benchmarks.servers import RunningServer, running, send, serve_command
from benchmarks.tables import markdown

SCALED_OBJECT = Path("deploy/kubernetes/components/keda/scaled_object.yaml")
MULTIPLES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
LABELS = {"namespace": "dragoman", "deployment": "dragoman", "pod": "dragoman-0"}
WARM_SECONDS, CAPACITY_SECONDS = 3.0, 10.0
CONNECTIONS = 16  # with one, calls beyond a connection's limit wait in the client instead of being refused
CALLERS_PER_SLOT = 2  # so that slots are taken while callers, whose turn comes last, wait for a CPU
LEAD_SECONDS = 4.0  # of a load, before the query's window: the generator starts, and the last load's answers arrive
SATURATED = 0.95  # some calls wait for others from here on, and calls of a burst are refused
MOST_ERROR = 0.15  # of offered load over capacity, below saturation
# What is served, and the targets of English texts that callers ask for.
SCENARIOS: dict[str, tuple[str, tuple[str, ...]]] = {
    "one model": ("models/en-de/1", ("de",)),
    "two models, one called": ("models", ("de",)),
    "two models, both called": ("models", ("de", "hi")),
}
COLUMNS = {
    "scenario": "scenario",
    "load": "offered / capacity",
    "rate": "calls/s",
    "before": "capacity before",
    "after": "after",
    "answer": "the query",
    "refused": "refused",
    "behind": "sent late, p99",
    "verdict": "",
}


def _trigger(path: Path = SCALED_OBJECT) -> dict[str, str]:
    (trigger,) = yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]["triggers"]
    return trigger["metadata"]  # type: ignore[no-any-return]


TARGET = float(_trigger()["threshold"])


def shipped_query() -> str:
    """Return the query that replicas scale by, for namespace and Deployment `dragoman`."""
    return _trigger()["query"]


@click.command()
@click.option("--scenario", "names", multiple=True, type=click.Choice(sorted(SCENARIOS)), help="Only these.")
@click.option("--window", default="1m", show_default=True, help="Of the query's rates; as shipped by default.")
def main(names: tuple[str, ...], window: str) -> None:
    """Measure, print, judge and write build/bench/autoscaling.json."""
    query = shipped_query().replace("[1m]", f"[{window}]")
    seconds = LEAD_SECONDS + _seconds(window)
    records = []
    for name in names or tuple(SCENARIOS):
        models, targets = SCENARIOS[name]
        with (
            running(serve_command(models, *SLOTS)) as server,
            scraping({server.metrics_url.split("/")[2]: LABELS}) as prometheus,
        ):
            for point in _points(server, prometheus, query, targets, seconds):
                records.append({"scenario": name, **point})
                click.echo(f"{name}: {point['load']:.2f} -> {point['answer']:.3f} {point['verdict']}")
    click.echo(table(records))
    click.echo(f"Wrote {write_records('autoscaling', records)}.")


def _points(
    server: RunningServer, prometheus: Prometheus, query: str, targets: Sequence[str], seconds: float
) -> Iterator[dict[str, Any]]:
    callers = CALLERS_PER_SLOT * round(server.counter("dragoman_slots_max")) // len(targets)
    base = Load(server.address, 0.0, niceness=NICENESS, connections=CONNECTIONS)
    loads = [replace(base, target_language_code=target) for target in targets]
    with ThreadPoolExecutor() as pool:

        def capacity(seconds: float) -> list[float]:
            outcomes = list(pool.map(send, [replace(load, seconds=seconds, callers=callers) for load in loads]))
            return [sum(_has(each, "OK")) / each.wall_seconds for each in outcomes]

        capacity(WARM_SECONDS)
        after = capacity(CAPACITY_SECONDS)
        for multiple in MULTIPLES:
            before = after
            offered = [
                replace(load, seconds=seconds, rate=multiple * rate) for load, rate in zip(loads, before, strict=True)
            ]
            sending = [pool.submit(send, each) for each in offered]
            time.sleep(seconds)
            (found,) = prometheus.query(query)
            outcomes = [each.result() for each in sending]
            behind = [late for outcome in outcomes for late in outcome.behind_seconds]
            refusals = [each for outcome in outcomes for each in _has(outcome, REFUSED)]
            after = capacity(CAPACITY_SECONDS)
            rate, answer = multiple * sum(before), float(found["value"][1])
            load = 2 * rate / (sum(before) + sum(after))
            yield {
                "load": load,
                "rate": rate,
                "before": sum(before),
                "after": sum(after),
                "answer": answer,
                "refused": sum(refusals) / len(refusals),
                "behind": percentile(behind, 0.99),
                "verdict": "" if holds(load, answer) else "NOT HELD",
            }


def holds(load: float, answer: float) -> bool:
    """Return whether an answer is right: about the load below saturation, above the target from there on."""
    return abs(answer - load) <= MOST_ERROR * load if load < SATURATED else answer > TARGET


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return the records as a table."""
    formats = {
        "load": "{:.0%}",
        "rate": "{:.0f}",
        "before": "{:.0f}",
        "after": "{:.0f}",
        "answer": "{:.3f}",
        "refused": "{:.1%}",
        "behind": "{:.3f} s",
    }
    rows = [[formats.get(name, "{}").format(record[name]) for name in COLUMNS] for record in records]
    return markdown(list(COLUMNS.values()), rows)


def _has(outcome: Outcome, status: str) -> list[bool]:
    return [found == status for _, _, found, _ in outcome.calls]


def _seconds(window: str) -> float:
    return float(window.removesuffix("m")) * 60 if window.endswith("m") else float(window.removesuffix("s"))


if __name__ == "__main__":
    main()
