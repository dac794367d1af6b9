"""The decoder step graph: maps one token per row to the next one and its rivals; every row's cache grows in place."""

from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from export.architecture.attention import MultiHeadAttention
from export.architecture.decoder import DecoderLayer
from export.architecture.recurrence import Recurrence
from export.architecture.relative_bias import RelativeBias
from export.architecture.transformer import Transformer
from export.graphs.dense import output_projection, packed_projection
from export.graphs.distance_bias import DistanceBias
from export.graphs.heads import HeadForms
from export.graphs.operators import arg_max, corner, group_query_attention, log_of_column, multi_head_attention, top_k
from service.bundle.graph_io import NO_TOKEN


class DecoderStepGraph(nn.Module):
    """The decoder and the projection for one token per row; `suppressed_ids` are never chosen.

    Their share of the probability is lost or, if the model `renormalizes`, redistributed among the other tokens.
    """

    def __init__(self, model: Transformer, suppressed_ids: Sequence[int] = (), *, renormalizes: bool = False) -> None:
        super().__init__()
        decoder = model.decoder
        self.embedding = decoder.embedding
        layers = cast(Iterable[DecoderLayer], decoder.layers)
        self.layers = nn.ModuleList(_Layer(layer, model.config.max_target_positions) for layer in layers)
        self.biases = nn.ModuleList(map(DistanceBias, cast(Iterable[RelativeBias], decoder.relative_biases)))
        self.final_norm = decoder.final_norm
        self.projection = _Projection(model.projection, suppressed_ids, renormalizes=renormalizes)

    def forward(
        self,
        token_ids: Tensor,
        lengths: Tensor,
        total_length: Tensor,
        source_lengths: Tensor,
        num_candidates: Tensor,
        past: Sequence[Tensor],
        cross: Sequence[Tensor],
    ) -> tuple[Tensor, ...]:
        """Run one step with the inputs and outputs of `service.bundle.graph_io`, in that order.

        `past` and `cross` alternate keys and values, layer by layer; a recurrent layer has its state in `past`.
        """
        x = self.embedding.at(token_ids, lengths)  # (B, d)
        present: list[Tensor] = []
        num_parts = len(past) // len(self.layers)  # of a layer's memory
        stored = cast(Iterable[DistanceBias], self.biases)
        biases: list[Tensor | None] = [each.of_step(lengths, past[0].shape[2], total_length) for each in stored]
        biases = biases or [None]
        for index, layer in enumerate(self.layers):
            own = past[num_parts * index : num_parts * (index + 1)]
            bias = biases[index % len(biases)]
            x, *grown = layer(x, lengths, total_length, source_lengths, own, cross[2 * index : 2 * index + 2], bias)
            present.extend(grown)
        *choice, logits, log_totals = self.projection(self.final_norm(x), num_candidates)
        return (*choice, *present, logits, log_totals)


class _Layer(nn.Module):
    """One decoder layer: attention to the row's cache, or its state; attention to its source; feed-forward."""

    def __init__(self, layer: DecoderLayer, num_positions: int) -> None:
        super().__init__()
        self.autoregression: nn.Module
        if layer.is_recurrent:
            self.autoregression, self.autoregression_residual = _Recurrence(layer.recurrence), layer.recurrence_residual
        else:
            self.autoregression = _CachedSelfAttention(layer.self_attention, num_positions)
            self.autoregression_residual = layer.self_attention_residual
        self.cross_attention = _CrossAttention(layer.cross_attention)
        self.cross_attention_residual = layer.cross_attention_residual
        self.feed_forward = layer.feed_forward
        self.feed_forward_residual = layer.feed_forward_residual

    def forward(
        self,
        x: Tensor,
        lengths: Tensor,
        total_length: Tensor,
        source_lengths: Tensor,
        past: Sequence[Tensor],
        cross: Sequence[Tensor],
        bias: Tensor | None,
    ) -> tuple[Tensor, ...]:
        """Map (B, d) to (B, d) and the row's grown keys and values, each (B, H, C, D), or its new state (B, d).

        `bias` (B, H, 1, `total_length`) is added to self-attention's scores.
        """
        present: list[Tensor] = []

        def read_past(y: Tensor) -> Tensor:
            output: Tensor
            output, *grown = self.autoregression(y, lengths, total_length, past, bias)
            present.extend(grown)
            return output

        x = self.autoregression_residual(x, read_past)
        x = self.cross_attention_residual(x, lambda y: self.cross_attention(y, source_lengths, cross))
        x = self.feed_forward_residual(x, self.feed_forward)
        return (x, *present)


