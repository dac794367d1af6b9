"""Checks of ONNX Runtime and of the GPU, if one is asked for or there."""

import ctypes
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from service.cli.doctor.finding import Finding, fail, ok
from service.config.server_config import ServerConfig

_DISTRIBUTIONS = ("onnxruntime", "onnxruntime-gpu")


def onnxruntime(config: ServerConfig, installed: Sequence[str] | None = None) -> Iterator[Finding]:
    """Yield the version, whether two of its distributions are in each other's way, and whether the device works."""
    from service.engine.runtime.session import DeviceUnavailable, check_device
    from service.server.optional_parts import onnxruntime_version

    found = [name for name in _DISTRIBUTIONS if _is_installed(name)] if installed is None else installed
    if len(found) > 1:
        yield fail("onnxruntime", f"{' and '.join(found)} are installed", "they share files: uninstall both, then one.")
    try:
        check_device(config.device)
    except DeviceUnavailable as error:
        yield fail("device", str(error))
    else:
        yield ok("onnxruntime", f"{onnxruntime_version()} works on device {config.device}")


def gpu(config: ServerConfig, devices: Path = Path("/dev"), library: str = "libcuda.so.1") -> Iterator[Finding]:
    """Yield what there is of NVIDIA's, if a GPU is asked for or there."""
    nodes = sorted(each.name for each in devices.glob("nvidia[0-9]*"))
    has_driver = _can_load(library)
    if config.device == "cpu":
        if nodes:
            yield ok("gpu", f"{', '.join(nodes)}; not used, as the device is cpu")
        return
    if not nodes:
        yield fail("gpu", f"no {devices}/nvidia0", "give the container its GPU (docs/cuda.md), or take --device cpu.")
    if not has_driver:
        yield fail(
            "gpu", f"the driver's {library} can't be loaded", "install NVIDIA's driver, or its container toolkit."
        )
    if nodes and has_driver:
        yield ok("gpu", f"{', '.join(nodes)}, with a driver")


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
