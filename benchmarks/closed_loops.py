"""The serving benchmark's closed loops on all contenders, in rounds: capacity, and few callers against the bare engine.

All servers run from the first round to the last, one under load at a time; those that wait use no CPU. Contenders take
turns within a round, so that a machine that changes its speed changes it for all of them. Callers use a light client
over several connections, which leaves the CPUs to the servers.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.contenders import Contender
from benchmarks.load_generator import Load
from benchmarks.models import BenchModel
from benchmarks.peers.peer import PeerSettings
from benchmarks.peers.process import PeerProcess
from benchmarks.servers import running
from benchmarks.serving_points import closed_loop
from benchmarks.workload import Task, held_out_texts
from service.bundle.manifest import Manifest
from service.text.tokenizers import load_tokenizer

PARTS = ("capacity", "few callers")
CONNECTIONS = 16
SATURATING_CALLERS = 96
FEW_CALLERS = 16
QUEUE = 100_000  # nothing is refused: these measure how fast it is, not what it does when overloaded
WARM_UP_SECONDS = 2.0
BARE_SENTENCES = 1000  # the engine's batch: the held-out sentences twice
BARE_SLOTS = 64
TIMEOUT_SECONDS = 120.0


def measure(
    model: BenchModel,
    bundle: Path,
    contenders: Sequence[Contender],
    parts: Sequence[str],
    seconds: float,
    rounds: int,
    say: Callable[[str], None],
) -> Iterator[dict[str, Any]]:
    """Yield a record for each load of `seconds`, with its kind (capacity, few callers, bare engine) and its round."""
    callers = {"capacity": SATURATING_CALLERS, "few callers": FEW_CALLERS}
    with ExitStack() as stack:
        servers = [stack.enter_context(running(each.with_queue(QUEUE).command)) for each in contenders]
        engine = stack.enter_context(PeerProcess(_bare(bundle))) if "few callers" in parts else None
        loads = [
            Load(each.address, seconds, timeout_seconds=TIMEOUT_SECONDS, connections=CONNECTIONS) for each in servers
        ]
        for server, load in zip(servers, loads, strict=True):
            closed_loop(server, replace(load, callers=SATURATING_CALLERS, seconds=min(seconds, WARM_UP_SECONDS)))
        for number in range(1, rounds + 1):
            if engine is not None:
                timing = engine.run(_task(bundle, model))
                rate = timing.num_tokens / timing.seconds
                say(f"  round {number}: bare engine {rate:.0f} tokens/s")
                yield {"model": model.name, "kind": "bare engine", "round": number, "tokens_per_second": rate}
            for contender, server, load in zip(contenders, servers, loads, strict=True):
                for kind in (each for each in PARTS if each in parts):
                    point = closed_loop(server, replace(load, callers=callers[kind], seed=number))
                    say(f"  round {number}: {contender.name}, {kind}, {_line(point)}")
                    yield {**contender.document(model), "kind": kind, "round": number, **point}


def _bare(bundle: Path) -> PeerSettings:
    options = {"intra_op_threads": 0, "allow_spinning": False, "max_slots": BARE_SLOTS}
    return PeerSettings("dragoman", "", str(bundle), options)


def _task(bundle: Path, model: BenchModel) -> Task:
    manifest = Manifest.load(bundle)
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    sources = [tuple(manifest.source_ids(tokenizer.encode(text), manifest.first_pair)) for text in held_out_texts()]
    batch = tuple(sources[number % len(sources)] for number in range(BARE_SENTENCES))
    return Task((batch,), beam_size=1, max_output_tokens=model.max_output_tokens)


def _line(point: dict[str, Any]) -> str:
    """Return a record in one line, for the terminal."""
    outside = point.get("outside_ms_per_call")
    said = "" if outside is None else f", {outside:.2f} ms per call outside the engine"
    return (
        f"{point['sentences_per_second']:.1f} calls/s, {point['tokens_per_second']:.0f} tokens/s, p99 "
        f"{point['p99_ms']:.0f} ms{said}, CPUs {point['server_cpus']:.2f} + {point['client_cpus']:.2f}"
    )
