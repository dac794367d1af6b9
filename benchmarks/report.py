"""Where measurements go: one JSON list of records per benchmark, in `build/bench`."""

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DEFAULT_FOLDER = Path("build/bench")


def cpu_model() -> str:
    """What the processor calls itself; measurements mean little without it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def write_records(name: str, records: Sequence[Mapping[str, Any]], folder: Path = DEFAULT_FOLDER) -> Path:
    """Write `records`, each completed with the benchmark's name and the machine, to `<folder>/<name>.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    complete = [{"benchmark": name, "cpu": cpu_model(), **record} for record in records]
    path.write_text(json.dumps(complete, indent=2) + "\n", encoding="utf-8")
    return path
