"""Checkpoints of published shapes with random weights, as transformers stores them; written tensor by tensor.

The numbers are scaled like a trained model's where it matters: every token depends on the source and all tokens before
it, a step has one or two likely tokens, outputs end after some 25 tokens, and the padding's row is zero.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import true_t5
from benchmarks.true_shape import (
    END,
    LARGEST,
    LOGIT_SCALE,
    NOISE,
    SEED,
    Floats,
    Precision,
    Tensors,
    TrueShape,
    row_pieces,
)
from benchmarks.true_tokenizers import write_madlad_tokenizer, write_marian_tokenizer, write_nllb_tokenizer

# Gains of matrices, relative to Xavier's initialisation; found by trial: with most others, outputs repeat one token.
ATTENTION_GAIN = 2.0  # of queries and keys: sharp attention, not a choice of one position
VALUE_GAINS = {"marian": 0.7, "nllb": 1.0}
FEED_FORWARD_GAINS = {"marian": 2.0, "nllb": 4.0}
END_LOGIT = (LARGEST - END) * LOGIT_SCALE  # added to the end's logit

_NAMES: Mapping[Precision, str] = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
_BYTES: Mapping[Precision, int] = {"float32": 4, "float16": 2, "bfloat16": 2}
_CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "marian": {"model_type": "marian", "architectures": ["MarianMTModel"], "max_position_embeddings": 1024},
    "nllb": {
        "model_type": "m2m_100",
        "architectures": ["M2M100ForConditionalGeneration"],
        "max_position_embeddings": 1024,
    },
}


TRUE_SHAPES = {
    shape.name: shape
    for shape in (
        TrueShape("tc-big", "marian", 1024, 6, 4096, 16, 58_101, "float16"),
        TrueShape("nllb-600m", "nllb", 1024, 12, 4096, 16, 256_206, "float32"),
        TrueShape("nllb-3.3b", "nllb", 2048, 24, 8192, 16, 256_206, "bfloat16", shard_bytes=2 * 10**9),
        TrueShape("madlad-3b", "madlad", 1024, 32, 8192, 16, 256_000, "bfloat16", shard_bytes=2 * 10**9, d_head=128),
    )
}


def write_checkpoint(shape: TrueShape, directory: Path) -> None:
    """Write a folder that transformers, our importer and CTranslate2's converter read; the same one every time."""
    directory.mkdir(parents=True, exist_ok=True)
    if shape.family == "madlad":
        write_madlad_tokenizer(directory, shape.vocabulary_size)
        _write_json(directory / "config.json", true_t5.config(shape))
        _write_json(directory / "generation_config.json", true_t5.IDS)
        _write_weights(shape, true_t5.IDS, directory)
        return
    if shape.family == "marian":
        write_marian_tokenizer(directory, shape.vocabulary_size)
        ids = {"pad_token_id": shape.vocabulary_size - 1, "eos_token_id": 0}
        start = ids["pad_token_id"]
        further = {"bad_words_ids": [[start]], "forced_eos_token_id": 0, "num_beams": 4, "max_length": 512}
    else:
        write_nllb_tokenizer(directory, shape.vocabulary_size)
        ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
        start = ids["eos_token_id"]
        further = {"max_length": 200}
    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", shape.num_layers),
            ("ffn_dim", shape.d_ff),
            ("attention_heads", shape.num_heads),
        )
    }
    config = {
        **_CONFIGS[shape.family],
        **sizes,
        **ids,
        "decoder_start_token_id": start,
        "vocab_size": shape.vocabulary_size,
        "d_model": shape.d_model,
        "activation_function": "relu",
        "scale_embedding": True,
        "is_encoder_decoder": True,
        "dtype": shape.precision,
    }
    _write_json(directory / "config.json", config)
    _write_json(directory / "generation_config.json", {**ids, "decoder_start_token_id": start, **further})
    _write_weights(shape, ids, directory)


def _tensors(shape: TrueShape) -> Tensors:
    """Yield names and shapes in a file's order; encoder, decoder and projection have one table."""
    if shape.family == "madlad":
        yield from true_t5.tensors(shape)
        return
    width = shape.d_model
    if shape.family == "marian":
        yield "final_logits_bias", (1, shape.vocabulary_size)
    yield "model.shared.weight", (shape.vocabulary_size, width)
    for side, attentions in (("encoder", ("self_attn",)), ("decoder", ("self_attn", "encoder_attn"))):
        for layer in range(shape.num_layers):
            prefix = f"model.{side}.layers.{layer}"
            for attention in attentions:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    yield f"{prefix}.{attention}.{part}.weight", (width, width)
                    yield f"{prefix}.{attention}.{part}.bias", (width,)
            yield f"{prefix}.fc1.weight", (shape.d_ff, width)
            yield f"{prefix}.fc1.bias", (shape.d_ff,)
            yield f"{prefix}.fc2.weight", (width, shape.d_ff)
            yield f"{prefix}.fc2.bias", (width,)
            for norm in (*(f"{attention}_layer_norm" for attention in attentions), "final_layer_norm"):
                yield f"{prefix}.{norm}.weight", (width,)
                yield f"{prefix}.{norm}.bias", (width,)
        if shape.family == "nllb":
            yield f"model.{side}.layer_norm.weight", (width,)
            yield f"model.{side}.layer_norm.bias", (width,)


