"""Bundles from an image in a registry, as `python -m export package` makes it.

The image's digest vouches for its layers' digests, and these for all files: nothing is unpacked before its digest has
been compared. A layer is fetched to the destination's disk, then unpacked beside it: that takes space for the largest
one twice.
"""

import hashlib
import json
import platform
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.bundle import artifact
from service.bundle.checksums import check_intact, file_sha256
from service.bundle.errors import BundleError, one_line
from service.bundle.manifest import MANIFEST_NAME, Manifest
from service.bundle.transfer.download import download, say
from service.bundle.transfer.placing import is_place, is_placed, named, place
from service.bundle.transfer.registry import Reference, Registry
from service.bundle.transfer.unpacking import unpack

# Docker's own types, which other tools may convert an image to, have the same fields.
_INDEX_TYPES = (artifact.INDEX_TYPE, "application/vnd.docker.distribution.manifest.list.v2+json")
_MANIFEST_TYPES = (artifact.MANIFEST_TYPE, "application/vnd.docker.distribution.manifest.v2+json")
_MOST_MANIFEST_BYTES = 4 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_STAGING = ".layers"


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer's blob, and the bundle in it as annotations tell; empty if they don't."""

    digest: str
    size: int
    name: str  # <model>/<version>
    manifest_sha256: str


def fetch_image(text: str, destination: Path) -> list[str]:
    """Fetch every missing bundle of an image, REGISTRY/REPOSITORY[:TAG][@DIGEST]; return the names of all."""
    reference = Reference.parse(text)
    registry = Registry(reference)
    layers = _layers(reference, registry)
    names = [name for layer in layers for name in _fetch(reference, registry, layer, destination)]
    shutil.rmtree(destination / _STAGING, ignore_errors=True)
    if not names:
        raise BundleError(f"{reference} holds no bundle; package them with 'python -m export package'.")
    return sorted(names)


def _layers(reference: Reference, registry: Registry) -> list[_Layer]:
    """Return the layers of the image for this machine, whose manifests have the digests that were asked for."""
    version = reference.version
    try:
        for types in ((*_INDEX_TYPES, *_MANIFEST_TYPES), _MANIFEST_TYPES):
            data = registry.manifest(version, types, _MOST_MANIFEST_BYTES)
            digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
            if ":" in version and digest != version:
                raise BundleError(f"{reference}: the registry sends {digest} for {version}; don't trust it.")
            if version == reference.version and not reference.is_digest:
                say(f"{reference} is {digest}")
            document = json.loads(data)
            if "manifests" not in document:
                return [_layer(each) for each in document["layers"]]
            version = _for_this_machine(document["manifests"], reference)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BundleError(f"{reference} is no image with layers: {one_line(error)}.") from error
    raise BundleError(f"{reference} is an index of indexes; name an image.")


def _for_this_machine(manifests: list[dict[str, Any]], reference: Reference) -> str:
    wanted = {"os": "linux", "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine())}
    for each in manifests:
        if wanted.items() <= each.get("platform", {}).items():
            return _digest(each)
    raise BundleError(f"{reference} has no image for linux/{wanted['architecture']}.")


def _layer(descriptor: dict[str, Any]) -> _Layer:
    annotations = descriptor.get("annotations") or {}
    name = f"{annotations.get(artifact.MODEL, '')}/{annotations.get(artifact.VERSION, '')}"
    size = descriptor["size"]
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise ValueError(f"a layer's size is {size!r:.50}")
    return _Layer(
        _digest(descriptor),
        size,
        name if is_place(name) else "",
        str(annotations.get(artifact.MANIFEST_SHA256, "")),
    )


def _digest(descriptor: dict[str, Any]) -> str:
    digest = str(descriptor["digest"])
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"the digest {digest[:100]!r} is not sha256:...")
    return digest


def _fetch(reference: Reference, registry: Registry, layer: _Layer, destination: Path) -> list[str]:
    """Fetch a layer's bundles and return their names."""
    if layer.name and layer.manifest_sha256 and is_placed(layer.manifest_sha256, destination / layer.name):
        return [layer.name]
    origin = f"{reference}, {layer.name or 'layer ' + layer.digest}"
    blob = destination / _STAGING / layer.digest.removeprefix("sha256:")
    files = blob.with_name(f"{blob.name}.files")
    download(origin, lambda start: registry.blob(layer.digest, start), layer.size, blob)
    if f"sha256:{file_sha256(blob)}" != layer.digest:
        blob.unlink()
        raise BundleError(f"{origin} does not have the digest {layer.digest}; run this again, and it is fetched anew.")
    shutil.rmtree(files, ignore_errors=True)
    unpack(blob, files, origin)
    bundles = sorted(path.parent for path in files.glob(f"*/*/{MANIFEST_NAME}"))
    with named(files, str(reference)):
        for bundle in bundles:
            check_intact(bundle, Manifest.load(bundle))
    names = [bundle.relative_to(files).as_posix() for bundle in bundles]
    for bundle, name in zip(bundles, names, strict=True):
        if not is_placed(file_sha256(bundle / MANIFEST_NAME), destination / name):
            place(bundle, destination / name)
    shutil.rmtree(files, ignore_errors=True)  # a layer need not have any
    blob.unlink()
    return names
