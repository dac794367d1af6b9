"""MADLAD-400's part of `true_shapes`: T5 v1.1 with a projection of its own, and embeddings only as the decoder's."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.true_shape import (
    END,
    LARGEST,
    LOGIT_SCALE,
    NOISE,
    Floats,
    Tensors,
    TrueShape,
    row_pieces,
)

IDS = {"decoder_start_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
TABLE, PROJECTION = "decoder.embed_tokens.weight", "lm_head.weight"
BUCKETS = 32
ATTENTION_GAIN, VALUE_GAIN, FEED_FORWARD_GAIN = 1.4, 1.0, 2.0
SMALL = 2  # layers: of more, each adds less, or errors of rounding would grow, layer by layer, to everything


def config(shape: TrueShape) -> dict[str, Any]:
    """Return the `config.json`, as published."""
    return {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        **IDS,
        "vocab_size": shape.vocabulary_size,
        "d_model": shape.d_model,
        "d_kv": _head_size(shape),
        "d_ff": shape.d_ff,
        "num_layers": shape.num_layers,
        "num_decoder_layers": shape.num_layers,
        "num_heads": shape.num_heads,
        "feed_forward_proj": "gated-gelu",
        "relative_attention_num_buckets": BUCKETS,
        "relative_attention_max_distance": 128,
        "is_encoder_decoder": True,
        "tie_word_embeddings": False,
        "dtype": shape.precision,
    }


def tensors(shape: TrueShape) -> Tensors:
    """Yield names and shapes in a file's order."""
    width, heads = shape.d_model, shape.num_heads * _head_size(shape)
    yield TABLE, (shape.vocabulary_size, width)
    yield PROJECTION, (shape.vocabulary_size, width)
    for side, attentions in (("encoder", ("SelfAttention",)), ("decoder", ("SelfAttention", "EncDecAttention"))):
        for block in range(shape.num_layers):
            for layer, kind in enumerate((*attentions, "DenseReluDense")):
                prefix = f"{side}.block.{block}.layer.{layer}"
                yield f"{prefix}.layer_norm.weight", (width,)
                if kind == "DenseReluDense":
                    yield f"{prefix}.{kind}.wi_0.weight", (shape.d_ff, width)
                    yield f"{prefix}.{kind}.wi_1.weight", (shape.d_ff, width)
                    yield f"{prefix}.{kind}.wo.weight", (width, shape.d_ff)
                    continue
                for part in ("q", "k", "v"):
                    yield f"{prefix}.{kind}.{part}.weight", (heads, width)
                yield f"{prefix}.{kind}.o.weight", (width, heads)
                if block == 0 and layer == 0:
                    yield f"{prefix}.{kind}.relative_attention_bias.weight", (BUCKETS, shape.num_heads)
        yield f"{side}.final_layer_norm.weight", (width,)


def numbers(shape: TrueShape, rng: np.random.Generator, name: str, size: tuple[int, ...]) -> Iterator[Floats]:
    """Yield a tensor's numbers in pieces of whole rows."""
    part = name.split(".")[-2]
    if len(size) == 1:
        scale = LOGIT_SCALE if name == "decoder.final_layer_norm.weight" else 1.0
        yield scale * (1.0 + NOISE * rng.standard_normal(size, np.float32))
    elif name == PROJECTION:
        for start, rows in row_pieces(rng, size, shape.d_model**-0.5):
            if start == 0:
                rows[IDS["eos_token_id"]] *= LARGEST / END  # there are no biases
            yield rows
    elif part in ("q", "k"):  # scores are not divided by the root of the head's width
        deviation = ATTENTION_GAIN * _head_size(shape) ** -0.25 * shape.d_model**-0.5
        yield from (rows for _, rows in row_pieces(rng, size, deviation))
    elif name == TABLE or part == "relative_attention_bias":
        yield from (rows for _, rows in row_pieces(rng, size, 1.0))
    else:
        gain = FEED_FORWARD_GAIN if part.startswith("w") else VALUE_GAIN
        if part in ("o", "wo"):
            gain *= (SMALL / shape.num_layers) ** 0.5
        for _, rows in row_pieces(rng, size, gain * (2 / sum(size)) ** 0.5):
            yield rows - rows.mean(axis=1, keepdims=True) if part == "wo" else rows


def _head_size(shape: TrueShape) -> int:
    return shape.d_head or shape.d_model // shape.num_heads
