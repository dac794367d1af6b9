"""An independent reading of IndicTrans2's model, out of parts of transformers, which has no class for it.

Its layers are M2M100's or, where norms follow, BART's; a norm follows the embedding. Names of weights are those of the
checkpoints on the hub.
"""

from typing import Any

import torch
from torch import nn
from transformers import BartConfig, GenerationConfig, M2M100Config, M2M100ForConditionalGeneration
from transformers.models.bart.modeling_bart import BartDecoderLayer, BartEncoderLayer
from transformers.models.m2m_100.modeling_m2m_100 import M2M100ScaledWordEmbedding


def build(document: dict[str, Any], max_length: int) -> M2M100ForConditionalGeneration:
    """Return the model that a `config.json` describes, with random weights."""
    shared: dict[str, Any] = {
        "d_model": document["encoder_embed_dim"],
        "max_position_embeddings": document["max_source_positions"],
        "vocab_size": document["decoder_vocab_size"],
        "dropout": 0.0,
        **{
            name: document[name]
            for name in document
            if name.endswith(("_layers", "_ffn_dim", "_attention_heads", "_token_id"))
        },
        **{name: document[name] for name in ("activation_function", "scale_embedding")},
    }
    config = M2M100Config(**shared, tie_word_embeddings=False)
    model = M2M100ForConditionalGeneration(config)
    bart = BartConfig(**shared)
    bart._attn_implementation = config._attn_implementation
    scale = config.d_model**0.5 if document["scale_embedding"] else 1.0
    sides = {"encoder": BartEncoderLayer, "decoder": BartDecoderLayer}
    for name, layer in sides.items():
        side = getattr(model.model, name)
        size = document[f"{name}_vocab_size"]
        side.embed_tokens = M2M100ScaledWordEmbedding(size, config.d_model, config.pad_token_id, embed_scale=scale)
        if not document["encoder_normalize_before"]:
            numbers = range(getattr(config, f"{name}_layers"))
            side.layers = nn.ModuleList(
                [layer(bart, layer_idx=number) if name == "decoder" else layer(bart) for number in numbers]
            )
            side.layer_norm = nn.Identity()
        if document["layernorm_embedding"]:
            side.layernorm_embedding = nn.LayerNorm(config.d_model)
            side.layers[0].register_forward_pre_hook(
                lambda _, inputs, norm=side.layernorm_embedding: (norm(inputs[0]), *inputs[1:])
            )
    if document["share_decoder_input_output_embed"]:
        model.lm_head.weight = model.model.decoder.embed_tokens.weight
    model.generation_config = GenerationConfig(
        max_length=max_length,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=2,
    )
    return model.eval()


def weights_of(model: M2M100ForConditionalGeneration) -> dict[str, torch.Tensor]:
    """Return the weights that a checkpoint has."""
    has_own_head = model.lm_head.weight is not model.model.decoder.embed_tokens.weight
    return {
        name: value.clone()
        for name, value in model.state_dict().items()
        if "shared" not in name and "positions" not in name and (has_own_head or not name.startswith("lm_head"))
    }
