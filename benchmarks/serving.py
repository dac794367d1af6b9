"""The serving benchmark: our server, CTranslate2's, LibreTranslate's, and our own without its batching.

`benchmarks.closed_loops` has capacity and few callers; here are latency and goodput in an open loop. Calls of one
real sentence arrive as a Poisson process, even if the server can't keep up. A call's latency counts from its scheduled
arrival. Callers send the objective as their deadline; each server's queue has the length that suits it best when it is
overloaded.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from benchmarks.closed_loops import CONNECTIONS, PARTS, SATURATING_CALLERS, measure
from benchmarks.contenders import Contender, ct2_contender, libretranslate_contender
from benchmarks.kept import Found, kept
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
# Objectives, as multiples of a single caller's latency on the slower server: where people complain, where they notice.
OBJECTIVES = {"sweep": 10, "sweep, tight": 3}
ABLATION_LOAD = 0.7
ABLATION_ROUNDS = 3
ABLATION_SECONDS = 5.0  # in which queues fill, and a call's deadline
ABLATION_QUEUE = 4096  # nothing is rejected: waiting is what is compared
BY_TEXTS = ("--max-queue-seconds", "86400")  # our queue is bounded like the peer's, not by its own estimate
MIN_QUEUE = 16  # the self-test of a bundle at start needs room for its sentences
QUEUE_SHARES = (0.1, 0.25, 0.5)  # of the server's answers within the time of the objective
OVERLOAD = 2.0
TOKENS_PER_WORD = 1.5  # of outputs, in the ablation
TUNING_BATCH_SIZES = (16, 64)
TUNING_RUNS = 2
TUNING_SECONDS = 3.0
NEAR_BEST = 0.93  # of capacity; smaller differences are noise
TUNING_SLO_SECONDS = 2.0  # only the time in which the queue may fill, no objective
TUNING_WAITS_MS = (0.0, 10.0)
THREADS = min(2, available_cpus())  # of the peer


@click.command()
@click.option("--model", "models", multiple=True, type=click.Choice(sorted(MODELS)), help="Only these.")
@click.option("--part", "parts", multiple=True, type=click.Choice(ALL_PARTS), help="Only these.")
@click.option("--precision", default="int8", show_default=True, help="Of our bundles.")
@click.option("--seconds", default=12.0, show_default=True, help="For each load.")
@click.option("--rounds", default=3, show_default=True, help="Of each closed loop.")
@click.option("--name", default="serving", show_default=True, help="Of the file in build/bench.")
def main(
    models: tuple[str, ...], parts: tuple[str, ...], precision: str, seconds: float, rounds: int, name: str
) -> None:
    """Measure, print and write build/bench/serving.json."""
    records: list[dict[str, Any]] = []
    for model_name in models or DEFAULT_MODELS:
        model = MODELS[model_name]
        try:
            serving = _Serving(model, prepare(model, precision, click.echo), precision, seconds)
        except NotPrepared as error:
            raise click.ClickException(str(error)) from error
        for found in serving.measure(parts or ALL_PARTS, rounds):
            records.append(found)
            path = write_records(name, records)
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
        static = serve_command(ours, *BY_TEXTS, module="benchmarks.static_server")
        self._static = Contender("dragoman", "static", precision, static)

    @cached_property
    def _ct2_folder(self) -> Path:
        return prepare_ct2(self._model, click.echo)

    @cached_property
    def _ct2(self) -> Contender:
        found = kept(f"{self._model.name}, served", THREADS, click.echo, self._search)
        by_latency = [each for each in found if "p99_ms" in each]
        return self._ct2_with(**min(by_latency, key=lambda each: each["p99_ms"])["settings"])

    def _ct2_with(self, **settings: Any) -> Contender:
        return ct2_contender(self._model, self._ct2_folder, self._bundle, settings)

    def _search(self) -> Found:
        """Return records of the peer's batch sizes and thread layouts by capacity, and of those near the best one, with
        each wait, by latency."""
        found: Found = []
        for layout in thread_layouts(THREADS):
            for batch_size in TUNING_BATCH_SIZES:
                contender = self._ct2_with(**layout, batch_size=batch_size, wait_ms=0.0)
                capacity = max(
                    self._capacity(contender, TUNING_SECONDS)["sentences_per_second"] for _ in range(TUNING_RUNS)
                )
                found.append({"settings": contender.settings, "sentences_per_second": capacity})
                click.echo(f"  {contender.settings}: {capacity:.1f} sentences/s saturated")
        most = max(each["sentences_per_second"] for each in found)
        for each in [each for each in found if each["sentences_per_second"] >= NEAR_BEST * most]:
            for wait_ms in TUNING_WAITS_MS:
                contender = self._ct2_with(**{**each["settings"], "wait_ms": wait_ms})
                with running(contender.command) as server:
                    load = _load(server, TUNING_SECONDS, rate=ABLATION_LOAD * most)
                    point = open_loop(server, load, slo_seconds=TUNING_SLO_SECONDS)
                found.append({"settings": contender.settings, **point})
                click.echo(f"  {contender.settings}: p99 {point['p99_ms']:.0f} ms at 70 % load")
        return found

    def measure(self, parts: Sequence[str], rounds: int) -> Iterator[dict[str, Any]]:
        """Yield the closed loops, the sweep of both engines, and the ablation, each point once it is measured."""
        if set(parts) & set(PARTS):
            yield from self._closed_loops(parts, rounds)
        if "sweep" in parts:
            yield from self._sweep()
        if "ablation" in parts:
            yield from self._ablation()

    def _closed_loops(self, parts: Sequence[str], rounds: int) -> Iterator[dict[str, Any]]:
        contenders = [self._continuous, self._ct2]
        if not self._model.fixed_output_tokens:  # LibreTranslate has no setting for it
            layout = thread_layouts(THREADS)[-1]
            other = libretranslate_contender(self._ct2_folder, self._bundle, layout)
            contenders += [other] if other is not None else []
            if other is None:
                click.echo(f"{self._model.name}: without LibreTranslate; 'make bench-peers' installs it")
        click.echo(f"{self._model.name}: {', '.join(each.name for each in contenders)}")
        yield from measure(self._model, self._bundle, contenders, parts, self._seconds, rounds, click.echo)

    def _sweep(self) -> Iterator[dict[str, Any]]:
        """Yield multiples of both engines' own capacities, once for each objective."""
        rivals = (self._continuous, self._ct2)
        capacities = yield from self._capacities(rivals)
        slowest_ms = max(map(self._unloaded_ms, rivals))
        for kind, slo_multiple in OBJECTIVES.items():
            slo_seconds = slo_multiple * slowest_ms / 1e3
            click.echo(f"{self._model.name}: objective {slo_seconds * 1e3:.0f} ms")
            queues = {each.batching: self._queue(each, capacities[each.batching], slo_seconds) for each in rivals}
            for multiple in MULTIPLES:
                yield from self._points(rivals, queues, capacities, multiple, slo_seconds, kind, rounds=1)

    def _ablation(self) -> Iterator[dict[str, Any]]:
        """Yield the same load on continuous and on static batches, a share of the capacity of the former, which may be
        beyond that of the latter, and a share of that of the latter."""
        contenders = (self._continuous, self._static)
        lengths = {"tokens_per_word": TOKENS_PER_WORD} if self._model.fixed_output_tokens else {}
        capacities = yield from self._capacities(contenders, **lengths)
        queues = dict.fromkeys(capacities, ABLATION_QUEUE)
        for unit, capacity in capacities.items():
            rates, kind = dict.fromkeys(capacities, capacity), f"ablation, of {unit}"
            yield from self._points(
                contenders, queues, rates, ABLATION_LOAD, ABLATION_SECONDS, kind, ABLATION_ROUNDS, **lengths
            )

    def _capacities(
        self, contenders: Sequence[Contender], **more: float
    ) -> Generator[dict[str, Any], None, dict[str, float]]:
        """Yield a record of each one's capacity, and return them in sentences per second by batching."""
        found = {}
        for each in contenders:
            capacity = self._capacity(each, self._seconds, **more)
            yield {**each.document(self._model), "kind": "capacity before the loads", **capacity}
            found[each.batching] = capacity["sentences_per_second"]
            click.echo(f"{self._model.name}, {each.name}: {found[each.batching]:.1f} sentences/s saturated")
        return found

    def _points(
        self,
        contenders: Sequence[Contender],
        queues: dict[str, int],
        unit_rates: dict[str, float],
        multiple: float,
        slo_seconds: float,
        kind: str,
        rounds: int,
        **more: float,
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
                        **more,
                    )
                    found.append(open_loop(server, load, slo_seconds))
        records = []
        for contender, found in zip(bounded, points, strict=True):
            point = median_of(found)
            of_rounds = {f"{name}_of_rounds": [each[name] for each in found] for name in ("p50_ms", "p99_ms")}
            records.append({**contender.document(self._model), "kind": kind, "load": multiple, **point, **of_rounds})
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

    def _capacity(self, contender: Contender, seconds: float, **more: float) -> dict[str, float]:
        with running(contender.command) as server:
            return closed_loop(server, _load(server, seconds, callers=SATURATING_CALLERS, **more))

    def _unloaded_ms(self, contender: Contender) -> float:
        with running(contender.command) as server:
            load = _load(server, self._seconds / 4, callers=1)
            return min(float(closed_loop(server, load)["p50_ms"]) for _ in range(TUNING_RUNS))


if __name__ == "__main__":
    main()
