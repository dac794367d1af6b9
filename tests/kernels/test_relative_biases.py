"""Relative biases of tokens that are far from each other: what the model has, and the same bits in any batch."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export.architecture.config import PositionConfig, RelativeBiasConfig
from export.architecture.streamed import StreamedTransformer
from export.architecture.transformer import Transformer
from export.graphs.weights_file import WeightsFile
from export.quantization.fused_graphs import FusedNodes, shape_of, with_recorded
from tests.export.tiny_models import random_sources, tiny_config, tiny_model
from tests.kernels.fused_graphs import EOS_ID, SHAPES, START_ID
from tests.kernels.mixed_batch import decode, mixed_sequences
from tests.kernels.operators import Operators
from tests.unit.engine.recorder import new_sequence

LONGEST = 300
LENGTHS = [1, 15, 16, 17, 127, 128, 129, 130, LONGEST]  # around the borders of buckets, and beyond the last
ROOM: dict[str, Any] = {"capacity": LONGEST, "source_tokens": LONGEST}


def written(model: Transformer, folder: Path) -> tuple[Path, Path]:
    """Write both graphs; the end is never chosen."""
    with WeightsFile(folder) as file:
        made = FusedNodes(model.config, model.stored().weights, file)
        nodes = made.encode_node(), with_recorded(made.decode_node((EOS_ID,), renormalizes=False), None)
    paths = folder / "encoder.onnx", folder / "decoder.onnx"
    for node, path in zip(nodes, paths, strict=True):
        node.save(path, shape_of(model.config))
    return paths


@pytest.mark.parametrize("per_layer", [False, True])
def test_far_tokens_have_the_model_s_biases(kernels_library: Path, tmp_path: Path, per_layer: bool) -> None:
    """Log-probabilities of outputs are the rounded model's, and not those of a model with other buckets."""
    config = tiny_config(
        d_model=36,
        d_head=10,
        layer_norm="rms",
        score_scale="none",
        positions=PositionConfig(layout="none"),
        relative_bias=RelativeBiasConfig(per_layer=per_layer),
        max_source_positions=LONGEST,
        max_target_positions=LONGEST,
        decoder_start_id=START_ID,
    )
    model = tiny_model(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".layers." in name and parameter.dim() == 2:
                parameter.mul_(3.0)  # so that distances matter
    operators = Operators(kernels_library, *written(model, tmp_path), shape_of(config), **ROOM)
    sources = random_sources(120, LENGTHS)
    asked: dict[str, Any] = {"max_output_tokens": LONGEST, "min_output_tokens": LONGEST, "return_scores": True}
    decode(operators, [new_sequence(source, **asked) for source in sources])
    outputs = np.array([operators.output(row) for row in range(len(sources))])
    own = operators.state.rows["log_prob"][: len(sources)]

    def mean_error(bias: RelativeBiasConfig) -> float:
        """Return how far the outputs' log-probabilities are from a rounded model's, per token."""
        other = StreamedTransformer(
            dataclasses.replace(config, relative_bias=bias), model.stored().weights, rounds=True
        )
        hidden = other.hidden(sources, [[START_ID, *ids[:-1]] for ids in outputs.tolist()])
        logits = np.concatenate([*other.logits(hidden.reshape(-1, config.d_model))], axis=1)
        chosen = np.take_along_axis(logits, outputs.reshape(-1, 1), axis=1)[:, 0]
        known = (chosen - np.logaddexp.reduce(logits, axis=1)).reshape(outputs.shape).sum(axis=1)
        return float(np.abs(known - own).mean()) / LONGEST

    assert config.relative_bias is not None
    assert mean_error(config.relative_bias) < 0.02
    assert mean_error(dataclasses.replace(config.relative_bias, max_distance=140)) > 0.1


def test_long_sequences_get_the_same_bits_in_any_batch(kernels_library: Path, tmp_path: Path) -> None:
    shape = dataclasses.replace(SHAPES["T5"], num_positions=LONGEST)
    operators = Operators.tiny(kernels_library, tmp_path, shape, **ROOM)
    sequences = mixed_sequences(shape, random_sources(shape.num_tokens, LENGTHS), limit=LONGEST - 1)  # one has a prefix
    alone = [decode(operators, [sequence])[0] for sequence in sequences]
    for num_threads in (1, 2):
        operators.num_threads = num_threads
        assert decode(operators, sequences) == alone
