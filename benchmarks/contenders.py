"""The servers under comparison: how to start each, and its description in records."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.models import BenchModel
from benchmarks.peers import libretranslate

CT2_COMPUTE_TYPE = "int8_float32"  # the fastest for it on most rows of the offline benchmark


@dataclass(frozen=True, slots=True)
class Contender:
    """A server under measurement: what to start, and its description in records."""

    engine: str
    batching: str
    precision: str
    command: Sequence[str]
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return its short name."""
        return f"{self.engine}, {self.batching}"

    def document(self, model: BenchModel) -> dict[str, Any]:
        """Return what a record says of it."""
        return {
            "model": model.name,
            "engine": self.engine,
            "precision": self.precision,
            "decode": "greedy",
            "batching": self.batching,
            "settings": self.settings,
        }

    def with_queue(self, max_waiting: int) -> "Contender":
        """Return the same contender with a bounded queue."""
        return replace(
            self,
            command=[*self.command, "--max-waiting", str(max_waiting)],
            settings={**self.settings, "max_waiting": max_waiting},
        )


def ct2_contender(model: BenchModel, folder: Path, bundle: Path, settings: dict[str, Any]) -> Contender:
    """Return CTranslate2's server on the model in `folder`, with the tokenizer of our bundle.

    `settings` are the numbers of both kinds of threads, batch size, and how long a batch is waited for.
    """
    flags: dict[str, Any] = {
        "model": folder,
        "tokenizer": bundle / "tokenizer.model",
        "compute-type": CT2_COMPUTE_TYPE,
        **{name.replace("_", "-"): value for name, value in settings.items()},
        "max-output-tokens": model.max_output_tokens,
        "min-output-tokens": max(model.fixed_output_tokens, 1),
    }
    command = _command("benchmarks.peers.ct2_server", flags)
    return Contender("ctranslate2", "static (CTranslate2)", CT2_COMPUTE_TYPE, command, settings)


def libretranslate_contender(folder: Path, bundle: Path, layout: Mapping[str, Any]) -> Contender | None:
    """Return LibreTranslate's server on the model in `folder`; `None` if `make bench-peers` has not installed it."""
    if not libretranslate.is_installed():
        return None
    flags: dict[str, Any] = {
        "model": folder,
        "tokenizer": bundle / "tokenizer.model",
        "compute-type": CT2_COMPUTE_TYPE,
        "inter-threads": layout["inter_threads"],
        "intra-threads": layout["intra_threads"],
    }
    command = _command("benchmarks.peers.libretranslate", flags)
    return Contender("libretranslate", "none (LibreTranslate)", CT2_COMPUTE_TYPE, command, dict(layout))


def _command(module: str, flags: Mapping[str, Any]) -> list[str]:
    command = [sys.executable, "-m", module]
    for name, value in flags.items():
        command += [f"--{name}", str(value)]
    return command
