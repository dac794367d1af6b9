"""Checks whether bundles were made from the current checkpoints: `python -m ...freshness MODELS CHECKPOINTS`.

`make serve` runs this before it installs the requirements of an export. Standard library only, like the rest of the
package.
"""

import sys
from pathlib import Path

from service.bundle.checksums import check_intact, file_sha256
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest


def staleness(bundle: Path, weights: Path) -> str | None:
    """Return why the bundle is not a current export of the checkpoint's weights; `None` if it is."""
    try:
        manifest = Manifest.load(bundle)
        check_intact(bundle, manifest)
    except BundleError as error:
        return str(error)
    if manifest.checkpoint_sha256 != file_sha256(weights):
        return f"{bundle} was made from other weights than {weights}"
    return None


def stale(models: Path, checkpoints: Path) -> list[str]:
    """Return why checkpoints in the folder lack a current bundle at MODELS/<name>/1, one reason for each that does."""
    weights = sorted(checkpoints.glob("*/model.safetensors"))
    reasons = [staleness(models / path.parent.name / "1", path) for path in weights]
    return [reason for reason in reasons if reason is not None]


if __name__ == "__main__":
    told = stale(Path(sys.argv[1]), Path(sys.argv[2]))
    if told:
        sys.exit("\n".join(told))
