"""Writes a bundle so that its folder is either complete or absent."""

import contextlib
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from service.bundle.checksums import file_sha256
from service.bundle.errors import BundleError
from service.bundle.manifest import MANIFEST_NAME
from service.process.disk import flush


@contextlib.contextmanager
def staged_bundle(destination: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield an empty folder beside `destination` that takes its place when the block ends without an error.

    If it fails, nothing is left. With `force` it replaces a bundle, which stays until the new one is on disk.
    """
    check_destination(destination, force=force)
    destination.parent.mkdir(parents=True, exist_ok=True)
    mark = uuid.uuid4().hex[:8]
    staging = destination.with_name(f".{destination.name}.{mark}.partial")
    replaced = destination.with_name(f".{destination.name}.{mark}.replaced")
    staging.mkdir()
    try:
        yield staging
        _flush(staging)
        _take_place(staging, destination, replaced)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    shutil.rmtree(replaced, ignore_errors=True)


def check_destination(destination: Path, *, force: bool = False) -> None:
    """Refuse to replace anything but an empty folder or, with `force`, a bundle."""
    if (destination / MANIFEST_NAME).is_file():
        if not force:
            raise BundleError(f"{destination} already is a bundle; add --force to replace it.")
        return
    for parent in destination.parents:
        if parent.exists() and not parent.is_dir():
            raise BundleError(f"{destination} can't be a folder, as {parent} is a file; choose another --output.")
    if not destination.exists():
        return
    if not destination.is_dir() or any(destination.iterdir()):
        raise BundleError(f"{destination} exists and is not a bundle; choose another --output or remove it.")


def checksums(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of every file in `directory` except the manifest, by relative name."""
    files = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != MANIFEST_NAME)
    return {path.relative_to(directory).as_posix(): file_sha256(path) for path in files}


def bundle_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _take_place(staging: Path, destination: Path, replaced: Path) -> None:
    if not destination.exists():
        staging.rename(destination)
    else:
        # A non-empty folder can't be the target of a rename: rename twice, and undo the first if the second fails.
        destination.rename(replaced)
        try:
            staging.rename(destination)
        except OSError:
            replaced.rename(destination)
            raise
    flush(destination.parent)


def _flush(directory: Path) -> None:
    for path in directory.rglob("*"):
        flush(path)
    flush(directory)
