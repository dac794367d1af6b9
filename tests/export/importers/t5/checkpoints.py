"""Checkpoint folders of T5's kinds as transformers writes them: small, of odd shapes, with random weights."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    GenerationConfig,
    MT5Config,
    MT5ForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
    UMT5Config,
    UMT5ForConditionalGeneration,
)

from tests.export.folders import edit
from tests.tokenizer_folders import write_madlad, write_t5

# Heads side by side are not as wide as the model; nothing is a power of two.
SIZES: dict[str, Any] = {"d_model": 45, "d_kv": 14, "num_heads": 3, "d_ff": 61, "num_layers": 2}
MAX_LENGTH = 24
_END = 2.5  # the factor of the end token's row, which so becomes the arg-max now and then
TASKS = {
    "summarization": {"prefix": "summarize: "},
    "translation_en_to_de": {"max_length": 300, "num_beams": 4, "prefix": "translate English to German: "},
    "translation_en_to_fr": {"max_length": 300, "num_beams": 4, "prefix": "translate English to French: "},
}


def t5(directory: Path, **changes: Any) -> Path:
    """Write one like t5-small: ReLU, one table for everything, scaled outputs, tasks with texts before sources."""
    write_t5(directory)
    return _write(directory, T5Config, T5ForConditionalGeneration, {"num_decoder_layers": 1, **changes})


def t5_v1_1(directory: Path, **changes: Any) -> Path:
    """Write one like t5-v1_1-small, as published: gated tanh-GELU, a projection of its own, outputs as they are."""
    write_t5(directory)
    own = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_layers": 3}
    _write(directory, T5Config, T5ForConditionalGeneration, {**own, **changes})
    _untie(directory)
    edit(directory / "config.json", scale_decoder_outputs=..., tie_word_embeddings=False)
    return directory


def madlad(directory: Path, **changes: Any) -> Path:
    """Write one like madlad400-3b-mt: v1.1's, with languages' tokens, and the embeddings only as the decoder's."""
    write_madlad(directory)
    own = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "pad_token_id": 1, "eos_token_id": 2}
    _write(directory, T5Config, T5ForConditionalGeneration, {**own, "num_decoder_layers": 2, **changes})
    _untie(directory, table="decoder.embed_tokens.weight")
    edit(directory / "config.json", scale_decoder_outputs=..., tie_word_embeddings=False)
    return directory


def mt5(directory: Path, **changes: Any) -> Path:
    """Write one like mt5-small: gated tanh-GELU, a projection of its own."""
    write_t5(directory)
    _write(directory, MT5Config, MT5ForConditionalGeneration, {"num_decoder_layers": 1, **changes})
    _untie(directory)
    return directory


def umt5(directory: Path, **changes: Any) -> Path:
    """Write one like umt5-small, as transformers 5 saves it: biases in each layer, one table, scaled outputs."""
    write_t5(directory)
    return _write(directory, UMT5Config, UMT5ForConditionalGeneration, changes)


FAMILIES: dict[str, Callable[[Path], Path]] = {"t5": t5, "madlad": madlad, "umt5": umt5}
FURTHER: dict[str, Callable[[Path], Path]] = {"t5-v1_1": t5_v1_1, "mt5": mt5}  # of kinds that are among these


def _write(directory: Path, config_class: Any, model_class: Any, changes: dict[str, Any]) -> Path:
    pieces = 520 if (directory / "tokenizer_config.json").read_text(encoding="utf-8").count("<s>") else 350
    config = config_class(
        **{
            **SIZES,
            "vocab_size": pieces,
            "decoder_start_token_id": 0,
            "task_specific_params": TASKS,
            **changes,
        }
    )
    torch.manual_seed(1)
    model = model_class(config)
    _enliven(model, config)
    model.generation_config = GenerationConfig(
        max_length=MAX_LENGTH,
        decoder_start_token_id=0,
        eos_token_id=config.eos_token_id,
        pad_token_id=config.pad_token_id,
    )
    model.save_pretrained(directory)
    return directory


@torch.no_grad()
def _enliven(model: Any, config: Any) -> None:
    """Make tokens depend on all before them, on distances too, and some outputs end."""
    torch.manual_seed(3)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            parameter.add_(torch.randn_like(parameter) * 0.05)
        elif "relative_attention_bias" in name:
            parameter.normal_(std=1.5)
        elif name == "shared.weight":
            parameter.normal_()
            parameter[config.eos_token_id] *= _END
        else:
            torch.nn.init.xavier_uniform_(parameter)
            parameter.mul_(1.0 if ".q." in name or ".k." in name else 2.0)


def _untie(directory: Path, table: str = "shared.weight") -> None:
    """Give the projection weights of its own, and the embeddings this name."""
    path = directory / "model.safetensors"
    weights = load_file(path)
    embeddings = weights.pop("shared.weight")
    head = torch.randn(embeddings.shape, generator=torch.Generator().manual_seed(5))
    head[json.loads((directory / "config.json").read_text(encoding="utf-8"))["eos_token_id"]] *= _END
    save_file({**weights, table: embeddings, "lm_head.weight": head}, path, metadata={"format": "pt"})
