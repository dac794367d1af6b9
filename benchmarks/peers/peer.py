"""The common interface of the engines under measurement, and their settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks.workload import Task

ENGINES = ("dragoman", "ctranslate2", "transformers")


class Peer(Protocol):
    """Translates token ids to token ids, ready to be timed."""

    def translate(self, batch: Sequence[Sequence[int]], task: Task) -> list[list[int]]:
        """Return the best output of each source, in order, without start and end-of-sentence tokens."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """One configuration of one engine: what it loads, its own options, and its environment variables."""

    engine: str
    precision: str
    folder: str  # a bundle, a CTranslate2 model, or a native checkpoint
    options: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def label(self) -> str:
        """Return a short name for progress and plots."""
        values = [f"{name}={value}" for name, value in (*self.options.items(), *self.environment.items())]
        return " ".join([self.engine, self.precision, *values])

    def document(self) -> dict[str, Any]:
        """Return the part that a record keeps."""
        return {**self.options, **self.environment}
