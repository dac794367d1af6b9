"""The share of the work of one process, of several that do not know of each other."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

# Kubernetes' Indexed Jobs and Slurm's arrays number their tasks so.
INDEX_VARIABLES = ("JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID")
_SHARD = re.compile(r"(\d*)/(\d+)")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` equal shares of the work, numbered from 0."""

    index: int = 0
    count: int = 1

    def has(self, file: int, chunk: int, num_files: int) -> bool:
        """Return whether the shard has a chunk; with at least as many files as shards, one shard reads a whole file."""
        return (file if num_files >= self.count else file + chunk) % self.count == self.index

    def has_file(self, file: int, num_files: int) -> bool:
        return num_files < self.count or self.has(file, 0, num_files)


def parse_shard(written: str, environment: Mapping[str, str]) -> Shard:
    """Parse I/N, from 0/N to N-1/N, or /N, where the index is that of the task in `environment`."""
    found = _SHARD.fullmatch(written)
    if found is None or not int(found[2]):
        raise ValueError(f"{written!r} is not a shard; give I/N, such as 0/8 to 7/8, or /8 in a job's task.")
    name = next((name for name in INDEX_VARIABLES if environment.get(name)), "")
    index = found[1] or environment.get(name, "")
    if not index.isdecimal():
        unset = ", ".join(INDEX_VARIABLES)
        raise ValueError(f"{written} has no index, and the environment has none of {unset}; give I/N, such as 0/8.")
    if int(index) >= int(found[2]):
        source = "" if found[1] else f", by {name}"
        raise ValueError(f"{written} has the index {index}{source}; indices go from 0 to {int(found[2]) - 1}.")
    return Shard(int(index), int(found[2]))
