"""Checkpoints of IndicTrans2 in three shapes, one for each direction, and their bundles, each converted once."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from export.convert import convert
from service.bundle.manifest import Manifest
from tests.export.importers.indictrans2.checkpoints import indictrans2

POST_NORM = {"encoder_normalize_before": False, "decoder_normalize_before": False, "encoder_layers": 1}
SHAPES: dict[str, dict[str, Any]] = {
    "en-indic": {},  # as published
    "indic-en": {
        **POST_NORM,
        "layernorm_embedding": False,
        "share_decoder_input_output_embed": False,
        "activation_function": "relu",
    },
    "indic-indic": POST_NORM,
}


class Converted(NamedTuple):
    """A checkpoint, the repository with its bundle, and that one's manifest."""

    folder: Path
    models: Path
    manifest: Manifest

    @property
    def bundle(self) -> Path:
        """Return the bundle."""
        return self.models / self.folder.name / "1"


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Converted]:
    """Return all of them, by their directions."""
    root = tmp_path_factory.mktemp("indictrans2")
    result = {}
    for direction, changes in SHAPES.items():
        folder = indictrans2(root / direction, direction, **changes)
        bundle = root / "models" / direction / "1"
        bundle.parent.mkdir(parents=True)
        convert(folder, bundle)
        result[direction] = Converted(folder, root / "models", Manifest.load(bundle))
    return result
