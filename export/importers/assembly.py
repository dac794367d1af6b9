"""Builds a model around weights that are already in memory, or mapped from a file, without copying them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from export.architecture import ModelConfig
from export.architecture.stored import StoredModel, as_array, misfits


def assemble(config: ModelConfig, weights: Mapping[str, Any], problems: list[str]) -> StoredModel | None:
    """Return the model of `weights`, arrays or tensors by our names; or `None`, and add why to `problems`."""
    found = len(problems)
    arrays = {name: value if isinstance(value, np.ndarray) else as_array(value) for name, value in weights.items()}
    problems += [
        f"{name} holds NaN or infinite numbers"
        for name, value in sorted(arrays.items())
        if not bool(np.isfinite(value).all())
    ]
    if misfit := misfits(config, arrays):
        problems.append(misfit)
    return StoredModel(config, arrays) if len(problems) == found else None
