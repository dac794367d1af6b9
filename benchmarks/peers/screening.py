"""Finds CTranslate2's fastest settings for each row of the table, by a short run of all candidates."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.kept import Found
from benchmarks.peers.peer import PeerSettings
from benchmarks.peers.process import PeerFailed, PeerProcess
from benchmarks.workload import Task

COMPUTE_TYPES = ("int8", "int8_float32", "float32")
LARGE_TYPES = COMPUTE_TYPES[:2]  # in float32, a large model takes minutes to say that it waits for memory
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {"CT2_USE_EXPERIMENTAL_PACKED_GEMM": "1"},
    {"CT2_FORCE_CPU_ISA": "AVX2"},
    {"CT2_FORCE_CPU_ISA": "AVX512"},
    {"CT2_USE_MKL": "0"},
    {"CT2_USE_MKL": "1"},
)
SCREENING_SECONDS = 0.5  # at least, for each row
HOPELESS = 0.3  # of the best rate of a row: such as MKL's 8 bits on AMD, a hundredth
RATE = "tokens_per_second_best"

Row = tuple[str, int]  # decode, batch


def thread_layouts(threads: int) -> list[dict[str, Any]]:
    """Return the layouts: one batch on all threads, or as many batches at once as there are threads."""
    layouts = [{"inter_threads": 1, "intra_threads": threads}]
    return layouts if threads == 1 else [*layouts, {"inter_threads": threads, "intra_threads": 1}]


def screen(
    folder: Path, compute_types: Sequence[str], tasks: Mapping[Row, Task], threads: int, say: Callable[[str], None]
) -> Found:
    """Time the compute types in every thread layout; then those that were best for some row, with every switch.

    Returns:
        A record for each row and each of the settings that ran.
    """
    found: Found = []
    for compute_type in compute_types:
        for layout in thread_layouts(threads):
            _try(PeerSettings("ctranslate2", compute_type, str(folder), layout), tasks, found, say)
    best = {settings.label(): settings for row in tasks for settings in finalists(row, found, 1)}
    for settings in best.values():
        for environment in ENVIRONMENTS:
            _try(replace(settings, environment=environment), tasks, found, say)
    return found


def finalists(row: Row, found: Found, count: int) -> list[PeerSettings]:
    """Return the settings for the full rounds of a row: its best or, if unscreened, those of the rows next to it."""
    rows = dict.fromkeys((each["decode"], each["batch"]) for each in found)
    chosen: dict[str, PeerSettings] = {}
    for other in [row] if row in rows else [each for each in rows if set(each) & set(row)]:
        records = [each for each in found if (each["decode"], each["batch"]) == other]
        for record in sorted(records, key=lambda each: -each[RATE])[:count]:
            settings = PeerSettings(**record["settings"])
            chosen[settings.label()] = settings
    return list(chosen.values())


def _try(settings: PeerSettings, tasks: Mapping[Row, Task], found: Found, say: Callable[[str], None]) -> None:
    """Add a record for each row; none if the settings don't run here, and no further ones once they are hopeless."""
    try:
        with PeerProcess(settings) as process:
            first = next(iter(tasks.values()))
            process.run(replace(first, batches=first.batches[:1]))  # warm up
            for (decode, batch), task in tasks.items():
                timings = [process.run(task)]
                while sum(timing.seconds for timing in timings) < SCREENING_SECONDS:
                    timings.append(process.run(task))
                rate = max(timing.num_tokens / timing.seconds for timing in timings)
                say(f"  {settings.label()}: {decode} {batch}: {rate:.0f} tokens/s")
                row = {"decode": decode, "batch": batch}
                others = [each[RATE] for each in found if row.items() <= each.items()]
                found.append({**row, "settings": dataclasses.asdict(settings), RATE: rate})
                if rate < HOPELESS * max(others, default=0.0):
                    return
    except PeerFailed as error:
        say(f"  {error} Left out.")
