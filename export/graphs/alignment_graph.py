"""The alignment graph: computes from whole hypotheses where each of their tokens came from in the source."""

from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from export.alignment import AlignmentHeads
from export.architecture import ModelConfig
from export.architecture.attention import MultiHeadAttention
from export.architecture.decoder import DecoderLayer
from export.architecture.layers import Residual
from export.architecture.recurrence import Recurrence
from export.architecture.relative_bias import RelativeBias
from export.architecture.transformer import Transformer
from export.graphs.dense import output_projection, packed_projection, padded_head_size
from export.graphs.distance_bias import DistanceBias
from export.graphs.heads import HeadForms
from export.graphs.operators import causal_attention, multi_head_attention


class AlignmentGraph(nn.Module):
    """The decoder, teacher-forced, up to one layer's cross-attention. Runs on (B T, d), like the encoder."""

    def __init__(self, model: Transformer, chosen: AlignmentHeads) -> None:
        super().__init__()
        decoder, config = model.decoder, model.config
        self.decoder_start_id = config.decoder_start_id
        self.reads = chosen.reads
        self.embedding = decoder.embedding
        layers = list(cast(Iterable[DecoderLayer], decoder.layers))
        biases = list(cast(Iterable[RelativeBias], decoder.relative_biases))[: chosen.layer + 1]
        self.biases = nn.ModuleList(map(DistanceBias, biases))
        self.below = nn.ModuleList(_Layer(layer, config) for layer in layers[: chosen.layer])
        layer = layers[chosen.layer]
        self.autoregression, self.autoregression_residual = _autoregression(layer, config)
        self.cross_attention = _CrossAttentionProbabilities(layer.cross_attention, chosen.heads)
        residual = layer.cross_attention_residual
        self.cross_attention_norm = residual.norm if residual.pre_norm else nn.Identity()

    def forward(self, target_ids: Tensor, source_lengths: Tensor, cross: Sequence[Tensor]) -> Tensor:
        """Return attention probabilities (B, T, S) float32.

        `target_ids` are (B, T) int64, `source_lengths` (B,) int32; `cross` is the layers' keys and values, of the last
        layer only the keys.
        """
        start = torch.full_like(target_ids[:, :1], self.decoder_start_id)
        read = torch.cat([start, target_ids if self.reads else target_ids[:, :-1]], dim=1)
        shape = read.shape
        x = self.embedding(read).flatten(0, 1)  # (B T, d)
        biases = [bias(shape[1]) for bias in self.biases] or [None]
        for index, layer in enumerate(self.below):
            x = layer(x, shape, source_lengths, cross[2 * index : 2 * index + 2], biases[index % len(biases)])
        x = self.autoregression_residual(x, lambda y: self.autoregression(y, shape, biases[-1]))
        attention: Tensor = self.cross_attention(self.cross_attention_norm(x), shape, source_lengths, cross[-1])
        return attention[:, 1:] if self.reads else attention


class _Layer(nn.Module):
    def __init__(self, layer: DecoderLayer, config: ModelConfig) -> None:
        super().__init__()
        self.autoregression, self.autoregression_residual = _autoregression(layer, config)
        self.cross_attention = _CrossAttention(layer.cross_attention)
        self.cross_attention_residual = layer.cross_attention_residual
        self.feed_forward = layer.feed_forward
        self.feed_forward_residual = layer.feed_forward_residual

    def forward(
        self, x: Tensor, shape: torch.Size, source_lengths: Tensor, cross: Sequence[Tensor], bias: Tensor | None
    ) -> Tensor:
        """Map (B T, d) to (B T, d); `shape` is (B, T), `bias` of self-attention's scores (1, H, T, T)."""
        x = self.autoregression_residual(x, lambda y: self.autoregression(y, shape, bias))
        x = self.cross_attention_residual(x, lambda y: self.cross_attention(y, shape, source_lengths, cross))
        output: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return output


def _autoregression(layer: DecoderLayer, config: ModelConfig) -> tuple[nn.Module, Residual]:
    """Return what reads the tokens before, from (B T, d) and (B, T) to (B T, d), and its residual connection."""
    if layer.is_recurrent:
        return _Recurrence(layer.recurrence, config.max_target_positions), layer.recurrence_residual
    return _SelfAttention(layer.self_attention, config.max_target_positions), layer.self_attention_residual


