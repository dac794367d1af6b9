"""The model in numpy, one layer at a time: its teacher-forced pass with no more than a layer's weights as float32.

In float, or with the weights and inputs of dense layers rounded to int8 and keys and values as in caches, for
comparison with the kernels. Does not import torch.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy import typing as npt

from export.architecture.config import Activation, LayerNormKind, ModelConfig
from export.architecture.names import ENCODER_TABLE, projection_table, target_table
from export.architecture.positions import distance_buckets, distance_column, rotary_tables, sinusoidal_table
from export.architecture.stored import Array, as_float32, residual_norms
from export.quantization.weights import LARGEST, quantize_rows
from export.stages import progress

Floats = npt.NDArray[np.floating[Any]]  # of 32 bits
_ROWS_AT_ONCE = 16_384  # of the projection


class StreamedTransformer:
    """Computes what `Transformer.forward` does, from weights in any floating dtype, each read once per pass."""

    def __init__(self, config: ModelConfig, weights: Mapping[str, Array], *, rounds: bool = False) -> None:
        """`weights` are named as by `Transformer.weights`; with `rounds`, compute in 8 bits as int8 bundles do."""
        self._config, self._weights, self._rounds = config, weights, rounds
        self._sides = {side: config.of(side) for side in ("encoder", "decoder")}

    def hidden(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        attention: list[Floats] | None = None,
    ) -> Floats:
        """Return what the projection reads, (B, T, d), and append each layer's attention to the sources (B, H, T, S) to
        `attention`.

        `targets` begin with the start token.
        """
        config = self._config
        source_ids, target_ids = (_padded(ids, config.pad_id) for ids in (sources, targets))
        is_live = np.arange(source_ids.shape[1]) < np.array([len(ids) for ids in sources])[:, None]
        outside = np.where(is_live, np.float32(0.0), -np.inf)[:, None, None, :].astype(np.float32)  # (B, 1, 1, S)
        memory = self._embedded("encoder", ENCODER_TABLE, source_ids)
        biases = self._biases("encoder", config.num_encoder_layers, source_ids.shape[1])
        for index in progress(range(config.num_encoder_layers), "encoder"):
            layer, masked = f"encoder.layers.{index}", outside + biases[index % len(biases)]
            memory = self._residual(f"{layer}.self_attention", memory, partial(self._attend, masked))
            memory = self._residual(f"{layer}.feed_forward", memory, self._feed_forward)
        memory = self._final_norm("encoder", memory)
        x = self._embedded("decoder", target_table(config), target_ids)
        length = target_ids.shape[1]
        later = np.triu(np.full((length, length), -np.inf, np.float32), 1)
        biases = self._biases("decoder", config.num_decoder_layers, length)
        for index in progress(range(config.num_decoder_layers), "decoder"):
            layer, masked = f"decoder.layers.{index}", later + biases[index % len(biases)]
            if config.state_size:
                x = self._residual(f"{layer}.recurrence", x, self._recur)
            else:
                x = self._residual(f"{layer}.self_attention", x, partial(self._attend, masked))
            to_source = partial(self._attend, outside, memory=memory, kept=attention)
            x = self._residual(f"{layer}.cross_attention", x, to_source)
            x = self._residual(f"{layer}.feed_forward", x, self._feed_forward)
        return self._final_norm("decoder", x)

    def logits(self, hidden: Floats) -> Iterator[Floats]:
        """Yield the logits of (n, d), some of the vocabulary at a time: (n, up to 16,384) each."""
        table = self._weights[projection_table(self._config)]
        bias = as_float32(self._weights["projection.bias"]) if self._config.projection_bias else None
        for begin in range(0, len(table), _ROWS_AT_ONCE):
            rows = slice(begin, begin + _ROWS_AT_ONCE)
            logits = self._product(hidden, table[rows])
            yield logits if bias is None else logits + bias[rows]

    def _embedded(self, side: str, table: str, ids: npt.NDArray[np.int64]) -> Floats:
        config = self._sides[side]
        used, places = np.unique(ids, return_inverse=True)
        rows = as_float32(self._weights[table][used])
        if self._rounds:
            levels, scales = quantize_rows(rows)
            rows = levels * scales[:, None]
        x = rows[places.reshape(ids.shape)]
        if config.scale_embeddings:
            x *= np.float32(math.sqrt(config.d_model))
        if config.positions.layout == "learned":
            x += as_float32(self._weights[f"{side}.embedding.position_table.weight"][: ids.shape[1]])
        elif config.positions.is_sinusoidal:
            x += sinusoidal_table(ids.shape[1], config.d_model, config.positions)
        return self._norm(f"{side}.embedding.norm", x) if config.embedding_norm else x

    def _biases(self, side: str, num_layers: int, num_tokens: int) -> list[Floats | float]:
        """Return what the layers' scores gain by distance, (H, L, L): for all layers, or for each."""
        config = self._config.relative_bias
        if config is None:
            return [0.0]
        is_causal = side == "decoder"
        place = np.arange(num_tokens)
        columns = distance_column(place[:, None] - place[None, :], config.max_distance, is_causal=is_causal)
        buckets = distance_buckets(config, is_causal=is_causal)[columns]
        names = (f"{side}.relative_biases.{index}.weight" for index in range(num_layers if config.per_layer else 1))
        return [as_float32(self._weights[name]).T[:, buckets] for name in names]

    def _residual(self, name: str, x: Floats, sublayer: Callable[[str, Floats], Floats]) -> Floats:
        norm, *others = residual_norms(self._config, name)
        if self._config.norm == "post":
            x = self._norm(norm, x + sublayer(name, x))
        else:
            added = sublayer(name, self._norm(norm, x))
            x = x + (self._norm(others.pop(0), added) if self._config.norm == "sandwich" else added)
        return self._norm(others[0], x) if others else x

    def _attend(
        self, masked: Floats, name: str, x: Floats, memory: Floats | None = None, kept: list[Floats] | None = None
    ) -> Floats:
        """Attend from (B, Q, d) to `memory` (B, S, d) or itself; scores (B, H, Q, S) gain `masked`; fills `kept`."""
        config = self._sides[name.partition(".")[0]]
        rotates, memory = memory is None, x if memory is None else memory
        queries = self._placed(f"{name}.query", x, rotates=rotates)
        keys = self._stored(self._placed(f"{name}.key", memory, rotates=rotates))
        values = _heads(self._stored(self._dense(f"{name}.value", memory)), config.num_heads)
        scores = queries @ keys.swapaxes(-1, -2) * np.float32(config.score_factor) + masked
        probabilities = _softmax(scores)
        if kept is not None:
            kept.append(probabilities)
        heads = (probabilities @ values).swapaxes(1, 2).reshape(*x.shape[:2], -1)
        return heads if self._config.attention_output == "none" else self._dense(f"{name}.output", heads)

    def _placed(self, name: str, x: Floats, *, rotates: bool) -> Floats:
        """Return the queries or keys of (B, L, d), normed and rotated: (B, H, L, D)."""
        config = self._sides[name.partition(".")[0]]
        heads = _heads(self._dense(name, x), config.num_heads)
        if config.qk_norm != "none":
            heads = self._norm(f"{name}_norm", heads, "rms" if config.qk_norm == "rms" else "vector")
        if not rotates or not config.rotary_size:
            return heads
        cosines, sines, partners = rotary_tables(x.shape[1], config.head_size, config.rotary_size, config.positions)
        return heads * cosines + heads[..., partners] * sines

    def _stored(self, x: Floats) -> Floats:
        """Return keys or values as caches have them: in bfloat16, if this is int8."""
        if not self._rounds:
            return x
        bits = np.ascontiguousarray(x).view(np.uint32)
        return (bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000).view(np.float32)

    def _feed_forward(self, name: str, x: Floats) -> Floats:
        config = self._config
        inner, activation = self._dense(f"{name}.inner", x), _ACTIVATIONS[config.activation]
        if config.gated:
            return self._dense(f"{name}.outer", activation(self._dense(f"{name}.gate", x)) * inner)
        # What is never negative has twice as many levels.
        levels = 2 * LARGEST + 1 if config.activation == "relu" else LARGEST
        return self._dense(f"{name}.outer", activation(inner), levels)

    def _recur(self, name: str, x: Floats) -> Floats:
        factors = _sigmoid(self._dense(f"{name}.gate", x))
        added = (1.0 - factors) * self._dense(f"{name}.candidate", x)
        state = np.zeros_like(x[:, 0])
        for token in range(x.shape[1]):
            state = factors[:, token] * state + added[:, token]
            added[:, token] = state
        return np.maximum(added, 0.0)

    def _dense(self, name: str, x: Floats, levels: int = LARGEST) -> Floats:
        outputs = self._product(x.reshape(-1, x.shape[-1]), self._weights[f"{name}.weight"], levels)
        if f"{name}.bias" in self._weights:
            outputs += as_float32(self._weights[f"{name}.bias"])
        return outputs.reshape(*x.shape[:-1], -1)

    def _product(self, rows: Floats, weight: Array, levels: int = LARGEST) -> Floats:
        """Return rows (n, K) times a weight (N, K): (n, N); in 8 bits, products of levels times both sides' scales.

        Sums of levels are exact below 2^24, so the results are the kernels' own bits: next to the middle of two levels,
        the last bit would decide how later layers round.
        """
        if not self._rounds:
            return rows @ as_float32(weight).T
        own, scales = quantize_rows(as_float32(weight))
        given, row_scales = _quantized(rows, levels)
        products: Floats = (given @ own.astype(np.float32).T) * row_scales * scales
        return products

    def _final_norm(self, side: str, x: Floats) -> Floats:
        return self._norm(f"{side}.final_norm", x) if self._config.final_norm else x

    def _norm(self, name: str, x: Floats, kind: LayerNormKind | None = None) -> Floats:
        epsilon, kind = np.float32(self._config.layer_norm_epsilon), kind or self._config.layer_norm
        if kind == "rms":
            return x / _root_mean_square(x, epsilon) * as_float32(self._weights[f"{name}.weight"])
        centered = x - x.mean(axis=-1, keepdims=True)
        if kind == "scalar":
            gain, divisor = f"{name}.gain", x.std(axis=-1, ddof=1, keepdims=True) + epsilon
        else:
            gain, divisor = f"{name}.weight", _root_mean_square(centered, epsilon)
        normed: Floats = centered / divisor * as_float32(self._weights[gain])
        return normed + as_float32(self._weights[f"{name}.bias"])