class _CachedSelfAttention(nn.Module):
    def __init__(self, attention: MultiHeadAttention, num_positions: int) -> None:
        super().__init__()
        self.forms = HeadForms(attention, num_positions)
        self.num_heads, self.scale = attention.num_heads, attention.scale
        self.packed = packed_projection(attention, attention.query, attention.key, attention.value)
        self.output = output_projection(attention)

    def forward(
        self, x: Tensor, lengths: Tensor, total_length: Tensor, past: Sequence[Tensor], bias: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Map (B, d) to (B, d) and the grown cache."""
        packed = self.forms.packed(self.packed(x), lengths).unsqueeze(1)  # (B, 1, 3 H D)
        heads, key, value = group_query_attention(
            packed, past[0], past[1], lengths, total_length, self.num_heads, self.scale, bias
        )
        return self.output(heads.squeeze(1)), key, value


class _Recurrence(nn.Module):
    def __init__(self, recurrence: Recurrence) -> None:
        super().__init__()
        self.recurrence = recurrence

    def forward(
        self, x: Tensor, lengths: Tensor, total_length: Tensor, past: Sequence[Tensor], bias: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Map (B, d) to (B, d) and the new state, which may be in the old one's memory: that is read before."""
        # A row's first token finds the state of the row's former owner.
        state = torch.where((lengths < 1)[:, None], 0.0, past[0])
        return self.recurrence.step(x, state)


class _CrossAttention(nn.Module):
    """Attention of one token per row to the source's keys and values, which the encoder graph computed."""

    def __init__(self, attention: MultiHeadAttention) -> None:
        super().__init__()
        self.num_heads, self.scale = attention.num_heads, attention.scale
        self.query, self.forms = packed_projection(attention, attention.query), HeadForms(attention)
        self.output = output_projection(attention)

    def forward(self, x: Tensor, source_lengths: Tensor, cross: Sequence[Tensor]) -> Tensor:
        """Map (B, d) to (B, d)."""
        queries = self.forms.queries(self.query(x)).unsqueeze(1)  # (B, 1, H D)
        heads = multi_head_attention(queries, cross[0], cross[1], source_lengths, self.num_heads, self.scale)
        output: Tensor = self.output(heads.squeeze(1))
        return output


class _Projection(nn.Module):
    """Logits, the choice among the allowed tokens, and log-probabilities normalised over the whole vocabulary.

    Suppressed tokens have a bias of minus infinity, which costs the arg-max nothing. Their share of the probability is
    computed from a few rows of the projection, in the branch for log-probabilities.
    """

    bias: Tensor | None
    suppressed_weight: Tensor
    suppressed_bias: Tensor

    def __init__(self, projection: nn.Linear, suppressed_ids: Sequence[int], *, renormalizes: bool) -> None:
        super().__init__()
        self.weight = projection.weight  # (V, d), the embedding's own storage if tied
        bias = None if projection.bias is None else projection.bias.detach().clone()
        suppressed = torch.tensor(sorted(set(suppressed_ids)), dtype=torch.int64)
        self.renormalizes = renormalizes
        self.suppresses = len(suppressed) > 0
        if self.suppresses:
            bias = projection.weight.new_zeros(projection.out_features) if bias is None else bias
            self.register_buffer("suppressed_weight", projection.weight.detach()[suppressed].clone())
            self.register_buffer("suppressed_bias", bias[suppressed].clone())
            bias[suppressed] = -torch.inf
        self.register_buffer("bias", bias)

    def forward(self, hidden: Tensor, num_candidates: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Map (B, d) to next_ids (B,), next_log_probs (B,), candidate_ids (B, K), candidate_log_probs (B, K), logits
        (B, V) and log_totals (B,)."""
        # Log-probabilities are float32 in every precision.
        logits = nn.functional.linear(hidden, self.weight, self.bias).float()  # (B, V)
        # Greedy search sees nothing else, and the arg-max of NaN is an arbitrary token. The sum is in float32, as half
        # precision might overflow in both directions.
        best = torch.where(hidden.float().sum(dim=-1).isnan(), NO_TOKEN, arg_max(logits))
        # With bound outputs, ONNX Runtime also computes outputs that nobody fetches. K = 0 reduces them to a single
        # number (not none: the reductions mishandle empty tensors); otherwise greedy search would pay for unused
        # log-probabilities.
        wanted = num_candidates.clamp(max=1)
        num_rows = wanted * (hidden.shape[0] - 1) + 1
        scored = corner(logits, num_rows, wanted * (logits.shape[1] - 1) + 1)
        largest = scored.amax(dim=-1, keepdim=True)
        # Separate operators: the kernel of ReduceLogSumExp is six times slower than these four.
        log_total = log_of_column((scored - largest).exp().sum(dim=-1, keepdim=True)) + largest  # (B, 1)
        log_share = log_total  # of the allowed tokens
        if self.suppresses:
            left_out = nn.functional.linear(hidden, self.suppressed_weight, self.suppressed_bias).float()
            left_out = corner(left_out, num_rows, torch.full_like(num_rows, left_out.shape[1]))
            log_total = torch.logsumexp(torch.cat([log_total, left_out], dim=-1), dim=-1, keepdim=True)
        norm = log_share if self.renormalizes else log_total
        next_log_probs = (largest - norm).squeeze(-1)
        scores, candidate_ids = top_k(scored, num_candidates)
        return best, next_log_probs, candidate_ids, scores - norm, logits, log_total.squeeze(-1)
