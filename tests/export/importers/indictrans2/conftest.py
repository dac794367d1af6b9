"""Checkpoints of IndicTrans2 in three shapes, one for each direction, and bundles of them."""

from pathlib import Path
from typing import Any

import pytest

from export.convert import convert
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


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the checkpoints by their directions."""
    root = tmp_path_factory.mktemp("indictrans2")
    return {direction: indictrans2(root / direction, direction, **changes) for direction, changes in SHAPES.items()}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, folders: dict[str, Path]) -> Path:
    """Return a repository of all of them in int8, which is converted in a moment."""
    models = tmp_path_factory.mktemp("models")
    for direction, folder in folders.items():
        (models / direction).mkdir()
        convert(folder, models / direction / "1", precision="int8")
    return models
