"""The serving benchmark: our server, CTranslate2's, LibreTranslate's, and our own without its batching.

`benchmarks.closed_loops` has capacity and few callers; here are latency and goodput in an open loop. Calls of one
real sentence arrive as a Poisson process, even if the server can't keep up. A call's latency counts from its scheduled
arrival. Callers send the objective as their deadline; each server's queue has the length that suits it best when it is
overloaded.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from benchmarks.closed_loops import CONNECTIONS, PARTS, SATURATING_CALLERS, measure
from benchmarks.contenders import Contender, ct2_contender, libretranslate_contender
from benchmarks.load_generator import Load
from benchmarks.models import DEFAULT_MODELS, MODELS, BenchModel, NotPrepared, prepare, prepare_ct2
from benchmarks.peers.screening import thread_layouts
from benchmarks.report import write_records
from benchmarks.servers import RunningServer, running, serve_command
from benchmarks.serving_points import closed_loop, median_of, open_loop
from benchmarks.serving_summary import summary
from service.engine.cpus import available_cpus

ALL_PARTS = (*PARTS, "sweep", "ablation")
MULTIPLES = (0.25, 0.5, 0.7, 0.85, 1.0, 1.5, 2.0, 4.0)
QUICK_MULTIPLES = (0.5, 0.7, 1.0, 2.0)
# Objectives, as multiples of a single caller's latency on the slower server: where people complain, where they notice.
OBJECTIVES = {"sweep": 10, "sweep, tight": 3}
ABLATION_LOAD = 0.7
ABLATION_ROUNDS = 3
ABLATION_QUEUE = 4096  # nothing is rejected: waiting is what is compared
BY_TEXTS = ("--max-queue-seconds", "86400")  # our queue is bounded like the peer's, not by its own estimate
MIN_QUEUE = 16  # the self-test of a bundle at start needs room for its sentences
QUEUE_SHARES = (0.1, 0.25, 0.5)  # of the server's answers within the time of the objective
OVERLOAD = 2.0
TUNING_BATCH_SIZES = (16, 64)
TUNING_RUNS = 2
NEAR_BEST = 0.93  # of capacity; smaller differences are noise
TUNING_SLO_SECONDS = 2.0  # only the time in which the queue may fill, no objective
TUNING_WAITS_MS = (0.0, 10.0)


@click.command()
@click.option("--model", "models", multiple=True, type=click.Choice(sorted(MODELS)), help="Only these.")
@click.option("--part", "parts", multiple=True, type=click.Choice(ALL_PARTS), help="Only these.")
@click.option("--precision", default="int8", show_default=True, help="Of our bundles.")
@click.option("--seconds", default=12.0, show_default=True, help="For each load.")
@click.option("--rounds", default=3, show_default=True, help="Of each closed loop.")
@click.option("--quick", is_flag=True, help="A few short loads, one round.")
def main(
    models: tuple[str, ...], parts: tuple[str, ...], precision: str, seconds: float, rounds: int, quick: bool
) -> None:
    """Measure, print and write to build/bench: all loads (serving.json), and the search for the peer's settings
    (serving_tuning.json)."""
    seconds, rounds = (min(seconds, 5.0), 1) if quick else (seconds, rounds)
    records: list[dict[str, Any]] = []
    tuning: list[dict[str, Any]] = []
    for name in models or DEFAULT_MODELS:
        model = MODELS[name]
        try:
            serving = _Serving(model, prepare(model, precision, click.echo), precision, seconds)
        except NotPrepared as error:
            raise click.ClickException(str(error)) from error
        tuning += serving.tune()
        write_records("serving_tuning", tuning)
        multiples = QUICK_MULTIPLES if quick else MULTIPLES
        for found in serving.measure(parts or ALL_PARTS, multiples, rounds):
            records.append(found)
            path = write_records("serving", records)
    click.echo(summary(records))
    click.echo(f"Wrote {path}.")


def _load(server: RunningServer, seconds: float, **more: Any) -> Load:
    return Load(server.address, seconds, connections=CONNECTIONS, **more)


class _Serving:
    """One model on all servers."""

    def __init__(self, model: BenchModel, bundle: Path, precision: str, seconds: float) -> None:
        self._model = model
        self._bundle = bundle
        self._seconds = seconds
        ours = str(bundle)
        self._continuous = Contender("dragoman", "continuous", precision, serve_command(ours, *BY_TEXTS))
        self._ablations = (
            Contender(
                "dragoman", "static", precision, serve_command(ours, *BY_TEXTS, module="benchmarks.static_server")
            ),
            Contender("dragoman", "one by one", precision, serve_command(ours, "--max-slots", "1", *BY_TEXTS)),
        )
        self._ct2_folder = prepare_ct2(model, click.echo)
        self._ct2 = ct2_contender(
            self._model, self._ct2_folder, self._bundle, thread_layouts(min(2, available_cpus()))[0], 32, 0.0
        )

    def tune(self) -> list[dict[str, Any]]:
        """Find the peer's batch size, wait and thread layout: the best latency among those near the best capacity."""
        click.echo(f"{self._model.name}: tuning CTranslate2's server")
        tried: list[tuple[float, dict[str, Any], int]] = []
        records = []
        for layout in thread_layouts(min(2, available_cpus())):
            for batch_size in TUNING_BATCH_SIZES:
                contender = ct2_contender(self._model, self._ct2_folder, self._bundle, layout, batch_size, 0.0)
                capacity = max(
                    self._capacity(contender, self._seconds / 2)["sentences_per_second"] for _ in range(TUNING_RUNS)
                )
                tried.append((capacity, layout, batch_size))
                records.append({**contender.document(self._model), "sentences_per_second": capacity})
                click.echo(f"  {contender.settings}: {capacity:.1f} sentences/s saturated")
        most = max(capacity for capacity, _, _ in tried)
        latencies = []
        for capacity, layout, batch_size in tried:
            for wait_ms in TUNING_WAITS_MS if capacity >= NEAR_BEST * most else ():
                contender = ct2_contender(self._model, self._ct2_folder, self._bundle, layout, batch_size, wait_ms)
                with running(contender.command) as server:
                    load = _load(server, self._seconds / 2, rate=ABLATION_LOAD * most)
                    point = open_loop(server, load, slo_seconds=TUNING_SLO_SECONDS)
                latencies.append((point["p99_ms"], contender))
                records.append({**contender.document(self._model), **point})
                click.echo(f"  {contender.settings}: p99 {point['p99_ms']:.0f} ms at 70 % load")
        self._ct2 = min(latencies, key=lambda each: each[0])[1]
        return records

    def measure(self, parts: Sequence[str], multiples: Sequence[float], rounds: int) -> Iterator[dict[str, Any]]:
        """Yield the closed loops, the sweep of both engines, and the ablation, each point once it is measured."""
        if set(parts) & set(PARTS):
            yield from self._closed_loops(parts, rounds)
        if "sweep" in parts or "ablation" in parts:
            yield from self._loads(parts, multiples)

    def _closed_loops(self, parts: Sequence[str], rounds: int) -> Iterator[dict[str, Any]]:
        contenders = [self._continuous, self._ct2]
        if not self._model.fixed_output_tokens:  # LibreTranslate has no setting for it
            layout = thread_layouts(min(2, available_cpus()))[-1]
            other = libretranslate_contender(self._ct2_folder, self._bundle, layout)
            contenders += [other] if other is not None else []
            if other is None:
                click.echo(f"{self._model.name}: without LibreTranslate; 'make bench-peers' installs it")
        click.echo(f"{self._model.name}: {', '.join(each.name for each in contenders)}")
        yield from measure(self._model, self._bundle, contenders, parts, self._seconds, rounds, click.echo)

    def _loads(self, parts: Sequence[str], multiples: Sequence[float]) -> Iterator[dict[str, Any]]:
        """Yield capacity, and multiples of it as each part says."""
        everyone = (self._continuous, *self._ablations)
        capacities = {each.batching: self._capacity(each, self._seconds) for each in (*everyone, self._ct2)}
        unloaded = {each.batching: self._unloaded_ms(each) for each in (self._continuous, self._ct2)}
        for each in (*everyone, self._ct2):
            capacity = capacities[each.batching]
            yield {**each.document(self._model), "kind": "capacity before the loads", **capacity}
            click.echo(
                f"{self._model.name}, {each.engine} {each.batching}: "
                f"{capacity['sentences_per_second']:.1f} sentences/s saturated, "
                f"unloaded median {unloaded.get(each.batching, float('nan')):.1f} ms"
            )
        own = {name: capacity["sentences_per_second"] for name, capacity in capacities.items()}
        rivals = (self._continuous, self._ct2)
        for kind, slo_multiple in OBJECTIVES.items() if "sweep" in parts else ():
            slo_seconds = slo_multiple * max(unloaded.values()) / 1e3
            click.echo(f"{self._model.name}: objective {slo_seconds * 1e3:.0f} ms")
            queues = {each.batching: self._queue(each, own[each.batching], slo_seconds) for each in rivals}
            for multiple in multiples:
                yield from self._points(rivals, queues, own, multiple, slo_seconds, kind, rounds=1)
        # At 70 % of continuous batching's capacity, static batches may be beyond their own; hence both.
        slo_seconds = max(OBJECTIVES.values()) * max(unloaded.values()) / 1e3
        queues = dict.fromkeys(own, ABLATION_QUEUE)
        for unit, contenders in (("continuous", everyone), ("static", everyone[:2])) if "ablation" in parts else ():
            rates = dict.fromkeys(own, own[unit])
            kind = f"ablation, of {unit}"
            yield from self._points(contenders, queues, rates, ABLATION_LOAD, slo_seconds, kind, ABLATION_ROUNDS)

    def _points(
        self,
        contenders: Sequence[Contender],
        queues: dict[str, int],
        unit_rates: dict[str, float],
        multiple: float,
        slo_seconds: float,
        kind: str,
        rounds: int,
    ) -> list[dict[str, Any]]:
        """Run one load on every server, newly started, in turns; the load is `multiple` of its unit, in sentences/s."""
        bounded = [each.with_queue(queues[each.batching]) for each in contenders]
        points: list[list[dict[str, Any]]] = [[] for _ in bounded]
        with ExitStack() as stack:
            servers = [stack.enter_context(running(each.command)) for each in bounded]
            for number in range(rounds):
                for contender, server, found in zip(bounded, servers, points, strict=True):
                    load = _load(
                        server,
                        self._seconds,
                        rate=multiple * unit_rates[contender.batching],
                        timeout_seconds=slo_seconds,
                        seed=number + 1,
                    )
                    found.append(open_loop(server, load, slo_seconds))
        records = []
        for contender, found in zip(bounded, points, strict=True):
            point = median_of(found)
            each_p99 = {"p99_ms_of_rounds": [each["p99_ms"] for each in found]}
            records.append({**contender.document(self._model), "kind": kind, "load": multiple, **point, **each_p99})
            click.echo(
                f"  {kind}: {contender.engine} {contender.batching}, {multiple:4.2f} = {point['rate']:6.1f}/s: "
                f"p50 {point['p50_ms']:5.0f}, p99 {point['p99_ms']:5.0f} ms, good {point['goodput']:6.1f}/s, "
                f"shed {point['shed_share']:4.0%}, late {point['late_share']:4.0%}, "
                f"CPUs {point['server_cpus']:.2f} + {point['client_cpus']:.2f}"
            )
        return records

    def _queue(self, contender: Contender, capacity: float, slo_seconds: float) -> int:
        """Return the queue length in the contender's own favour: the one with the most goodput when overloaded."""
        found = []
        for share in QUEUE_SHARES:
            max_waiting = max(MIN_QUEUE, round(share * capacity * slo_seconds))
            with running(contender.with_queue(max_waiting).command) as server:
                load = _load(server, self._seconds / 2, rate=OVERLOAD * capacity, timeout_seconds=slo_seconds)
                found.append((open_loop(server, load, slo_seconds)["goodput"], max_waiting))
        goodput, max_waiting = max(found)
        name = f"{contender.engine} {contender.batching}"
        click.echo(f"  {name}: at most {max_waiting} wait, {goodput:.1f}/s good at {OVERLOAD}x")
        return max_waiting

    def _capacity(self, contender: Contender, seconds: float) -> dict[str, float]:
        with running(contender.command) as server:
            return closed_loop(server, _load(server, seconds, callers=SATURATING_CALLERS))

    def _unloaded_ms(self, contender: Contender) -> float:
        with running(contender.command) as server:
            load = _load(server, self._seconds / 4, callers=1)
            return min(float(closed_loop(server, load)["p50_ms"]) for _ in range(TUNING_RUNS))


if __name__ == "__main__":
    main()
