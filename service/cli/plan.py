"""`dragoman plan`: how many pods a rate of calls takes, by a minute's measurement on this machine."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.bundle.manifest import Manifest
from service.cli.command_error import CommandError
from service.cli.exit_codes import ExitCode
from service.cli.lines import read_lines
from service.cli.settings import SettingsCommand
from service.cli.streams import open_input

if TYPE_CHECKING:
    from service.cli.sizing.callers import Sample
    from service.cli.sizing.measurement import Measurement
    from service.config.sources import Settings
    from service.models.repository import FoundBundle

_UNITS = {"ms": 1e-3, "s": 1.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s)")
_MOST_THREADS = 2  # of a pod where nobody says: pods of few CPUs are better (docs/tuning.md)
_MOST_TEXTS = 100_000


class _Duration(click.ParamType[float]):
    """A time as people write it, 200ms or 1.5s; in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = _DURATION.fullmatch(str(value).replace(" ", ""))
        if match is None or float(match[1]) == 0:
            self.fail(f"{value!r} is no duration; give one such as 200ms or 1.5s.", param, ctx)
        return float(match[1]) * _UNITS[match[2]]


@dataclass(frozen=True, slots=True)
class _Cpus:
    """Those of the server, and of the callers: they share CPUs only if there are not enough."""

    server: frozenset[int]
    callers: frozenset[int]

    @property
    def are_shared(self) -> bool:
        return bool(self.server & self.callers)


@click.command(cls=SettingsCommand)
@click.option(
    "--rate", type=click.FloatRange(0, 1e6, min_open=True), required=True, help="Calls per second to plan for."
)
@click.option(
    "--p99", type=_Duration(), required=True, metavar="TIME", help="99 % of the calls are answered within it."
)
@click.option(
    "-i",
    "--file",
    "input_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Texts that your callers send, one a line. Default: the model's own test sentences, which are short.",
)
@click.option("--model", "name", default="", metavar="NAME", help="Model to call; the others are loaded, too.")
@click.option("--from", "source", default="", metavar="CODE", help="Language of the texts.")
@click.option("--to", "target", default="", metavar="CODE", help="Language to translate into.")
@click.option(
    "--seconds",
    type=click.FloatRange(3, 3600),
    default=60.0,
    show_default=True,
    help="For the measurement; a slow model takes longer.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "values", "json")),
    default="text",
    show_default=True,
    help="text; values for the Helm chart, in YAML; json for programs.",
)
def plan(
    settings: "Settings",
    rate: float,
    p99: float,
    input_file: Path | None,
    name: str,
    source: str,
    target: str,
    seconds: float,
    form: str,
) -> None:
    """Measure this machine, and print how many pods a rate of calls takes, with their CPUs, memory and scaling.

    A server with the settings of 'dragoman serve' is started, on loopback only and on --num-threads CPUs of its own
    (default: 2, if at least 3 are there), and called from the others: the CPUs of one pod. Nothing else should run on
    the machine meanwhile.
    """
    from service.cli.sizing.advice import Memory, advise
    from service.cli.sizing.advice import values as chart_values
    from service.cli.sizing.report import document, milliseconds, notes_on, report

    bundles, bundle = _bundle(settings, name)
    sample = _sample(bundle.manifest, input_file, source, target)
    cpus = _cpus(settings.config.num_threads)
    ready_seconds, found = _measured(settings, sample, p99, seconds, cpus)
    notes = list(notes_on(found, p99, len(cpus.server), are_shared=cpus.are_shared, has_sample=input_file is not None))
    if found.pod_rate == 0:
        lowest = min(found.points, key=lambda point: point.rate, default=None)
        said = f"at {lowest.rate:.1f} calls/s it was {milliseconds(lowest.p99_seconds)}" if lowest else "no call ended"
        refusal = CommandError(
            f"no rate keeps a p99 of {milliseconds(p99)} here: {said}. Give a longer --p99, more --num-threads, or a "
            "smaller model.",
            ExitCode.DATA,
        )
        for note in notes:
            refusal.add_note(note)
        raise refusal
    sizes = [each.num_bytes for each in bundles]
    memory = Memory(found.last.memory_bytes, sizes, found.last.slots_bytes, settings.config.cache_mib * 2**20)
    advice = advise(rate, found.pod_rate, found.load, len(cpus.server), memory)
    if form == "json":
        click.echo(document(ready_seconds, found, advice, notes))
        return
    if form == "text":
        click.echo(f"{report(rate, p99, ready_seconds, found, advice)}\n")
    # With the answer, whatever its form: a plan from a busy machine buys too much.
    comments = ["values of deploy/helm/dragoman", *(f"note: {note}" for note in notes)]
    click.echo("\n".join([*(f"# {each}" for each in comments), chart_values(advice)]))


