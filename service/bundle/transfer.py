"""Copies the bundles of a repository, checked: `python -m ...transfer SOURCE DESTINATION`.

Containers do this before the server starts: from a volume that many share to a disk of their own. Standard library
only, as the rest of the package.
"""

import shutil
import sys
from pathlib import Path

from service.bundle.checksums import check_intact
from service.bundle.manifest import MANIFEST_NAME, BundleError, Manifest


def transfer(source: Path, destination: Path) -> list[str]:
    """Copy every bundle `<source>/<model>/<version>/` that is not yet there, and tell the names `<model>/<version>`.

    What was copied is what is checked. A bundle appears at `destination` by a rename, whole or not at all.

    Raises:
        BundleError: `source` holds no bundle, or one that is damaged.
        OSError: something can't be read or written.
    """
    manifests = sorted(source.glob(f"*/*/{MANIFEST_NAME}"))
    if not manifests:
        raise BundleError(f"{source} holds no bundle; put them there as <model>/<version>/{MANIFEST_NAME}.")
    bundles = [path.parent for path in manifests]
    names = [bundle.relative_to(source).as_posix() for bundle in bundles]
    for bundle, name in zip(bundles, names, strict=True):
        if not (destination / name).exists():
            _copy(bundle, destination / name)
    return names


def _copy(bundle: Path, target: Path) -> None:
    manifest = Manifest.load(bundle)
    partial = target.with_name(f".{target.name}.partial")  # an earlier run may have left it
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name in (MANIFEST_NAME, *manifest.checksums):
        if (bundle / name).is_file():  # what is missing is told below, with all else
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(bundle / name, partial / name)
    try:
        check_intact(partial, manifest)
    except BundleError as error:
        shutil.rmtree(partial)
        raise BundleError(str(error).replace(str(partial), str(bundle))) from error
    partial.rename(target)


if __name__ == "__main__":
    try:
        copied = transfer(Path(sys.argv[1]), Path(sys.argv[2]))
    except (BundleError, OSError) as error:
        sys.exit(f"dragoman: {error}")
    print(f"{sys.argv[2]} has {', '.join(copied)}, all checksums are right")
