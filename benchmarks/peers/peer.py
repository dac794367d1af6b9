"""What every engine under measurement offers, and how one is chosen by its settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks.workload import Task

ENGINES = ("dragoman", "ctranslate2", "transformers")


class Peer(Protocol):
    """Translates token ids to token ids, ready to be timed."""

    def translate(self, batch: Sequence[Sequence[int]], task: Task) -> list[list[int]]:
        """The best output of each source, in order, without start and end-of-sentence tokens."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """One configuration of one engine: what it loads, its own options, and what it reads from the environment."""

    engine: str
    precision: str
    folder: str  # a bundle, a CTranslate2 model, or a native checkpoint
    options: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def label(self) -> str:
        """A short name for progress and plots."""
        values = [f"{name}={value}" for name, value in (*self.options.items(), *self.environment.items())]
        return " ".join([self.engine, self.precision, *values])

    def document(self) -> dict[str, Any]:
        """What of it a record keeps."""
        return {**self.options, **self.environment}


def open_peer(settings: PeerSettings) -> Peer:
    """Load the engine, in this process.

    Raises:
        ValueError: there is no such engine.
    """
    # Each engine's libraries are imported only in the process that runs it.
    if settings.engine == "dragoman":
        from benchmarks.peers.dragoman import DragomanPeer

        return DragomanPeer(settings)
    if settings.engine == "ctranslate2":
        from benchmarks.peers.ct2 import CT2Peer

        return CT2Peer(settings)
    if settings.engine == "transformers":
        from benchmarks.peers.generate import GeneratePeer

        return GeneratePeer(settings)
    raise ValueError(f"engine is {settings.engine!r}; allowed are {', '.join(ENGINES)}.")