def _heads(projected: Floats, num_heads: int) -> Floats:
    """Map (B, L, H D) to (B, H, L, D)."""
    return projected.reshape(*projected.shape[:2], num_heads, -1).swapaxes(1, 2)


def _quantized(rows: Floats, levels: int) -> tuple[Floats, Floats]:
    """Return inputs (n, K) as the kernels have them (`Quantizer`): levels, and a scale for each row (n, 1)."""
    largest = np.abs(rows).max(axis=-1, keepdims=True)
    inverse = np.float32(levels) / np.maximum(largest, np.float32(1e-30))
    return np.rint(rows * inverse), largest / np.float32(levels)


def _root_mean_square(x: Floats, epsilon: np.float32) -> Floats:
    root: Floats = np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon)
    return root


def _softmax(scores: Floats) -> Floats:
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probabilities: Floats = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return probabilities


def _sigmoid(x: Floats) -> Floats:
    output: Floats = np.float32(1.0) / (np.float32(1.0) + np.exp(-x.clip(-80.0, 80.0)))
    return output


def _gelu(x: Floats) -> Floats:
    """Return x (1 + erf(x / sqrt(2))) / 2; erf by Abramowitz and Stegun 1964, 7.1.26, which errs by 1.5e-7 at most."""
    z = np.abs(x.astype(np.float64)) / math.sqrt(2.0)
    t = 1.0 / (1.0 + 0.3275911 * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    half = 0.5 * series * np.exp(-z * z)  # of erf's complement
    return (x * np.where(x < 0.0, half, 1.0 - half)).astype(np.float32)


def _gelu_tanh(x: Floats) -> Floats:
    inner = np.float32(math.sqrt(2.0 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (np.float32(1.0) + np.tanh(inner))


_ACTIVATIONS: Mapping[Activation, Callable[[Floats], Floats]] = {
    "relu": lambda x: np.maximum(x, np.float32(0.0)),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": lambda x: x * _sigmoid(x),
    "identity": lambda x: x,
}


def _padded(rows: Sequence[Sequence[int]], pad_id: int) -> npt.NDArray[np.int64]:
    width = max(map(len, rows))
    return np.array([[*ids, *[pad_id] * (width - len(ids))] for ids in rows], dtype=np.int64)
