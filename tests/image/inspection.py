"""Properties of an image that need no running container: its settings, its size, its files."""

import hashlib
import json
from datetime import datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from tests.image.engine import ContainerEngine

BUDGET = 450_000_000  # bytes, unpacked, over the base
LABELS = ("title", "description", "version", "revision", "created", "source", "licenses")
FORBIDDEN = {"pip", "setuptools", "torch", "onnx", "onnxscript", "transformers"}
MODEL = "machine-learning-model"  # as CycloneDX names the type of a component
COMPILERS = ("cc", "gcc", "g++", "clang", "ld", "make")


def size_over_base(engine: ContainerEngine, image: str, base: str) -> int:
    """Return the image's size over its base in bytes, unpacked."""
    return int(_inspect(engine, image)["Size"]) - int(_inspect(engine, base)["Size"])


def problems(engine: ContainerEngine, image: str, base: str, budget: int = BUDGET) -> list[str]:
    """Return what is wrong with an image's settings and size."""
    inspected = _inspect(engine, image)
    config = inspected["Config"]
    labels = config.get("Labels") or {}
    size = size_over_base(engine, image, base)
    found = [f"label {name} is missing" for name in LABELS if not labels.get(f"org.opencontainers.image.{name}")]
    if config["User"] != "10001:10001":
        found.append(f"user {config['User'] or 'root'}")
    if inspected.get("Healthcheck", {}).get("Test", [""])[0] != "CMD":
        found.append("no HEALTHCHECK")
    if size > budget:
        found.append(f"{size / 1e6:.0f} MB over its base, more than {budget / 1e6:.0f} MB")
    return found


def labels(engine: ContainerEngine, image: str) -> dict[str, str]:
    """Return OCI's labels, without their prefix."""
    told = _inspect(engine, image)["Config"]["Labels"]
    assert datetime.fromisoformat(told["org.opencontainers.image.created"]).tzinfo is not None
    return {name: told[f"org.opencontainers.image.{name}"] for name in LABELS}


def layers(engine: ContainerEngine, image: str) -> list[str]:
    """Return the digests of an image's layers, the base's first."""
    return list(_inspect(engine, image)["RootFS"]["Layers"])


def surprises(root: Path) -> list[str]:
    """Return files that do not belong in a server: compilers, pip, torch, setuid programs, uncompiled Python."""
    installed = {distribution.name for distribution in _distributions(root)}
    found = sorted(installed & FORBIDDEN)
    found += [str(path) for name in COMPILERS for path in root.glob(f"usr/*bin/{name}")]
    found += [str(path) for path in root.glob("usr/local/bin/pip*")]
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o6000:
            found.append(f"{path} is setuid")
    for source in (root / "opt/dragoman").rglob("service/**/*.py"):
        if not list((source.parent / "__pycache__").glob(f"{source.stem}.*.pyc")):
            found.append(f"{source} is not compiled")
    return [name.removeprefix(str(root)) for name in found]


def sbom_problems(root: Path) -> list[str]:
    """Return how the SBOM differs from what is installed, and components without version or licence."""
    sbom = json.loads((root / "usr/share/dragoman/sbom.json").read_text())
    assert sbom["bomFormat"] == "CycloneDX"
    listed = {each["name"]: each for each in sbom["components"] if each["type"] != MODEL}
    installed = {distribution.name: distribution.version for distribution in _distributions(root)}
    found = [f"{name} is not installed" for name in listed.keys() - installed.keys()]
    found += [f"{name} is not listed" for name in installed.keys() - listed.keys()]
    for name, component in listed.items():
        if component.get("version") != installed.get(name):
            found.append(f"{name} is listed as {component.get('version')}")
    for component in sbom["components"]:
        if not component.get("licenses"):
            found.append(f"{component['name']} has no licence")
    return found + _model_problems(root, [each for each in sbom["components"] if each["type"] == MODEL])


def _model_problems(root: Path, listed: list[dict[str, Any]]) -> list[str]:
    """Return models and files of models that are not as listed."""
    sums = {
        f"{model['name']}/{model['version']}/{file['name']}": file["hashes"][0]["content"]
        for model in listed
        for file in model["components"]
    }
    models = root / "models"
    found = [path for path, digest in sums.items() if not _has_sum(models / path, digest)]
    there = {str(path.relative_to(models)) for path in models.glob("*/*/*") if path.name != "manifest.json"}
    return found + sorted(there - sums.keys())


def _has_sum(path: Path, digest: str) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def _distributions(root: Path) -> list[Distribution]:
    folders = [str(path) for path in root.glob("**/site-packages")]
    return list(distributions(path=folders))


def _inspect(engine: ContainerEngine, image: str) -> dict[str, Any]:
    (told,) = json.loads(engine.podman("image", "inspect", image))
    return dict(told)
