"""The model in numpy is the model in torch, in every choice; and it computes without torch."""

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from export.architecture import PositionConfig, RelativeBiasConfig
from export.architecture.stored import StoredModel, as_array, weight_shapes
from export.architecture.streamed import StreamedTransformer
from export.architecture.transformer import Transformer, padding_mask
from tests.export.tiny_models import random_sources, tiny_config, tiny_model
from tests.export.variants import LENGTHS, VARIANTS

POSITIONS = PositionConfig(layout="none")
CHOICES: dict[str, dict[str, Any]] = VARIANTS | {
    "shipped": {},
    "silu": {"activation": "silu", "norm": "post", "final_norm": False},
    "uneven, biases, post-norm": VARIANTS["uneven"]
    | {"norm": "post", "relative_bias": RelativeBiasConfig(per_layer=True), "attention_output": "none"},
    "rotary halves": {"positions": PositionConfig(layout="rotary", offset=3), "qk_norm": "rms"},
    "rms, post-norm, scaled": {"layer_norm": "rms", "norm": "post", "embedding_norm": True, "positions": POSITIONS},
}


@pytest.mark.parametrize("changes", CHOICES.values(), ids=CHOICES)
@torch.no_grad()
def test_logits_and_attention_are_torchs(changes: dict[str, Any]) -> None:
    model = tiny_model(tiny_config(**changes))
    config, width = model.config, max(LENGTHS)
    sources = random_sources(config.source_vocabulary_size, LENGTHS)
    targets = np.random.default_rng(0).integers(4, config.target_vocabulary_size, (len(sources), 25))
    padded = torch.tensor([[*source, *[config.pad_id] * (width - len(source))] for source in sources])
    expected = model(padded, torch.from_numpy(targets), padding_mask(torch.tensor(LENGTHS), width))
    streamed = StreamedTransformer(config, model.stored().weights)
    attention: list[np.ndarray] = []
    hidden = streamed.hidden(sources, targets.tolist(), attention)
    logits = np.concatenate(list(streamed.logits(hidden.reshape(-1, hidden.shape[-1]))), axis=1)
    assert logits.dtype == np.float32
    scale = float(expected.std())
    np.testing.assert_allclose(logits / scale, expected.flatten(0, 1).numpy() / scale, atol=2e-4)
    num_heads = config.of("decoder").num_heads
    assert [each.shape for each in attention] == [(5, num_heads, 25, width)] * config.num_decoder_layers


@pytest.mark.parametrize("changes", CHOICES.values(), ids=CHOICES)
def test_shapes_are_those_of_the_module_and_a_stored_model_is_one(changes: dict[str, Any]) -> None:
    model = tiny_model(tiny_config(**changes))
    shapes = {name: tuple(value.shape) for name, value in model.weights().items()}
    assert weight_shapes(model.config) == shapes
    halved = StoredModel(model.config, {n: as_array(value.bfloat16()) for n, value in model.weights().items()})
    assert halved.num_weights == sum(math.prod(shape) for shape in shapes.values())
    again = Transformer.of(halved)
    assert again.shared_names() == model.shared_names()
    for name, value in again.weights().items():
        assert torch.equal(value, model.weights()[name].bfloat16().float())
    positions = [(each.encoder.embedding.positions, each.decoder.embedding.positions) for each in (again, model)]
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(*positions, strict=True))


def test_it_does_not_import_torch() -> None:
    code = "import export.architecture.streamed, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
