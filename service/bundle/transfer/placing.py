"""How a bundle appears at its place: by a rename, whole and verified, and never in place of another one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.bundle.checksums import file_sha256
from service.bundle.errors import BundleError
from service.bundle.fields import is_name
from service.bundle.manifest import MANIFEST_NAME


def is_model(name: str) -> bool:
    """Return whether a folder may be a model's; those that begin with a dot are of what is still being fetched."""
    return is_name(name) and "/" not in name and not name.startswith(".")


def is_version(name: str) -> bool:
    """Return whether servers look for a bundle in a folder of this name."""
    return name.isascii() and name.isdigit()


def is_place(name: str) -> bool:
    """Return whether a name is <model>/<version>."""
    model, _, version = name.partition("/")
    return is_model(model) and is_version(version)


def is_placed(manifest_sha256: str, target: Path) -> bool:
    """Return whether the bundle with this manifest is at `target` already."""
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
