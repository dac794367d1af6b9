"""Stores measurements: one JSON list of records per benchmark, in `build/bench`."""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from export.tools import cpu_model
from service.engine.cpus import available_cpus

DEFAULT_FOLDER = Path("build/bench")
PACKAGES = ("onnxruntime", "ctranslate2", "torch", "transformers", "grpcio", "numpy")


def cpu_name() -> str:
    """Return the processor's name with its numbers: virtual machines call several generations by one name."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    known = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    numbers = [f"{name.removeprefix('cpu ')} {known[name]}" for name in ("cpu family", "model") if name in known]
    return " ".join([cpu_model(), *numbers])


def machine() -> dict[str, Any]:
    """Return the processor, the CPUs available to this process, its relevant vector extensions, and the memory."""
    path = Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    flags = {flag for line in text.splitlines() if line.startswith("flags") for flag in line.split()}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": cpu_name(),
        "cpus": available_cpus(),
        "extensions": sorted(flags & {"avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8"}),
        "memory_gib": round(memory, 1),
        "system": platform.platform(),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that measurements depend on; Dragoman's own is the commit."""
    found = {"python": platform.python_version(), "commit": _commit()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def write_records(name: str, records: Sequence[Mapping[str, Any]], folder: Path = DEFAULT_FOLDER) -> Path:
    """Write `records` to `<folder>/<name>.json`, each completed with what is needed to judge and repeat it.

    That is the benchmark's name, the machine, the versions, the command and the time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    circumstances = {
        "benchmark": name,
        "cpu": cpu_name(),
        "machine": machine(),
        "versions": versions(),
        "command": _command(),
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    complete = [{**circumstances, **record} for record in records]
    path.write_text(json.dumps(complete, indent=2) + "\n", encoding="utf-8")
    return path


def _command() -> str:
    module = getattr(sys.modules["__main__"], "__spec__", None)
    program = f"python -m {module.name}" if module is not None else "python"
    return " ".join([program, *sys.argv[1:]])


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
