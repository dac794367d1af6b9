"""CPU times of a server's processes, those of its engine's threads apart from the rest, and of its callers."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.load_generator import Outcome

# How the names of an engine's threads begin; CTranslate2's are given one by `benchmarks.peers.ct2_server`.
ENGINE_PREFIX = "engine"


class CpuTimes(NamedTuple):
    """User and system seconds: of threads whose names begin with `engine`, and of everything else."""

    engine: float
    outside: float

    @property
    def total(self) -> float:
        """Return the seconds of all threads."""
        return self.engine + self.outside

    def __sub__(self, before: "CpuTimes") -> "CpuTimes":
        return CpuTimes(self.engine - before.engine, self.outside - before.outside)


def cpu_times(process: psutil.Process) -> CpuTimes:
    """Return the CPU times so far of a process and of its children. Threads that ended count as outside the engine."""
    engine = total = 0.0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # a child may end meanwhile
            times = each.cpu_times()
            total += times.user + times.system
            engine += sum(seconds for name, seconds in _threads(each) if name.startswith(ENGINE_PREFIX))
    return CpuTimes(engine, total - engine)


def cpu_figures(spent: CpuTimes, outcome: Outcome) -> dict[str, float]:
    """Return the CPUs that server and callers kept busy during a load, and their milliseconds for each call.

    `outside_ms_per_call` is missing for a server whose threads say nothing of an engine.
    """
    num_calls = max(len(outcome.calls), 1)
    figures = {
        "server_cpus": spent.total / outcome.wall_seconds,
        "client_cpus": outcome.cpu_seconds / outcome.wall_seconds,
        "server_ms_per_call": spent.total / num_calls * 1e3,
        "client_ms_per_call": outcome.cpu_seconds / num_calls * 1e3,
    }
    if spent.engine > 0:
        figures["outside_ms_per_call"] = spent.outside / num_calls * 1e3
    return figures


def _threads(process: psutil.Process) -> Iterator[tuple[str, float]]:
    """Yield name and CPU seconds of each thread; psutil gives no names."""
    tasks = Path(f"/proc/{process.pid}/task")
    for thread in process.threads():
        with suppress(OSError):  # it may end meanwhile
            name = (tasks / str(thread.id) / "comm").read_text(encoding="utf-8", errors="replace").strip()
            yield name, thread.user_time + thread.system_time
