"""Fused graphs of models that differ in every choice mean what the model is, rounded as int8 rounds it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export.architecture.attention import MultiHeadAttention
from export.architecture.streamed import StreamedTransformer
from export.architecture.transformer import Transformer
from export.graphs.weights_file import WeightsFile
from export.quantization.fused_graphs import FusedNodes, shape_of, with_recorded
from export.quantize import DECODER
from tests.export import variants
from tests.export.tiny_models import random_sources, tiny_config, tiny_model
from tests.export.variants import LENGTHS, NUM_STEPS
from tests.references.fused_model import FusedDecoder, FusedEncoder

ENCODER = "encoder.onnx"

VARIANTS: dict[str, dict[str, Any]] = {
    "shipped": {},
    **variants.VARIANTS,
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
    "gated": {"gated": True, "d_head": 6, "embedding_norm": True},
}
SUPPRESSED = {"plain": variants.SUPPRESSED, "learned": (1, 3, 40), "shipped": (1, 3)}
RENORMALIZES = {"learned"}


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
def bundle(model: Transformer, variant: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory, config = tmp_path_factory.mktemp("fused"), model.config
    with WeightsFile(directory) as file:
        made = FusedNodes(config, model.stored().weights, file)
        encode = made.encode_node()
        decode = made.decode_node(SUPPRESSED.get(variant, ()), renormalizes=variant in RENORMALIZES)
    encode.save(directory / ENCODER, shape_of(config))
    with_recorded(decode, None).save(directory / DECODER, shape_of(config))
    return directory


def test_the_attributes_are_the_model_s(model: Transformer, variant: str, bundle: Path) -> None:
    config = model.config.of("decoder")
    shared = {
        "num_heads": config.num_heads,
        "head_size": config.head_size,
        "pre_norm": int(config.norm != "post"),
        "scalar_norm": int(config.layer_norm == "scalar"),
        "final_norm": int(config.final_norm),
        "output_projection": int(config.attention_output != "none"),
        "epsilon": pytest.approx(config.layer_norm_epsilon, rel=1e-6),
        "scale": pytest.approx(MultiHeadAttention(config).scale, rel=1e-6),
        "activation": config.activation.encode(),
    }
    encoder: dict[str, Any] = {"num_layers": config.num_encoder_layers, "num_decoder_layers": config.num_decoder_layers}
    decoder = {
        "num_layers": config.num_decoder_layers,
        "renormalizes": int(variant in RENORMALIZES),
        "recorded_layer": -1,
    }
    if config.state_size:
        decoder["recurrent"] = 1
    shared |= {
        name: 1
        for name, is_so in (
            ("rms_norm", config.layer_norm == "rms"),
            ("embedding_norm", config.embedding_norm),
            ("gated", config.gated),
            ("sandwich_norm", config.norm == "sandwich"),
            ("block_norm", config.block_norm),
        )
        if is_so
    }
    if config.attention_width != config.d_model:
        shared["width"] = config.d_model
    optional = {"rotary_size": config.rotary_size, "qk_norm": ("none", "rms", "layer").index(config.qk_norm)}
    shared |= {name: value for name, value in optional.items() if value}
    if config.relative_bias is not None:
        for attributes in (encoder, decoder):
            attributes["relative_biases"] = attributes["num_layers"] if config.relative_bias.per_layer else 1
    if variant.startswith("uneven"):  # the encoder's own heads, as wide as its model, beside the decoder's
        encoder |= {"num_heads": 2, "head_size": 22, "scale": pytest.approx(22**-0.5, rel=1e-6)}
        encoder |= {"decoder_num_heads": 3, "decoder_head_size": 10}
        if config.rotary_size:
            encoder["rotary_size"] = 22
    assert FusedEncoder(bundle / ENCODER).node.attributes == shared | encoder
    assert FusedDecoder(bundle / DECODER).node.attributes == shared | decoder


def test_log_probs_are_those_of_the_rounded_model(model: Transformer, variant: str, bundle: Path) -> None:
    """But for values that lie so close to the middle between two levels that each side rounds its own way."""
    config = model.config
    sources = random_sources(config.source_vocabulary_size, LENGTHS)
    targets = np.random.default_rng(0).integers(4, config.target_vocabulary_size, (len(sources), NUM_STEPS))
    targets[:, 0] = config.decoder_start_id
    rounded = StreamedTransformer(config, model.stored().weights, rounds=True)
    hidden = rounded.hidden(sources, targets.tolist())
    logits = np.concatenate(list(rounded.logits(hidden.reshape(-1, hidden.shape[-1]))), axis=1)
    suppressed = list(SUPPRESSED.get(variant, ()))
    encoder, decoder = FusedEncoder(bundle / ENCODER), FusedDecoder(bundle / DECODER)
    errors: list[float] = []
    for source, target, expected in zip(sources, targets.tolist(), logits.reshape(*targets.shape, -1), strict=True):
        row = decoder.start(encoder.encode(source))
        for token, wanted in zip(target, expected, strict=True):
            given = row.log_probs(token)
            assert np.flatnonzero(np.isneginf(given)).tolist() == sorted(suppressed)
            allowed = np.isfinite(given)
            shift = given[allowed] - wanted[allowed]
            errors.append(float(np.abs(shift - shift.mean()).max() / wanted[allowed].std()))
    assert np.median(errors) < 1e-4
    assert np.quantile(errors, 0.9) < 0.2


def test_relative_biases_are_written_out_by_place(model: Transformer, bundle: Path) -> None:
    """For each query and key, distances at the borders of buckets among them; a decoder's keys are not ahead."""
    config = model.config
    length = config.max_source_positions
    sides = (
        (model.encoder.relative_biases, FusedEncoder(bundle / ENCODER)),
        (model.decoder.relative_biases, FusedDecoder(bundle / DECODER)),
    )
    for modules, node in sides:
        assert len(node.biases) == (0 if config.relative_bias is None else node.node["num_layers"])
        for layer, table in enumerate(node.biases):
            bias = modules[layer % len(modules)](length)[0].detach().numpy()
            for query in range(length):
                given = table[:, length - 1 - query :][:, :length]
                np.testing.assert_array_equal(given, bias[:, query, : given.shape[1]])
