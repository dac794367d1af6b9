"""How a bundle appears at its place: by a rename, whole and verified, and never in place of another one."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.bundle.checksums import file_sha256
from service.bundle.errors import BundleError
from service.bundle.manifest import MANIFEST_NAME

_PLACE = re.compile(r"[^./][^/]*/[0-9]+")


def is_place(name: str) -> bool:
    """Return whether a name is <model>/<version>, as servers look for bundles; not of what is still being fetched."""
    return _PLACE.fullmatch(name) is not None


def is_placed(manifest_sha256: str, target: Path) -> bool:
    """Return whether the bundle with this manifest is at `target` already.

    Raises:
        BundleError: something else is there.
    """
    if not target.exists():
        return False
    path = target / MANIFEST_NAME
    if path.is_file() and file_sha256(path) == manifest_sha256:
        return True
    raise BundleError(
        f"{target} is another bundle than the one to fetch; remove it, or give the new one a new version."
    )


def place(staging: Path, target: Path) -> None:
    """Move a verified bundle to `target`, where nothing is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staging.rename(target)


@contextmanager
def named(folder: Path, origin: str) -> Iterator[None]:
    """Have errors of a bundle in `folder`, where nobody has put it, name its `origin` instead."""
    try:
        yield
    except BundleError as error:
        raise BundleError(str(error).replace(str(folder), origin)) from error
