"""Versions of the tools that take part in an export."""

import importlib.metadata
import platform

TOOLS = ("dragoman", "torch", "onnx", "onnxscript", "onnxruntime")


def tool_versions() -> dict[str, str]:
    """Tool -> version, for the manifest. What is not installed, such as dragoman run from its sources, is left out."""
    versions = {"python": platform.python_version()}
    for tool in TOOLS:
        try:
            versions[tool] = importlib.metadata.version(tool)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
