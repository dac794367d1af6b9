"""The encoder graph: maps source tokens to every decoder layer's cross-attention keys and values."""

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn

from export.architecture.attention import MultiHeadAttention
from export.architecture.decoder import DecoderLayer
from export.architecture.encoder import EncoderLayer
from export.architecture.relative_bias import RelativeBias
from export.architecture.transformer import Transformer
from export.graphs.dense import output_projection, packed_projection, padded_head_size
from export.graphs.distance_bias import DistanceBias
from export.graphs.heads import HeadForms
from export.graphs.operators import multi_head_attention


class EncoderGraph(nn.Module):
    """Runs the encoder on (B S, d), so that every dense layer is one matrix product with its bias fused in."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        encoder = model.encoder
        self.embedding = encoder.embedding
        encoder_layers = cast(Iterable[EncoderLayer], encoder.layers)
        num_positions = model.config.max_source_positions
        self.layers = nn.ModuleList(_Layer(layer, num_positions) for layer in encoder_layers)
        self.biases = nn.ModuleList(map(DistanceBias, cast(Iterable[RelativeBias], encoder.relative_biases)))
        self.final_norm = encoder.final_norm
        decoder_layers = cast(Iterable[DecoderLayer], model.decoder.layers)
        self.cross = nn.ModuleList(_CrossKeysValues(layer) for layer in decoder_layers)

    def forward(self, source_ids: Tensor, source_lengths: Tensor) -> tuple[Tensor, ...]:
        """Map (B, S) int64 and (B,) int32 to `cross_key.0, cross_value.0, cross_key.1, ...`, each (B, H, S, D)."""
        shape = source_ids.shape
        x = self.embedding(source_ids).flatten(0, 1)  # (B S, d)
        biases = [bias(shape[1]) for bias in self.biases] or [None]
        for index, layer in enumerate(self.layers):
            x = layer(x, source_lengths, shape, biases[index % len(biases)])
        memory = self.final_norm(x)
        return tuple(heads for cross in self.cross for heads in cross(memory, shape))


class _Layer(nn.Module):
    def __init__(self, layer: EncoderLayer, num_positions: int) -> None:
        super().__init__()
        self.self_attention = _SelfAttention(layer.self_attention, num_positions)
        self.self_attention_residual = layer.self_attention_residual
        self.feed_forward = layer.feed_forward
        self.feed_forward_residual = layer.feed_forward_residual

    def forward(self, x: Tensor, lengths: Tensor, shape: torch.Size, bias: Tensor | None) -> Tensor:
        """Map (B S, d) to (B S, d); `shape` is (B, S), `lengths` (B,) are live, `bias` is (1, H, S, S)."""
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, lengths, shape, bias))
        output: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return output


class _SelfAttention(nn.Module):
    def __init__(self, attention: MultiHeadAttention, num_positions: int) -> None:
        super().__init__()
        self.forms = HeadForms(attention, num_positions)
        self.num_heads, self.scale = attention.num_heads, attention.scale
        self.query = packed_projection(attention, attention.query)
        self.key = packed_projection(attention, attention.key)
        self.value = packed_projection(attention, attention.value)
        self.output = output_projection(attention)

    def forward(self, x: Tensor, lengths: Tensor, shape: torch.Size, bias: Tensor | None) -> Tensor:
        """Map (B S, d) to (B S, d)."""
        queries, keys, values = (
            layer(x).unflatten(0, shape) for layer in (self.query, self.key, self.value)
        )  # each (B, S, H D)
        queries, keys = self.forms.queries(queries), self.forms.keys(keys)
        heads = multi_head_attention(queries, keys, values, lengths, self.num_heads, self.scale, bias)
        output: Tensor = self.output(heads.flatten(0, 1))
        return output


class _CrossKeysValues(nn.Module):
    def __init__(self, layer: DecoderLayer) -> None:
        super().__init__()
        attention = layer.cross_attention
        self.heads = (attention.num_heads, padded_head_size(attention.head_size))
        self.key = packed_projection(attention, attention.key)
        self.value = packed_projection(attention, attention.value)
        self.forms = HeadForms(attention)

    def forward(self, memory: Tensor, shape: torch.Size) -> tuple[Tensor, Tensor]:
        """Map (B S, d) to keys and values, each (B, H, S, D)."""
        keys, values = (
            form(layer(memory)).unflatten(0, shape).unflatten(2, self.heads).transpose(1, 2)
            for layer, form in ((self.key, self.forms.keys), (self.value, nn.Identity()))
        )
        return keys, values
