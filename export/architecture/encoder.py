"""The encoder: a stack of self-attention and feed-forward (paper section 3.1)."""

from torch import Tensor, nn

from export.architecture.attention import MultiHeadAttention
from export.architecture.config import ModelConfig
from export.architecture.embedding import Embedding
from export.architecture.layers import FeedForward, Residual, final_norm
from export.architecture.relative_bias import relative_biases


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each in a residual connection."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config, rotates=True)
        self.self_attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config, ends_layer=True)

    def forward(self, x: Tensor, mask: Tensor | None, bias: Tensor | None = None) -> Tensor:
        """Map (B, S, d) to (B, S, d); `bias` of the scores is (1, H, S, S)."""
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, mask, bias=bias))
        output: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return output


class Encoder(nn.Module):
    """Maps source token ids to their representation, the decoder's memory."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = Embedding(config.source_vocabulary_size, config.max_source_positions, config)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_encoder_layers))
        self.relative_biases = relative_biases(config, config.num_encoder_layers, is_causal=False)
        self.final_norm = final_norm(config)

    def forward(self, source_ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map (B, S) int64 to (B, S, d). `mask` is (B, 1, 1, S) boolean, true for live tokens; `None`: all are live."""
        x = self.embedding(source_ids)
        biases = [bias(source_ids.shape[1]) for bias in self.relative_biases] or [None]
        for index, layer in enumerate(self.layers):
            x = layer(x, mask, biases[index % len(biases)])
        output: Tensor = self.final_norm(x)
        return output
