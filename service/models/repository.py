"""Where bundles lie: `<root>/<model>/<version>/`, or one bundle by itself."""

from dataclasses import dataclass
from pathlib import Path

from service.bundle.manifest import MANIFEST_NAME, BundleError, Manifest


@dataclass(frozen=True, slots=True)
class FoundBundle:
    """A bundle that is to be served. `version` is the name of its folder; empty for a bundle outside a repository."""

    directory: Path
    version: str
    manifest: Manifest


def find_bundles(path: Path) -> list[FoundBundle]:
    """List the bundles to serve, in order of model names: of every model the highest version.

    `path` is either one bundle or a repository `<root>/<model>/<version>/`, versions being whole numbers. Other
    files and folders are ignored.

    Raises:
        BundleError: `path` is missing or holds no bundle, a manifest is unusable, or two models share a name.
    """
    if not path.is_dir():
        raise BundleError(f"{path} is no directory; write a bundle with 'make export' or give one with --models.")
    if (path / MANIFEST_NAME).exists():
        return [FoundBundle(path, "", Manifest.load(path))]
    bundles: dict[str, FoundBundle] = {}
    for folder in sorted(entry for entry in _entries(path) if entry.is_dir()):
        version = _highest_version(folder)
        if version is None:
            continue
        bundle = FoundBundle(folder / version, version, Manifest.load(folder / version))
        other = bundles.setdefault(bundle.manifest.name, bundle)
        if other is not bundle:
            raise BundleError(
                f"{bundle.directory} and {other.directory} are both called {bundle.manifest.name!r}; remove one."
            )
    if not bundles:
        raise BundleError(
            f"{path} holds neither {MANIFEST_NAME} nor <model>/<version>/{MANIFEST_NAME}; "
            "write a bundle with 'make export' or give one with --models."
        )
    return [bundles[name] for name in sorted(bundles)]


def _highest_version(folder: Path) -> str | None:
    versions = [
        entry.name for entry in _entries(folder) if entry.name.isascii() and entry.name.isdigit() and entry.is_dir()
    ]
    return max(versions, key=int, default=None)


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError as error:
        raise BundleError(f"{directory} can't be read: {error.strerror}.") from error
