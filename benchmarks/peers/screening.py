"""Finds CTranslate2's fastest settings for each row of the table, by a short run of all candidates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.peers.peer import PeerSettings
from benchmarks.peers.process import PeerFailed, PeerProcess
from benchmarks.workload import Task

COMPUTE_TYPES = ("int8", "int8_float32", "float32")
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {"CT2_USE_EXPERIMENTAL_PACKED_GEMM": "1"},
    {"CT2_FORCE_CPU_ISA": "AVX2"},
    {"CT2_FORCE_CPU_ISA": "AVX512"},
    {"CT2_USE_MKL": "0"},
    {"CT2_USE_MKL": "1"},
)
SCREENING_RUNS = 2

Row = tuple[str, int]  # decode, batch
Rates = dict[Row, dict[int, float]]  # row -> index of the settings -> tokens per second


def thread_layouts(threads: int) -> list[dict[str, Any]]:
    """Return the layouts: one batch on all threads, or as many batches at once as there are threads."""
    layouts = [{"inter_threads": 1, "intra_threads": threads}]
    return layouts if threads == 1 else [*layouts, {"inter_threads": threads, "intra_threads": 1}]


def screen(
    folder: Path, tasks: Mapping[Row, Task], threads: int, *, with_switches: bool, say: Callable[[str], None]
) -> tuple[list[PeerSettings], Rates]:
    """Time every compute type and thread layout; then those that were best for some row, with every switch.

    Returns:
        The settings that ran, and for each row and each of them the best tokens per second of a few runs.
    """
    tried: list[PeerSettings] = []
    rates: Rates = {row: {} for row in tasks}
    for compute_type in COMPUTE_TYPES:
        for layout in thread_layouts(threads):
            _try(PeerSettings("ctranslate2", compute_type, str(folder), layout), tasks, tried, rates, say)
    if with_switches:
        for index in sorted({best(rates[row], 1)[0] for row in tasks}):
            for environment in ENVIRONMENTS:
                _try(replace(tried[index], environment=environment), tasks, tried, rates, say)
    return tried, rates


def best(rates: Mapping[int, float], count: int) -> list[int]:
    """Return the indices of the `count` highest rates, highest first."""
    return sorted(rates, key=lambda index: (-rates[index], index))[:count]


def finalists(row: Row, rates: Rates, count: int) -> list[int]:
    """Return the settings for the full rounds of a row: its best or, if unscreened, those of the rows next to it."""
    near = (
        [row] if row in rates else [(decode, batch) for decode, batch in rates if batch == row[1] or decode == row[0]]
    )
    chosen: list[int] = []
    for other in near:
        chosen += [index for index in best(rates[other], count) if index not in chosen]
    return chosen


def _try(
    settings: PeerSettings,
    tasks: Mapping[Row, Task],
    tried: list[PeerSettings],
    rates: Rates,
    say: Callable[[str], None],
) -> None:
    found: dict[Row, float] = {}
    try:
        with PeerProcess(settings) as process:
            process.run(_first_batch(tasks))  # warm up
            for row, task in tasks.items():
                timings = [process.run(task) for _ in range(SCREENING_RUNS)]
                found[row] = max(timing.num_tokens / timing.seconds for timing in timings)
    except PeerFailed as error:
        say(f"  {error} Left out.")
        return
    tried.append(settings)
    for row, rate in found.items():
        rates[row][len(tried) - 1] = rate
    shown = ", ".join(f"{decode} {batch}: {rate:.0f}" for (decode, batch), rate in found.items())
    say(f"  {settings.label()}: {shown} tokens/s")


def _first_batch(tasks: Mapping[Row, Task]) -> Task:
    task: Task = next(iter(tasks.values()))
    first: Sequence[Any] = task.batches[:1]
    return replace(task, batches=tuple(first))
