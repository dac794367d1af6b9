"""Versions of the tools used in an export, and the machine it ran on."""

import importlib.metadata
import platform
from pathlib import Path

TOOLS = ("dragoman", "torch", "onnx", "onnxscript", "onnxruntime")


def tool_versions() -> dict[str, str]:
    """Return tool -> version for the manifest, without tools not installed, such as dragoman run from its sources."""
    versions = {"python": platform.python_version()}
    for tool in TOOLS:
        try:
            versions[tool] = importlib.metadata.version(tool)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def cpu_model() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