def _bundle(settings: "Settings", name: str) -> "tuple[list[FoundBundle], FoundBundle]":
    """Return all bundles that are served, and that of the model to call."""
    from service.models.repository import read_models

    models = read_models(settings.config.models, settings.config.max_versions)
    bundles = {bundle.name: bundle for model in models for bundle in reversed(model.bundles)}  # the highest version
    if name not in bundles and (name or len(bundles) != 1):
        known = ", ".join(bundles)
        raise click.UsageError(
            f"no model {name!r}; there are {known}." if name else f"name one of several models with --model: {known}."
        )
    return [bundle for model in models for bundle in model.bundles], bundles[name or next(iter(bundles))]


def _sample(manifest: Manifest, input_file: Path | None, source: str, target: str) -> "Sample":
    """Return what callers send."""
    from service.cli.sizing.callers import Sample

    texts = [golden.text for golden in manifest.golden]
    if input_file is not None:
        with open_input(input_file) as stream, stream:
            lines = (line.text for _, line in zip(range(_MOST_TEXTS), read_lines(stream), strict=False))
            texts = [text for text in lines if text.strip()]
        if not texts:
            raise CommandError(f"{input_file} has no text; give lines that your callers send.", ExitCode.DATA)
    pairs = ((pair.source_language_code, pair.target_language_code) for pair in manifest.pairs())
    pair = next(((one, other) for one, other in pairs if source in ("", one) and target in ("", other)), None)
    if pair is None:
        raise click.UsageError(f"{manifest.name} does not translate {source or 'any language'} to {target or 'any'}.")
    return Sample(texts, manifest.name, *pair, manifest.generation.length_penalty)


def _cpus(threads: int) -> _Cpus:
    """Divide the CPUs that this process may use; the callers get what the server leaves."""
    from service.engine.cpus import available_cpus

    allowed = sorted(os.sched_getaffinity(0))
    count = min(available_cpus(), len(allowed))
    if threads > count:
        raise click.UsageError(f"--num-threads is {threads}, and this process may use {count} CPUs.")
    threads = threads or max(1, min(_MOST_THREADS, count - 1))
    return _Cpus(frozenset(allowed[:threads]), frozenset(allowed[threads:count] or allowed))


def _measured(
    settings: "Settings", sample: "Sample", p99: float, seconds: float, cpus: _Cpus
) -> "tuple[float, Measurement]":
    from service.cli.sizing.measured_server import on_cpus, running
    from service.cli.sizing.measurement import measure
    from service.process import event_loop

    def say(line: str) -> None:
        click.echo(line, err=True)

    with _ends_as_by_ctrl_c():
        say(f"starting a server with {settings.config.models} on CPU {_listed(cpus.server)}")
        with running(settings, len(cpus.server), cpus.server) as server:
            say(f"ready after {server.ready_seconds:.1f} s; about {seconds:.0f} s of calls follow")
            with on_cpus(cpus.callers):
                return server.ready_seconds, event_loop.run(measure(server, sample, p99, seconds, say))


@contextmanager
def _ends_as_by_ctrl_c() -> Iterator[None]:
    """Have SIGTERM, and SIGHUP of a terminal that is closed, end this command as Ctrl-C does, with its children."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    # By way of SIGINT, on which the event loop cancels its task: an exception raised in the loop may crash gRPC. A
    # shell's background jobs ignore SIGINT.
    handlers: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler}
    handlers |= dict.fromkeys((signal.SIGTERM, signal.SIGHUP), lambda *_: signal.raise_signal(signal.SIGINT))
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listed(cpus: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(cpus)))
