"""Small Transformers with random weights whose greedy output is neither constant nor endless."""

from typing import Any

import torch

from export.architecture import ModelConfig, PositionConfig
from export.architecture.transformer import Transformer

M2M100_POSITIONS = PositionConfig(layout="halves", fairseq_exponent=True, offset=2)


def tiny_config(**changes: Any) -> ModelConfig:
    """Return a small configuration like the shipped model's: pre-norm, tied embeddings, head size 8."""
    values: dict[str, Any] = {
        "source_vocabulary_size": 120,
        "target_vocabulary_size": 120,
        "d_model": 32,
        "d_ff": 64,
        "num_heads": 4,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "max_source_positions": 80,
        "max_target_positions": 80,
        "norm": "pre",
        "final_norm": True,
        "share_embeddings": True,
        "tie_projection": True,
        "positions": M2M100_POSITIONS,
    }
    return ModelConfig(**(values | changes))


def tiny_model(config: ModelConfig, seed: int = 0, end_bias: float = 0.0) -> Transformer:
    """Build a model with large matrices, so that tokens depend on all before them; `end_bias` favours the end token."""
    torch.manual_seed(seed)
    # Post-norm loses its input where matrices are large. An embedding that is normalized, or not scaled, is small
    # beside what large matrices add, so that rounding would decide.
    gain = 1.0 if config.norm == "post" else 1.5 if config.embedding_norm or config.layer_norm == "rms" else 4.0
    model = Transformer(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "relative_biases" in name:
                parameter.normal_(std=2.0)  # they are zeros before training
            elif parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.05)
            elif "tokens" not in name and name != "projection.weight":
                parameter.mul_(gain)
            if config.score_scale == "none" and "query" in name:
                parameter.mul_(config.head_size**-0.5)  # trained weights make up for it
        # Every hidden state gets a component along the end token's row.
        end = model.projection.weight[config.eos_id]
        if end_bias:
            model.get_parameter("decoder.final_norm.bias").add_(end_bias * end / end.square().sum())
    return model


def random_sources(vocabulary_size: int, lengths: list[int], eos_id: int = 2, seed: int = 1) -> list[tuple[int, ...]]:
    """Return sources of ordinary tokens with the given lengths, the end-of-sentence token included."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randint(4, vocabulary_size, (length - 1,), generator=generator).tolist() for length in lengths]
    return [(*ids, eos_id) for ids in drawn]