class _Recurrence(nn.Module):
    """A recurrence over the tokens so far: padding comes after them."""

    def __init__(self, recurrence: Recurrence, most_tokens: int) -> None:
        super().__init__()
        self.recurrence, self.most_tokens = recurrence, most_tokens

    def forward(self, x: Tensor, shape: torch.Size, bias: Tensor | None) -> Tensor:
        """Map (B T, d) to (B T, d)."""
        gates, candidates = (
            layer(x).unflatten(0, shape) for layer in (self.recurrence.gate, self.recurrence.candidate)
        )
        return self.recurrence.run(gates, candidates, self.most_tokens).flatten(0, 1)


class _SelfAttention(nn.Module):
    """Self-attention to the tokens so far: padding comes after them, so no mask is needed.

    Its weights are parts of the decoder step graph's, so that a bundle stores them once.
    """

    def __init__(self, attention: MultiHeadAttention, num_positions: int) -> None:
        super().__init__()
        self.forms = HeadForms(attention, num_positions)
        self.num_heads, self.scale = attention.num_heads, attention.scale
        self.packed = packed_projection(attention, attention.query, attention.key, attention.value)
        self.output = output_projection(attention)

    def forward(self, x: Tensor, shape: torch.Size, bias: Tensor | None) -> Tensor:
        width = self.packed.out_features // 3
        queries, keys, values = (
            _part(self.packed, x, slice(begin, begin + width)).unflatten(0, shape)
            for begin in range(0, 3 * width, width)
        )  # each (B, T, H D)
        queries, keys = self.forms.queries(queries), self.forms.keys(keys)
        heads = causal_attention(queries, keys, values, self.num_heads, self.scale, bias)  # (B, T, H D)
        output: Tensor = self.output(heads.flatten(0, 1))
        return output


def _part(layer: nn.Linear, x: Tensor, outputs: slice) -> Tensor:
    """Compute some of a layer's outputs. Its weights are sliced when the graph is opened."""
    return nn.functional.linear(x, layer.weight[outputs], None if layer.bias is None else layer.bias[outputs])


class _CrossAttention(nn.Module):
    """Attention to the source's keys and values, which the encoder graph computed."""

    def __init__(self, attention: MultiHeadAttention) -> None:
        super().__init__()
        self.num_heads, self.scale = attention.num_heads, attention.scale
        self.query, self.forms = packed_projection(attention, attention.query), HeadForms(attention)
        self.output = output_projection(attention)

    def forward(self, x: Tensor, shape: torch.Size, source_lengths: Tensor, cross: Sequence[Tensor]) -> Tensor:
        queries = self.forms.queries(self.query(x)).unflatten(0, shape)
        heads = multi_head_attention(queries, cross[0], cross[1], source_lengths, self.num_heads, self.scale)
        output: Tensor = self.output(heads.flatten(0, 1))
        return output


class _CrossAttentionProbabilities(nn.Module):
    """The mean of the chosen heads' probabilities, in separate operators: the fused one does not output them."""

    heads: Tensor

    def __init__(self, attention: MultiHeadAttention, heads: Sequence[int]) -> None:
        super().__init__()
        self.split = (attention.num_heads, padded_head_size(attention.head_size))
        self.scale = attention.scale
        self.register_buffer("heads", torch.tensor(heads, dtype=torch.int64))
        self.forms = HeadForms(attention)
        self.query = packed_projection(attention, attention.query)  # of all heads, as the decoder step graph has it

    def forward(self, x: Tensor, shape: torch.Size, source_lengths: Tensor, keys: Tensor) -> Tensor:
        """Map (B T, d) and keys (B, H, S, D) to (B, T, S) float32."""
        queries = (
            self.forms.queries(self.query(x)).unflatten(0, shape).unflatten(2, self.split).transpose(1, 2)
        )  # (B, H, T, D)
        # In float32, as scores of large weights would overflow float16.
        queries, keys = (each.index_select(1, self.heads).float() for each in (queries, keys))  # (B, h, ., D)
        scores = queries * self.scale @ keys.transpose(2, 3)  # (B, h, T, S)
        is_live = torch.arange(keys.shape[2]) < source_lengths[:, None]  # (B, S)
        scores = scores.masked_fill(~is_live[:, None, None, :], -torch.inf)
        mean: Tensor = scores.softmax(-1).mean(1)
        return mean
