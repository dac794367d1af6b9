"""The names under which checkpoints have the tables of tokens; what is shared has one. Does not import torch."""

from export.architecture.config import ModelConfig

ENCODER_TABLE = "encoder.embedding.tokens.weight"
DECODER_TABLE = "decoder.embedding.tokens.weight"
PROJECTION = "projection.weight"


def target_table(config: ModelConfig) -> str:
    return ENCODER_TABLE if config.share_embeddings else DECODER_TABLE


def projection_table(config: ModelConfig) -> str:
    return target_table(config) if config.tie_projection else PROJECTION
