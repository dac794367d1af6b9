"""Packages bundles as an OCI image in a layout folder, which registries' tools push, sign and mount.

Equal bundles give equal digests, wherever and whenever they are packaged. Layers are plain tar: gzip would make int8
weights 4 % smaller, and each node would have to inflate them. Files are streamed, so a bundle may exceed memory.
"""

import contextlib
import hashlib
import json
import shutil
import tarfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from service.bundle import artifact
from service.bundle.checksums import check_intact, file_sha256
from service.bundle.errors import BundleError
from service.bundle.manifest import MANIFEST_NAME, Manifest
from service.bundle.transfer.placing import is_model, is_version

_CHUNK_BYTES = 1 << 20
_BLOBS = "blobs/sha256"
_MARK = "oci-layout"  # the file that makes a folder a layout

Descriptor = dict[str, Any]  # of a blob: mediaType, digest, size, perhaps annotations and platform


@dataclass(frozen=True, slots=True)
class FoundBundle:
    """A bundle to package, and where it goes: `<model>/<version>`."""

    directory: Path
    model: str
    version: str
    manifest: Manifest

    @property
    def name(self) -> str:
        return f"{self.model}/{self.version}"


def find_bundles(directories: Sequence[Path]) -> list[FoundBundle]:
    """Return the bundles of the directories, sorted: each is a repository, a model's folder of versions, or a bundle.

    A bundle outside a folder of versions becomes version 1 of the model that its manifest names.
    """
    found = dict[str, FoundBundle]()
    for directory in directories:
        for path in _bundles_of(directory.resolve()):
            manifest = Manifest.load(path)
            in_repository = is_version(path.name)
            model, version = (path.parent.name, path.name) if in_repository else (manifest.name, "1")
            if not is_model(model):
                raise BundleError(
                    f"{path}: the model's name {model!r} can't be a folder; move it to <model>/<version>."
                )
            bundle = FoundBundle(path, model, version, manifest)
            if found.setdefault(bundle.name, bundle).directory != path:
                raise BundleError(
                    f"{found[bundle.name].directory} and {path} are both {bundle.name}; give one of them."
                )
    return [found[name] for name in sorted(found)]


def package(
    bundles: Sequence[FoundBundle],
    destination: Path,
    tag: str,
    notices: Mapping[str, Path],
    say: Callable[[str], None],
    *,
    force: bool = False,
) -> str:
    """Write `bundles` as the only image of a new layout at `destination`; return its digest, `sha256:...`.

    `notices` are files by name of model. An empty `tag` leaves the image without one. With `force`, a layout that is
    there is replaced.
    """
    if strangers := sorted(notices.keys() - {bundle.model for bundle in bundles}):
        models = ", ".join(sorted({bundle.model for bundle in bundles}))
        raise BundleError(f"--notice names {', '.join(strangers)}; the models are {models}.")
    for bundle in bundles:
        check_intact(bundle.directory, bundle.manifest)
        if bundle.model in notices and artifact.NOTICE_NAME in bundle.manifest.checksums:
            raise BundleError(f"{bundle.directory} has a {artifact.NOTICE_NAME} of its own; give none for it.")
    with _staged_layout(destination, force=force) as layout:
        layers = list[Descriptor]()
        for bundle in bundles:
            layers.append(_write_layer(layout, bundle, notices.get(bundle.model)))
            say(f"{bundle.name}: {layers[-1]['digest']}, {layers[-1]['size'] / 1e6:.1f} MB")
        annotations = _annotations(bundles)
        manifests = [_write_image(layout, layers, platform, annotations) for platform in artifact.PLATFORMS]
        index = _index(manifests) | {"annotations": annotations}
        image = _write_json(layout, index, artifact.INDEX_TYPE)
        named = image | ({"annotations": {artifact.REFERENCE: tag}} if tag else {})
        (layout / "index.json").write_bytes(_encoded(_index([named])))
        (layout / _MARK).write_bytes(_encoded({"imageLayoutVersion": "1.0.0"}))
    return cast(str, image["digest"])


def _bundles_of(directory: Path) -> list[Path]:
    if (directory / MANIFEST_NAME).is_file():
        return [directory]
    for pattern in ("*", "*/*"):
        paths = (path.parent for path in directory.glob(f"{pattern}/{MANIFEST_NAME}"))
        if versions := sorted(path for path in paths if is_version(path.name) and is_model(path.parent.name)):
            return versions
    raise BundleError(
        f"{directory} holds no bundle; give a repository <model>/<version>/{MANIFEST_NAME}, or a part of one."
    )


