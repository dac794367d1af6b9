"""Copies bundles to a folder; each appears there once it is complete and verified.

Containers do this before the server starts. What a killed attempt has left, the next one completes.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from service.bundle.checksums import check_intact, file_sha256
from service.bundle.errors import BundleError
from service.bundle.fields import is_name
from service.bundle.manifest import MANIFEST_NAME, MAX_MANIFEST_BYTES, Manifest
from service.bundle.regular_file import open_regular
from service.bundle.transfer.download import download

if TYPE_CHECKING:  # it imports fsspec, an extra
    from service.bundle.transfer.store import Store

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_INSTALL = "pip install ./client '.[cpu,stores]' in a checkout of Dragoman"


class Folder:
    """Files by their names relative to a folder. Errors are the system's, `OSError`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __str__(self) -> str:
        return str(self._root)

    def manifests(self) -> list[str]:
        return [path.relative_to(self._root).as_posix() for path in self._root.glob(f"*/*/{MANIFEST_NAME}")]

    def size(self, name: str) -> int | None:
        try:
            with open_regular(self._root / name) as file:
                return os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return None

    def read(self, name: str, start: int) -> Iterator[bytes]:
        with open_regular(self._root / name) as file:
            file.seek(start)
            while chunk := file.read(1 << 20):
                yield chunk


def transfer(source: str | Path, destination: Path) -> list[str]:
    """Fetch every missing bundle `<model>/<version>` of `source`, a folder or a store's URL; return all names."""
    files = _opened(source)
    names = sorted(filter(_is_place, (name.removesuffix(f"/{MANIFEST_NAME}") for name in files.manifests())))
    if not names:
        raise BundleError(f"{source} holds no bundle; put them there as <model>/<version>/{MANIFEST_NAME}.")
    for name in names:
        _fetch(files, name, destination)
    return names


def _opened(source: str | Path) -> "Folder | Store":
    if isinstance(source, Path) or not _URL.match(source):
        return Folder(Path(source))
    try:
        from service.bundle.transfer.store import Store
    except ModuleNotFoundError as error:
        raise BundleError(f"{source} needs {error.name}, which is not installed; {_INSTALL}.") from None
    return Store(source)


def _fetch(files: "Folder | Store", name: str, destination: Path) -> None:
    target = destination / name
    staging = target.with_name(f".{target.name}.partial")
    fresh = target.with_name(f".{target.name}.manifest")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        _download(files, name, MANIFEST_NAME, fresh, MAX_MANIFEST_BYTES)
        sha256 = file_sha256(fresh / MANIFEST_NAME)
        if _is_placed(sha256, target):
            return
        with _named(fresh, f"{files}/{name}"):
            manifest = Manifest.load(fresh)
        begun = staging / MANIFEST_NAME
        if not begun.is_file() or file_sha256(begun) != sha256:
            shutil.rmtree(staging, ignore_errors=True)
            fresh.rename(staging)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    for file in manifest.checksums:
        _download(files, name, file, staging)
    try:
        with _named(staging, f"{files}/{name}"):
            check_intact(staging, manifest)
    except BundleError:
        shutil.rmtree(staging)
        raise
    staging.rename(target)


def _download(files: "Folder | Store", bundle: str, file: str, folder: Path, most: int | None = None) -> None:
    """Fetch a file of a bundle; if it is missing, leave that to `check_intact`, which names all that are."""
    name = f"{bundle}/{file}"
    size = files.size(name)
    if size is None:
        return
    if most is not None and size > most:
        raise BundleError(f"{files}/{name} has {size} bytes; allowed: {most}.")
    download(name, lambda start: files.read(name, start), size, folder / file)


def _is_place(name: str) -> bool:
    """Return whether a name is <model>/<version>; folders that begin with a dot hold what is still being fetched."""
    model, _, version = name.partition("/")
    return is_name(model) and not model.startswith(".") and version.isascii() and version.isdigit()


def _is_placed(manifest_sha256: str, target: Path) -> bool:
    if not target.exists():
        return False
    path = target / MANIFEST_NAME
    if path.is_file() and file_sha256(path) == manifest_sha256:
        return True
    raise BundleError(f"{target} holds a different bundle; remove it, or give the new one another version.")


@contextmanager
def _named(folder: Path, origin: str) -> Iterator[None]:
    """Have errors of a bundle in `folder`, where nobody has put it, name its `origin` instead."""
    try:
        yield
    except BundleError as error:
        raise BundleError(str(error).replace(str(folder), origin)) from error
