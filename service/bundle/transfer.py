"""Copies and checks the bundles of a repository: `python -m ...transfer SOURCE DESTINATION`.

Containers do this before the server starts: from a shared volume to a disk of their own. Standard library only, like
the rest of the package.
"""

import shutil
import sys
from pathlib import Path

from service.bundle.checksums import check_intact
from service.bundle.errors import BundleError
from service.bundle.manifest import MANIFEST_NAME, Manifest


def transfer(source: Path, destination: Path) -> list[str]:
    """Copy every missing bundle `<source>/<model>/<version>/`; return the names `<model>/<version>` of all in `source`.

    The copies are checked, not the originals. A bundle appears at `destination` by a rename, complete or not at all.

    Raises:
        BundleError: `source` contains no bundle, or a damaged one.
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
    partial = target.with_name(f".{target.name}.partial")  # may be left over from an earlier run
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name in (MANIFEST_NAME, *manifest.checksums):
        if (bundle / name).is_file():  # missing files are reported below, with all other problems
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