def _annotations(bundles: Sequence[FoundBundle]) -> dict[str, str]:
    licences = sorted({bundle.manifest.licence for bundle in bundles} - {""})
    annotations = {
        artifact.TITLE: ", ".join(bundle.name for bundle in bundles),
        artifact.DESCRIPTION: "Translation models for Dragoman",
    }
    return annotations | ({artifact.LICENCES: " AND ".join(licences)} if licences else {})


def _write_layer(layout: Path, bundle: FoundBundle, notice: Path | None) -> Descriptor:
    files = {name: bundle.directory / name for name in (MANIFEST_NAME, *bundle.manifest.checksums)}
    if notice is not None:
        files[artifact.NOTICE_NAME] = notice
    paths = {f"{bundle.name}/{name}": path for name, path in files.items()}
    folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"."}
    with (
        _new_blob(layout) as blob,
        tarfile.open(fileobj=cast(BinaryIO, blob), mode="w|", format=tarfile.PAX_FORMAT, bufsize=_CHUNK_BYTES) as tar,
    ):
        for name in sorted({*paths, *folders}):
            _add(tar, name, paths.get(name))
    described = {
        artifact.MODEL: bundle.model,
        artifact.VERSION: bundle.version,
        artifact.PRECISION: bundle.manifest.precision,
        artifact.MANIFEST_SHA256: file_sha256(bundle.directory / MANIFEST_NAME),
        artifact.CHECKPOINT_SHA256: bundle.manifest.checkpoint_sha256,
        artifact.LICENCES: bundle.manifest.licence,
    }
    annotations = {name: value for name, value in described.items() if value}
    return blob.descriptor(artifact.LAYER_TYPE) | {"annotations": annotations}


def _add(tar: tarfile.TarFile, name: str, path: Path | None) -> None:
    """Add a file, or a folder if there is no path. Owner, time and permissions are the same for all, and readable."""
    entry = tarfile.TarInfo(name)
    if path is None:
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
        return
    with path.open("rb") as file:
        entry.size, entry.mode = path.stat().st_size, 0o644
        tar.addfile(entry, file)


def _write_image(
    layout: Path, layers: Sequence[Descriptor], architecture: str, annotations: Mapping[str, str]
) -> Descriptor:
    platform = {"architecture": architecture, "os": "linux"}
    config = {
        **platform,
        "config": {"Labels": annotations},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]},
        "history": [
            {"created_by": f"python -m export package: {layer['annotations'][artifact.MODEL]}"} for layer in layers
        ],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": artifact.MANIFEST_TYPE,
        "config": _write_json(layout, config, artifact.CONFIG_TYPE),
        "layers": layers,
        "annotations": annotations,
    }
    return _write_json(layout, manifest, artifact.MANIFEST_TYPE) | {"platform": platform}


def _index(manifests: Sequence[Descriptor]) -> dict[str, Any]:
    return {"schemaVersion": 2, "mediaType": artifact.INDEX_TYPE, "manifests": manifests}


def _write_json(layout: Path, document: Mapping[str, Any], media_type: str) -> Descriptor:
    with _new_blob(layout) as blob:
        blob.write(_encoded(document))
    return blob.descriptor(media_type)


def _encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


class _Blob:
    """A file of a layout that is being written, and its digest so far."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()
        self._size = 0

    def write(self, data: bytes) -> int:
        self._sha256.update(data)
        self._size += len(data)
        return self._file.write(data)

    @property
    def name(self) -> str:
        return self._sha256.hexdigest()

    def descriptor(self, media_type: str) -> Descriptor:
        return {"mediaType": media_type, "digest": f"sha256:{self.name}", "size": self._size}


@contextlib.contextmanager
def _new_blob(layout: Path) -> Iterator[_Blob]:
    partial = layout / _BLOBS / ".partial"
    with partial.open("wb") as file:
        blob = _Blob(file)
        yield blob
    partial.rename(partial.with_name(blob.name))


@contextlib.contextmanager
def _staged_layout(destination: Path, *, force: bool) -> Iterator[Path]:
    """Yield a folder beside `destination` that takes its place when the block ends without an error."""
    destination = destination.resolve()  # "." has no name
    if (destination / _MARK).is_file():
        if not force:
            raise BundleError(f"{destination} is an OCI layout, and is kept; add --force to replace it.")
    elif destination.exists() and not (destination.is_dir() and not any(destination.iterdir())):
        raise BundleError(f"{destination} exists and is no OCI layout; choose another --output or remove it.")
    staging = destination.with_name(f".{destination.name}.{uuid.uuid4().hex[:8]}.partial")
    (staging / _BLOBS).mkdir(parents=True)
    try:
        yield staging
        if destination.exists():
            shutil.rmtree(destination)
        staging.rename(destination)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
