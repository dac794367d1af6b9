"""Builds a model around weights that are already in memory, or mapped from a file, without copying them."""

from collections.abc import Mapping

import torch
from torch import Tensor

from export.architecture import ModelConfig, Transformer
from export.architecture.embedding import sinusoidal_table


def assemble(config: ModelConfig, weights: Mapping[str, Tensor], problems: list[str]) -> Transformer | None:
    """Return the model in evaluation mode; or `None`, with wrong names, shapes and numbers added to `problems`.

    `weights` are of any floating dtype, which the model keeps, under our names, each once.
    """
    found = len(problems)
    problems += [
        f"{name} holds NaN or infinite numbers"
        for name, value in sorted(weights.items())
        if not bool(torch.isfinite(value).all())
    ]
    with torch.device("meta"):  # no memory or time spent on numbers that are replaced immediately
        model = Transformer(config)
    try:
        model.check_fit(weights)
    except ValueError as error:
        problems.append(str(error))
    if len(problems) > found:
        return None
    shared = model.shared_names()
    given = {**weights, **{name: weights[kept] for name, kept in shared.items()}}
    model.load_state_dict(given, assign=True)
    for name, kept in shared.items():
        module, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(module), attribute, model.get_parameter(kept))
    for embedding in (model.encoder.embedding, model.decoder.embedding):
        if embedding.positions is not None:
            embedding.positions = sinusoidal_table(len(embedding.positions), config.d_model, config.positions)
    return model.requires_grad_(False).eval()
