"""Builds a model around weights that are already in memory, or mapped from a file, without copying them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from export.architecture import ModelConfig
from export.architecture.stored import StoredModel, as_array, misfits


def assemble(config: ModelConfig, weights: Mapping[str, Any], problems: list[str]) -> StoredModel | None:
    """Return the model; or `None`, with wrong names, shapes and numbers added to `problems`.

    `weights` are arrays or tensors of any floating dtype, which the model keeps, under our names, each once.
    """
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
