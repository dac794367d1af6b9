"""The place of a bundle: in a repository ROOT/NAME/VERSION its folder names the model, and others may be there."""

from pathlib import Path

from service.bundle.errors import BundleError
from service.bundle.fields import is_name
from service.bundle.manifest import MANIFEST_NAME, Manifest
from service.models.repository import shared_pair


def model_name(destination: Path) -> str | None:
    """Return the NAME of `ROOT/NAME/VERSION`, where versions are whole numbers; `None` for any other place."""
    destination = destination.absolute()
    name = destination.parent.name
    return name if _is_version(destination.name) and is_name(name) else None


def check_name(destination: Path, name: str) -> None:
    """Refuse a name that another model of the repository has: a server would serve only one of the two."""
    for folder, manifest in _beside(destination).items():
        if manifest.name == name:
            raise BundleError(f"{folder.parent} already holds a model named {name!r}; choose another --name.")


def shared_pair_of(destination: Path, manifest: Manifest) -> str | None:
    line = shared_pair([manifest, *_beside(destination).values()])
    return line and f"in {_root(destination)} {'; '.join(line)}"


def _beside(destination: Path) -> dict[Path, Manifest]:
    if model_name(destination) is None:
        return {}
    found = {}
    for path in sorted(_root(destination).glob(f"*/*/{MANIFEST_NAME}")):
        folder = path.parent
        if _is_version(folder.name) and folder.parent != destination.absolute().parent:
            try:
                found[folder] = Manifest.load(folder)
            except BundleError:
                continue  # which the server says, too
    return found


def _root(destination: Path) -> Path:
    return destination.absolute().parent.parent


def _is_version(name: str) -> bool:
    return name.isascii() and name.isdigit()
