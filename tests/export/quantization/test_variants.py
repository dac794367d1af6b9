"""Fused graphs of models that differ in every choice mean what their plain graphs compute."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from export.fusing.bundle import FUSED_DECODER, FUSED_ENCODER, write_fused
from tests.export.tiny_int8 import write_tiny_int8

from export.architecture import Transformer
from export.architecture.attention import MultiHeadAttention
from export.graphs.execution import GraphPair
from service.bundle.manifest import Manifest
from tests.export.graphs import test_variants
from tests.export.tiny_models import random_sources, tiny_config, tiny_model
from tests.references.fused_model import FusedDecoder, FusedEncoder

LENGTHS = [2, 9, 30, 5, 17]
NUM_STEPS = 12

VARIANTS: dict[str, dict[str, Any]] = {
    "shipped": {},
    **test_variants.VARIANTS,
    "scalar": {
        "num_encoder_layers": 1,
        "final_norm": False,
        "layer_norm": "scalar",
        "layer_norm_epsilon": 0.0,
        "activation": "silu",
        "attention_bias": False,
        "attention_output": "biased",
        "tie_projection": False,
    },
}
SUPPRESSED = {"plain": test_variants.SUPPRESSED, "by hand": (1, 3, 40), "shipped": (1, 3)}
RENORMALIZES = {"by hand"}


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(variant: str) -> Transformer:
    model = tiny_model(tiny_config(**VARIANTS[variant]))
    with torch.no_grad():
        if not model.config.tie_projection:
            model.decoder.embedding.tokens.weight.normal_(std=3.0)  # otherwise only the position decides the next token
            model.projection.weight.mul_(3.0)
        if model.projection.bias is not None:
            model.projection.bias.normal_()
        if variant == "scalar":  # as before training: tracing removes what changes nothing
            for name, parameter in model.named_parameters():
                if "norm" in name:
                    parameter.fill_(0.0 if name.endswith("bias") else 1.0)
    return model


@pytest.fixture(scope="module")
def bundle(model: Transformer, variant: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    directory = tmp_path_factory.mktemp("fused") / "int8"
    manifest = write_tiny_int8(model, directory, SUPPRESSED.get(variant, ()), renormalizes=variant in RENORMALIZES)
    write_fused(directory, manifest)
    return directory, manifest


def test_the_attributes_are_the_model_s(model: Transformer, variant: str, bundle: tuple[Path, Manifest]) -> None:
    config = model.config
    shared = {
        "num_heads": config.num_heads,
        "head_size": config.head_size,
        "pre_norm": int(config.norm == "pre"),
        "scalar_norm": int(config.layer_norm == "scalar"),
        "final_norm": int(config.final_norm),
        "output_projection": int(config.attention_output != "none"),
        "epsilon": pytest.approx(config.layer_norm_epsilon, rel=1e-6),
        "scale": pytest.approx(MultiHeadAttention(config).scale, rel=1e-6),
        "activation": config.activation.encode(),
    }
    encoder = {"num_layers": config.num_encoder_layers, "num_decoder_layers": config.num_decoder_layers}
    decoder = {"num_layers": config.num_decoder_layers, "renormalizes": int(variant in RENORMALIZES)}
    assert FusedEncoder(bundle[0] / FUSED_ENCODER).node.attributes == shared | encoder
    assert FusedDecoder(bundle[0] / FUSED_DECODER).node.attributes == shared | decoder


def test_log_probs_equal_the_plain_graphs(model: Transformer, bundle: tuple[Path, Manifest]) -> None:
    """But for activations that lie so close to the middle between two levels that each side rounds its own way."""
    directory, manifest = bundle
    graphs, size = manifest.graphs, manifest.model.vocabulary_size
    plain = GraphPair(directory / graphs.encoder, directory / graphs.decoder_step, manifest.model, num_threads=1)
    sources = random_sources(model.config.source_vocabulary_size, LENGTHS)
    targets = np.random.default_rng(0).integers(4, size, (len(sources), NUM_STEPS))
    targets[:, 0] = model.config.decoder_start_id
    encoder, decoder = FusedEncoder(directory / FUSED_ENCODER), FusedDecoder(directory / FUSED_DECODER)
    state = plain.start(sources, pad_id=1, capacity=NUM_STEPS)
    rows = [decoder.start(encoder.encode(source)) for source in sources]
    errors: list[float] = []
    num_tokens_equal = 0
    for step in range(NUM_STEPS):
        ids, log_probs = state.candidates(targets[:, step], size)
        expected = np.empty_like(log_probs)
        np.put_along_axis(expected, ids, log_probs, axis=1)
        given = np.stack([row.log_probs(token) for row, token in zip(rows, targets[:, step], strict=True)])
        allowed = np.isfinite(expected[0])
        np.testing.assert_array_equal(np.isneginf(given), np.broadcast_to(~allowed, given.shape))
        assert expected[:, allowed].std() > 0.5
        difference = np.abs(given[:, allowed] - expected[:, allowed]).max(axis=1)
        errors.extend(difference / expected[:, allowed].std())
        num_tokens_equal += int((given.argmax(axis=1) == expected.argmax(axis=1)).sum())
    assert np.quantile(errors, 0.9) < 1e-5
    assert max(errors) < 0.2
    assert num_tokens_equal == NUM_STEPS * len(sources)
