"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017) with later variants: in torch, and in numpy."""

from export.architecture.config import ModelConfig, PositionConfig, RelativeBiasConfig

__all__ = ["ModelConfig", "PositionConfig", "RelativeBiasConfig"]
