"""Tells whether a bundle was made from a checkpoint: `python -m service.bundle.freshness BUNDLE WEIGHTS`.

`make serve` asks this before it installs what an export needs. Standard library only, as the rest of the package.
"""

import sys
from pathlib import Path

from service.bundle.checksums import check_intact, file_sha256
from service.bundle.manifest import BundleError, Manifest


def staleness(bundle: Path, weights: Path) -> str | None:
    """Why the bundle can't stand for the checkpoint's weights; `None` if it can."""
    try:
        manifest = Manifest.load(bundle)
        check_intact(bundle, manifest)
    except BundleError as error:
        return str(error)
    if not weights.is_file():
        return None  # nothing to be stale against: the bundle is all there is
    if manifest.checkpoint_sha256 != file_sha256(weights):
        return f"{bundle} was made from other weights than {weights}"
    return None


if __name__ == "__main__":
    reason = staleness(Path(sys.argv[1]), Path(sys.argv[2]))
    if reason is not None:
        sys.exit(reason)
