"""The bundles that a server of a folder begins with, as the fleet finds them."""

from pathlib import Path

from service.bundle.errors import BundleError
from service.models.repository import FoundBundle, read_models


def find_bundles(path: Path, max_versions: int = 1) -> list[FoundBundle]:
    models = read_models(path, max_versions)
    if faults := [fault for model in models for fault in model.faults]:
        raise BundleError(" ".join(faults))
    return [bundle for model in models for bundle in model.bundles]