def _numbers(shape: TrueShape, ids: Mapping[str, int], name: str, size: tuple[int, ...]) -> Iterator[Floats]:
    """Yield a tensor's numbers in pieces of whole rows; (1, V) and (d,) come in one piece."""
    seed = [SEED, *name.encode()]
    rng = np.random.default_rng(seed)
    if shape.family == "madlad":
        yield from true_t5.numbers(shape, rng, name, size)
        return
    last = "model.decoder.layer_norm" if shape.family == "nllb" else _last_norm(shape)
    if name == "final_logits_bias":
        bias = np.zeros(size, np.float32)
        bias[0, ids["eos_token_id"]] = END_LOGIT
        yield bias
    elif name == "model.shared.weight":
        for start, rows in row_pieces(rng, size, shape.d_model**-0.5):
            for index in {ids["pad_token_id"]} & set(range(start, start + len(rows))):
                rows[index - start] = 0.0
            yield rows
    elif len(size) == 2:
        for _, rows in row_pieces(rng, size, _gain(shape, name) * (2 / sum(size)) ** 0.5):
            if "fc2" in name:  # what all tokens have in common cancels out, else layer by layer they become alike
                yield rows - rows.mean(axis=1, keepdims=True)
            else:
                yield rows
    else:
        values = NOISE * rng.standard_normal(size, np.float32)
        if name.endswith("norm.weight"):
            values += 1.0
        if name == f"{last}.weight":
            values *= LOGIT_SCALE
        elif name == f"{last}.bias" and shape.family == "nllb":  # it has no bias of logits
            end = _row(shape, ids["eos_token_id"])
            values += END_LOGIT * end / np.square(end).sum()
        yield values


def _gain(shape: TrueShape, name: str) -> float:
    if "q_proj" in name or "k_proj" in name:
        return ATTENTION_GAIN
    return (FEED_FORWARD_GAINS if "fc" in name else VALUE_GAINS)[shape.family]


def _last_norm(shape: TrueShape) -> str:
    return f"model.decoder.layers.{shape.num_layers - 1}.final_layer_norm"


def _row(shape: TrueShape, index: int) -> Floats:
    """Return one of the embedding's first rows."""
    rng = np.random.default_rng([SEED, *b"model.shared.weight"])
    rows = rng.standard_normal((index + 1, shape.d_model), np.float32)
    row: Floats = rows[index] * np.float32(shape.d_model**-0.5)
    return row


def _write_weights(shape: TrueShape, ids: Mapping[str, int], directory: Path) -> None:
    """Write safetensors files: the length of a JSON header, the header, and the numbers."""
    shards: list[list[tuple[str, tuple[int, ...]]]] = [[]]
    filled = 0
    for name, size in _tensors(shape):
        num_bytes = _num_bytes(shape, size)
        if shape.shard_bytes is not None and filled and filled + num_bytes > shape.shard_bytes:
            shards.append([])
            filled = 0
        shards[-1].append((name, size))
        filled += num_bytes
    names = ["model.safetensors"]
    if len(shards) > 1:
        names = [f"model-{number:05}-of-{len(shards):05}.safetensors" for number in range(1, len(shards) + 1)]
    for file_name, tensors in zip(names, shards, strict=True):
        header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        end = 0
        for name, size in tensors:
            begin, end = end, end + _num_bytes(shape, size)
            header[name] = {"dtype": _NAMES[shape.precision], "shape": size, "data_offsets": [begin, end]}
        head = json.dumps(header).encode()
        head += b" " * (-len(head) % 8)
        with (directory / file_name).open("wb") as file:
            file.write(len(head).to_bytes(8, "little") + head)
            for name, size in tensors:
                for numbers in _numbers(shape, ids, name, size):
                    file.write(_encoded(numbers, shape.precision))
    if len(shards) > 1:
        total = sum(_num_bytes(shape, size) for _, size in _tensors(shape))
        places = {name: file_name for file_name, tensors in zip(names, shards, strict=True) for name, _ in tensors}
        document = {"metadata": {"total_size": total}, "weight_map": places}
        _write_json(directory / "model.safetensors.index.json", document)


def _num_bytes(shape: TrueShape, size: tuple[int, ...]) -> int:
    return int(np.prod(size)) * _BYTES[shape.precision]


def _encoded(numbers: Floats, precision: Precision) -> bytes:
    if precision == "bfloat16":  # the upper half of a float32, rounded
        return ((numbers.view(np.uint32) + 0x8000) >> 16).astype(np.uint16).tobytes()
    return numbers.astype(np.float16 if precision == "float16" else np.float32, copy=False).tobytes()


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
