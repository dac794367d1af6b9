"""Tells whether bundles were made from the checkpoints at hand: `python -m ...freshness MODELS CHECKPOINTS`.

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
    if manifest.checkpoint_sha256 != file_sha256(weights):
        return f"{bundle} was made from other weights than {weights}"
    return None


def stale(models: Path, checkpoints: Path) -> list[str]:
    """Why some checkpoints in the folder, each of which should have its bundle at MODELS/<name>/1, do not."""
    weights = sorted(checkpoints.glob("*/model.safetensors"))
    reasons = [staleness(models / path.parent.name / "1", path) for path in weights]
    return [reason for reason in reasons if reason is not None]


if __name__ == "__main__":
    told = stale(Path(sys.argv[1]), Path(sys.argv[2]))
    if told:
        sys.exit("\n".join(told))
