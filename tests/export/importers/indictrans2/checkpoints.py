"""Small folders with the files of IndicTrans2's on the hub."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import M2M100ForConditionalGeneration

from tests.export.importers.indictrans2.reading import build, weights_of
from tests.tokenizer_folders import write_indictrans2

MAX_LENGTH = 24


def indictrans2(directory: Path, direction: str = "en-indic", **changes: Any) -> Path:
    """Write one like indictrans2-en-indic-dist-200M: GELU, pre-norm, a norm after the embedding, a tied projection."""
    sizes = write_indictrans2(directory, direction)
    document = {
        "architectures": ["IndicTransForConditionalGeneration"],
        "auto_map": {"AutoConfig": "configuration_indictrans.IndicTransConfig"},
        "model_type": "IndicTrans",
        "tokenizer_class": "IndicTransTokenizer",
        "activation_function": "gelu",
        "encoder_vocab_size": sizes[0],
        "decoder_vocab_size": sizes[1] + 5,
        "encoder_embed_dim": 36,
        "decoder_embed_dim": 36,
        "encoder_layers": 2,
        "decoder_layers": 1,
        "encoder_ffn_dim": 50,
        "decoder_ffn_dim": 70,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 3,
        "encoder_normalize_before": True,
        "decoder_normalize_before": True,
        "layernorm_embedding": True,
        "share_decoder_input_output_embed": True,
        "scale_embedding": True,
        "max_source_positions": 101,
        "max_target_positions": 101,
        "dropout": 0.2,
        "encoder_layerdrop": 0,
        "bos_token_id": 0,
        "pad_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 2,
        "is_encoder_decoder": True,
        **changes,
    }
    (directory / "config.json").write_text(json.dumps(document), encoding="utf-8")
    tokenizer = {
        "tokenizer_class": "IndicTransTokenizer",
        "auto_map": {"AutoTokenizer": ["tokenization_indictrans.IndicTransTokenizer", None]},
        "added_tokens_decoder": {
            str(index): {"content": text, "special": True, "lstrip": False, "rstrip": False, "single_word": False}
            for index, text in enumerate(("<s>", "<pad>", "</s>", "<unk>"))
        },
        "clean_up_tokenization_spaces": True,
        "do_lower_case": False,
        "model_max_length": 256,
        **_NAMED,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    model_of = read_model(document)
    save_file(weights_of(model_of), directory / "model.safetensors")
    model_of.generation_config.save_pretrained(directory)
    return directory


def read_model(document: dict[str, Any]) -> M2M100ForConditionalGeneration:
    """Return the model of such a configuration, with the weights that `indictrans2` writes."""
    torch.manual_seed(6)
    model = build(document, MAX_LENGTH)
    _enliven(model, document)
    return model


_NAMED = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


@torch.no_grad()
def _enliven(model: M2M100ForConditionalGeneration, document: dict[str, Any]) -> None:
    """Make tokens depend on all before them, and outputs end."""
    gain = 4.0 if document["encoder_normalize_before"] else 2.0
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            parameter.add_(torch.randn_like(parameter) * 0.05)
        elif "embed_tokens" in name or "lm_head" in name:
            parameter.normal_(std=model.config.d_model**-0.5)
        else:
            nn.init.xavier_uniform_(parameter)
            parameter.mul_(gain if "q_proj" not in name and "k_proj" not in name else 4.0)
    decoder = model.model.decoder
    last = decoder.layer_norm if document["encoder_normalize_before"] else decoder.layers[-1].final_layer_norm
    end = model.lm_head.weight[2]
    model.lm_head.weight[1] = 0.0  # as fairseq has it; no output has padding, which would have no position
    last.bias.add_(1.5 * end / end.square().sum())
