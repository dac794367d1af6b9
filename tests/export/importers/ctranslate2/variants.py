"""Tiny models of the architectures that CTranslate2 has, of odd shapes, and folders of them."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy import typing as npt

from export.architecture import ModelConfig, PositionConfig
from export.architecture.config import RelativeBiasConfig
from export.architecture.transformer import Transformer
from export.importers.ctranslate2.positions import COMPUTED, MAX_POSITIONS
from tests.export.importers.ctranslate2 import model_files
from tests.export.importers.ctranslate2.model_files import Arrays
from tests.export.tiny_models import tiny_model
from tests.tokenizer_folders import ENGLISH, GERMAN, pieces_of, train_sentencepiece

UNK_ID, EOS_ID, START_ID = 1, 2, 3
_SPECIAL = ("<blank>", "<unk>", "</s>", "<s>")


@functools.cache
def sentencepiece(side: str = "source") -> bytes:
    """Return a model of SentencePiece; the target's is another one."""
    return train_sentencepiece(ENGLISH if side == "source" else GERMAN, "bpe", 240 if side == "source" else 270)


def tokens(side: str = "source") -> list[str]:
    """Return a vocabulary of all pieces, whose special tokens are others than SentencePiece's."""
    return [*_SPECIAL, *pieces_of(sentencepiece(side))]


def config_of(**changes: Any) -> ModelConfig:
    """Return a configuration like OpenNMT-py's default, with different numbers of layers and odd widths."""
    values: dict[str, Any] = {
        "source_vocabulary_size": len(tokens()),
        "target_vocabulary_size": len(tokens()),
        "d_model": 36,
        "d_ff": 51,
        "decoder_d_ff": 67,
        "num_heads": 3,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "max_source_positions": MAX_POSITIONS,
        "max_target_positions": MAX_POSITIONS,
        "norm": "pre",
        "final_norm": True,
        "share_embeddings": True,
        "tie_projection": True,
        "positions": COMPUTED,
        "pad_id": EOS_ID,
        "eos_id": EOS_ID,
        "unk_id": UNK_ID,
        "decoder_start_id": START_ID,
    }
    return ModelConfig(**(values | changes))


_T5: dict[str, Any] = {
    "layer_norm": "rms",
    "layer_norm_epsilon": 1e-6,
    "activation": "gelu_tanh",
    "gated": True,
    "feed_forward_bias": False,
    "attention_bias": False,
    "score_scale": "none",
    "scale_embeddings": False,
    "positions": PositionConfig(layout="none"),
    "tie_projection": False,
}
VARIANTS: dict[str, Callable[[], ModelConfig]] = {
    "pre": config_of,
    "post-separate": lambda: config_of(
        norm="post",
        final_norm=False,
        activation="gelu",
        share_embeddings=False,
        tie_projection=False,
        projection_bias=True,
        target_vocabulary_size=len(tokens("target")),
    ),
    "embedding-norm-learned": lambda: config_of(
        activation="silu",
        embedding_norm=True,
        scale_embeddings=False,
        positions=PositionConfig(layout="learned"),
        max_source_positions=70,
        max_target_positions=64,
        decoder_d_ff=None,
    ),
    "few-biases": lambda: config_of(attention_bias=False, projection_bias=True, layer_norm_epsilon=1e-6),
    "t5": lambda: config_of(**_T5, relative_bias=RelativeBiasConfig(8, 20)),
    "umt5": lambda: config_of(**_T5, relative_bias=RelativeBiasConfig(8, 20, per_layer=True), d_head=10),
}


@functools.cache
def model_of(name: str) -> Transformer:
    """Return a variant with random weights whose outputs depend on sources and end."""
    config = VARIANTS[name]()
    model = tiny_model(config, seed=1)
    with torch.no_grad():
        for side in (model.encoder, model.decoder):  # the end is also padding here, whose row is zero at first
            side.embedding.tokens.weight[config.pad_id].normal_(std=config.d_model**-0.5)
        if config.score_scale == "none":  # trained models have smaller weights in its place
            for query in (name for name, _ in model.named_parameters() if name.endswith("query.weight")):
                model.get_parameter(query).mul_(config.head_size**-0.5)
        for bias in (name for name, _ in model.named_parameters() if "relative_biases" in name):
            model.get_parameter(bias).normal_(std=1.0)
        _end(model)
    return model


def weights_of(name: str) -> dict[str, npt.NDArray[np.float32]]:
    """Return a variant's weights."""
    return {each: value.detach().numpy() for each, value in model_of(name).weights().items()}


def _end(model: Transformer) -> None:
    """Make the end of a sentence more probable in each state."""
    config = model.config
    if config.projection_bias:
        model.projection.bias[config.eos_id] += 1.0
        return
    row = model.projection.weight[config.eos_id]
    name = "decoder.final_norm.bias" if config.layer_norm == "vector" else ""
    if name:
        model.get_parameter(name).add_(0.8 * row / row.square().sum())


def config_json(model: Transformer, **changes: Any) -> dict[str, Any]:
    """Return the `config.json` of a model."""
    return {
        "add_source_bos": False,
        "add_source_eos": True,
        "bos_token": "<s>",
        "decoder_start_token": "<s>",
        "eos_token": "</s>",
        "layer_norm_epsilon": model.config.layer_norm_epsilon,
        "multi_query_attention": False,
        "unk_token": "<unk>",
        **changes,
    }


def write_folder(
    directory: Path, name: str, change: Callable[[Arrays], Arrays] = lambda arrays: arrays, **activations: int
) -> Path:
    """Write a variant's folder with SentencePiece's models; `change` stores the weights in another type.

    `activations` are numbers of sides that are not the variant's own.
    """
    model = model_of(name)
    directory.mkdir(parents=True)
    variables, aliases = model_files.aliased(model_files.variables_of(model))
    flags = model_files.flags_of(model)
    flags |= {f"{side}/activation": np.array(number, np.int8) for side, number in activations.items()}
    (directory / "model.bin").write_bytes(model_files.container(change(variables) | flags, aliases))
    model_files.write_json(directory / "config.json", config_json(model))
    if model.config.share_embeddings:
        model_files.write_vocabulary(directory, "shared", tokens())
        (directory / "sentencepiece.model").write_bytes(sentencepiece())
    else:
        for side in ("source", "target"):
            model_files.write_vocabulary(directory, side, tokens(side), ".txt")
            (directory / f"{side}.spm").write_bytes(sentencepiece(side))
    return directory
