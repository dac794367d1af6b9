"""The decoder: causal self-attention or a recurrence, cross-attention, feed-forward (paper section 3.1)."""

from torch import Tensor, nn

from export.architecture.attention import MultiHeadAttention
from export.architecture.config import ModelConfig
from export.architecture.embedding import Embedding
from export.architecture.layers import FeedForward, Residual, final_norm
from export.architecture.recurrence import Recurrence
from export.architecture.relative_bias import relative_biases


class DecoderLayer(nn.Module):
    """Causal self-attention or a recurrence, cross-attention, feed-forward, each in a residual connection."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        keys_width, config = config.d_model, config.of("decoder")
        self.is_recurrent = config.state_size > 0
        if self.is_recurrent:
            self.recurrence = Recurrence(config)
            self.recurrence_residual = Residual(config)
        else:
            self.self_attention = MultiHeadAttention(config, rotates=True)
            self.self_attention_residual = Residual(config)
        self.cross_attention = MultiHeadAttention(config, keys_width=keys_width)
        self.cross_attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config, ends_layer=True)

    def forward(self, x: Tensor, memory: Tensor, source_mask: Tensor | None, bias: Tensor | None = None) -> Tensor:
        """Map (B, T, d) and (B, S, d) to (B, T, d); `bias` of self-attention's scores is (1, H, T, T)."""
        if self.is_recurrent:
            x = self.recurrence_residual(x, self.recurrence)
        else:
            x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, causal=True, bias=bias))
        x = self.cross_attention_residual(x, lambda y: self.cross_attention(y, memory, source_mask))
        output: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return output


class Decoder(nn.Module):
    """Maps target token ids and the encoder's memory to the representation that the projection reads."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_decoder_layers))
        config = config.of("decoder")
        self.embedding = Embedding(config.target_vocabulary_size, config.max_target_positions, config)
        self.relative_biases = relative_biases(config, config.num_decoder_layers, is_causal=True)
        self.final_norm = final_norm(config)

    def forward(self, target_ids: Tensor, memory: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Map (B, T) int64 and (B, S, d) to (B, T, d). Causal attention needs no mask for padding on the right."""
        x = self.embedding(target_ids)
        biases = [bias(target_ids.shape[1]) for bias in self.relative_biases] or [None]
        for index, layer in enumerate(self.layers):
            x = layer(x, memory, source_mask, biases[index % len(biases)])
        output: Tensor = self.final_norm(x)
        return output
