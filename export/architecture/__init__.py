"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017) in torch, with later variants."""

from export.architecture.config import ModelConfig, PositionConfig, RelativeBiasConfig
from export.architecture.transformer import Transformer

__all__ = ["ModelConfig", "PositionConfig", "RelativeBiasConfig", "Transformer"]
