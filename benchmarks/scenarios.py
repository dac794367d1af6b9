"""The serving benchmark's scenarios on all contenders, in rounds: capacity, few callers against the bare engine, and
MLPerf's Offline and Server.

All servers run from the first round to the last, one under load at a time; those that wait use no CPU. Contenders take
turns within a round, so that a machine that changes its speed changes it for all of them. Callers use a light client
over several connections, which leaves the CPUs to the servers.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.call_records import CallLog
from benchmarks.contenders import Contender
from benchmarks.load_generator import Load
from benchmarks.mlperf import BOUND_SECONDS, Length, offline, server_rate
from benchmarks.models import BenchModel
from benchmarks.peers.peer import PeerSettings
from benchmarks.peers.process import PeerProcess
from benchmarks.servers import RunningServer, running
from benchmarks.serving_points import Keep, closed_loop
from benchmarks.workload import Task, held_out_texts
from service.bundle.manifest import Manifest
from service.text.tokenizers import load_tokenizer

PARTS = ("capacity", "few callers", "offline", "server")
CONNECTIONS = 16
SATURATING_CALLERS = 96
FEW_CALLERS = 16
QUEUE = 100_000  # nothing is refused: these measure how fast it is, not what it does when overloaded
WARM_UP_SECONDS = 2.0
BARE_SENTENCES = 1000  # the engine's batch: the held-out sentences twice
BARE_SLOTS = 64
TIMEOUT_SECONDS = 120.0


class Scenarios:
    """One model on its contenders."""

    def __init__(
        self,
        model: BenchModel,
        bundle: Path,
        contenders: Sequence[Contender],
        document: Callable[[Contender], dict[str, Any]],
        log: CallLog,
        length: Length,
    ) -> None:
        """`document` describes a contender in records."""
        self._model = model
        self._bundle = bundle
        self._contenders = contenders
        self._document = document
        self._log = log
        self._length = length

    def measure(self, parts: Sequence[str], rounds: int, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
        """Yield a record for each load, with its kind and its round. Capacity is always measured: others need it."""
        with ExitStack() as stack:
            servers = [stack.enter_context(running(each.with_queue(QUEUE).command)) for each in self._contenders]
            engine = stack.enter_context(PeerProcess(self._bare())) if "few callers" in parts else None
            for server in servers:
                self._saturate(server, replace(self._load(server, 0), seconds=WARM_UP_SECONDS), None)
            for number in range(1, rounds + 1):
                if engine is not None:
                    timing = engine.run(self._task())
                    rate = timing.num_tokens / timing.seconds
                    say(f"  round {number}: bare engine {rate:.0f} tokens/s")
                    yield {"model": self._model.name, "kind": "bare engine", "round": number, "tokens_per_second": rate}
                for contender, server in zip(self._contenders, servers, strict=True):
                    for found in self._of_one(contender, server, parts, number):
                        say(f"  round {number}: {_line(found)}")
                        yield found

    def _of_one(
        self, contender: Contender, server: RunningServer, parts: Sequence[str], number: int
    ) -> Iterator[dict[str, Any]]:
        def record(kind: str, point: dict[str, Any]) -> dict[str, Any]:
            return {**self._document(contender), "kind": kind, "round": number, **point}

        def keep(kind: str) -> Keep:
            return self._log.keeper(
                model=self._model.name,
                contender=contender.name,
                kind=kind,
                round=number,
                has_references=not self._model.fixed_output_tokens,
            )

        load = self._load(server, number)
        saturated = self._saturate(server, load, keep("capacity"))
        capacity = saturated["sentences_per_second"]
        yield record("saturated", saturated)
        if "few callers" in parts:
            few = replace(load, callers=FEW_CALLERS, seconds=self._length.seconds)
            yield record("few callers", closed_loop(server, few, keep("few callers")))
        if "offline" in parts:
            yield record("offline", offline(server, load, capacity, self._length, keep("offline")))
        if "server" in parts:
            bound = BOUND_SECONDS[self._model.name]
            for point in server_rate(server, load, capacity, bound, self._length, keep("server")):
                yield record("server", point)

    def _saturate(self, server: RunningServer, load: Load, keep: Keep | None) -> dict[str, Any]:
        return closed_loop(server, replace(load, callers=SATURATING_CALLERS), keep)

    def _load(self, server: RunningServer, seed: int) -> Load:
        return Load(
            server.address,
            self._length.seconds,
            timeout_seconds=TIMEOUT_SECONDS,
            seed=seed,
            is_light=True,
            connections=CONNECTIONS,
        )

    def _bare(self) -> PeerSettings:
        options = {"intra_op_threads": 0, "allow_spinning": False, "max_slots": BARE_SLOTS}
        return PeerSettings("dragoman", "", str(self._bundle), options)

    def _task(self) -> Task:
        manifest = Manifest.load(self._bundle)
        tokenizer = load_tokenizer(manifest.tokenizer, self._bundle)
        sources = [tuple(manifest.source_ids(tokenizer.encode(text), manifest.first_pair)) for text in held_out_texts()]
        batch = tuple(sources[number % len(sources)] for number in range(BARE_SENTENCES))
        return Task((batch,), beam_size=1, max_output_tokens=self._model.max_output_tokens)


def _line(found: dict[str, Any]) -> str:
    """Return a record in one line, for the terminal."""
    shown = [f"{found['engine']} {found['batching']}, {found['kind']}"]
    for name, text in (
        ("sentences_per_second", "{:.1f} sentences/s"),
        ("tokens_per_second", "{:.0f} tokens/s"),
        ("rate", "{:.1f}/s"),
        ("p99_ms", "p99 {:.0f} ms"),
        ("holds", "holds {}"),
        ("found_rate", "found {:.1f}/s"),
        ("outside_ms_per_call", "{:.2f} ms per call outside the engine"),
        ("bleu", "BLEU {:.1f}"),
    ):
        if name in found:
            shown.append(text.format(found[name]))
    return ", ".join([*shown, f"CPUs {found['server_cpus']:.2f} + {found['client_cpus']:.2f}"])
