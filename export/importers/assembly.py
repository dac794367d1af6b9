"""Builds a model around weights that are already in memory, or mapped from a file, without copying them."""

from collections.abc import Iterator, Mapping
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


def limit_problems(limits: Any, config: ModelConfig) -> Iterator[str]:
    """Yield why a model has too few positions for `max_source_tokens` or `max_output_tokens`, where they are given."""
    for name, side in (("max_source_tokens", "source"), ("max_output_tokens", "target")):
        limit, num_positions = getattr(limits, name), getattr(config, f"max_{side}_positions")
        if limit is not None and limit > num_positions:
            yield f"{name} is {limit}, the model has {num_positions} positions"
