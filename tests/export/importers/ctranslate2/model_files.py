"""Models as CTranslate2 lays them out, made of ours, and a writer of its `model.bin` that is not its own."""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy import typing as npt

from export.architecture.transformer import Transformer

Arrays = dict[str, npt.NDArray[Any]]
ACTIVATIONS = {"relu": 0, "gelu_tanh": 1, "silu": 2, "gelu": 3}
_TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")


def variables_of(model: Transformer, *, starts_from_zero: bool = False) -> Arrays:
    """Return a model's weights as CTranslate2 names them; without the last token if that is the start of zeros."""
    config = model.config
    weights = {name: value.detach().float().numpy() for name, value in model.weights().items()}
    end = -1 if starts_from_zero else None
    found: Arrays = {}
    shared = model.shared_names()
    for side in ("encoder", "decoder"):
        theirs = "encoder/embeddings_0/weight" if side == "encoder" else "decoder/embeddings/weight"
        name = f"{side}.embedding.tokens.weight"
        is_cut = side == "decoder" or config.share_embeddings
        found[theirs] = weights[shared.get(name, name)][: end if is_cut else None]
        if config.positions.layout == "learned":
            found[f"{side}/position_encodings/encodings"] = weights[f"{side}.embedding.position_table.weight"]
        if config.embedding_norm:
            _norm(weights, f"{side}.embedding.norm", f"{side}/layernorm_embedding", found)
        if config.final_norm:
            _norm(weights, f"{side}.final_norm", f"{side}/layer_norm", found)
        count = config.num_encoder_layers if side == "encoder" else config.num_decoder_layers
        for index in range(count):
            _layer(weights, side, index, found)
            if config.relative_bias is not None:
                number = index if config.relative_bias.per_layer else 0
                prefix = f"{side}/layer_{index}/self_attention/relative_attention"
                found[f"{prefix}_bias"] = weights[f"{side}.relative_biases.{number}.weight"]
                found[f"{prefix}_max_distance"] = np.array(config.relative_bias.max_distance, np.int32)
    found["decoder/projection/weight"] = weights[shared.get("projection.weight", "projection.weight")][:end]
    if config.projection_bias:
        found["decoder/projection/bias"] = weights["projection.bias"][:end]
    return found


def flags_of(model: Transformer, *, starts_from_zero: bool = False) -> Arrays:
    """Return the variables that are one number each."""
    config = model.config
    found: Arrays = {"decoder/start_from_zero_embedding": np.array(starts_from_zero, np.int8)}
    for side in ("encoder", "decoder"):
        found[f"{side}/num_heads"] = np.array(config.num_heads, np.int16)
        found[f"{side}/pre_norm"] = np.array(config.norm == "pre", np.int8)
        found[f"{side}/activation"] = np.array(ACTIVATIONS[config.activation], np.int8)
        found[f"{side}/scale_embeddings"] = np.array(config.scale_embeddings, np.int8)
    found["decoder/alignment_layer"] = np.array(-1, np.int16)
    found["decoder/alignment_heads"] = np.array(1, np.int16)
    found["encoder/embeddings_merge"] = np.array(0, np.int8)
    if config.score_scale == "none":
        layers = {name.rpartition("/linear_")[0] for name in variables_of(model) if "attention/linear_" in name}
        found |= {f"{layer}/queries_scale": np.array(1.0, np.float32) for layer in layers}
    return found


def aliased(variables: Arrays) -> tuple[Arrays, list[tuple[str, str]]]:
    """Return the variables without repetitions, and the aliases for these: the first of equal ones is kept."""
    kept: Arrays = {}
    aliases = []
    for name, value in sorted(variables.items()):
        same = next((other for other, array in kept.items() if value.ndim and array is value), None)
        if same is None:
            kept[name] = value
        else:
            aliases.append((name, same))
    return kept, aliases


def int8(variables: Arrays) -> Arrays:
    """Return variables with weights in 8 bits: a scale per row."""
    found: Arrays = {}
    for name, value in variables.items():
        if name.endswith("/weight"):
            scales = np.float32(127.0) / np.abs(value).max(axis=1)
            found[name] = np.rint(value * scales[:, None]).astype(np.int8)
            found[f"{name}_scale"] = scales.astype(np.float32)
        else:
            found[name] = value
    return found


def int16(variables: Arrays, *, has_scale: bool = True) -> Arrays:
    """Return variables with weights in 16 bits: one scale of its own, or the same one for all and not said."""
    found: Arrays = {}
    for name, value in variables.items():
        if name.endswith("/weight"):
            scale = np.float32(2**10 / np.abs(value).max() if has_scale else 1000.0)
            found[name] = np.rint(value * scale).astype(np.int16)
            if has_scale:
                found[f"{name}_scale"] = np.array(scale, np.float32)
        else:
            found[name] = value
    return found


def bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Return the upper halves of numbers, which the writer takes as bfloat16."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def container(
    variables: Mapping[str, npt.NDArray[Any]],
    aliases: Sequence[tuple[str, str]] = (),
    version: int = 6,
    spec: str = "TransformerSpec",
    revision: int = 7,
) -> bytes:
    """Return a `model.bin`; arrays of uint16 are bfloat16."""
    parts = [struct.pack("<I", version), _name(spec), struct.pack("<II", revision, len(variables))]
    for name, value in variables.items():
        parts += [_name(name), struct.pack("<B", value.ndim), struct.pack(f"<{value.ndim}I", *value.shape)]
        kind = "bfloat16" if value.dtype == np.uint16 else value.dtype.name
        if version >= 4:
            parts.append(struct.pack("<BI", _TYPES.index(kind), value.nbytes))
        else:
            parts.append(struct.pack("<BI", value.itemsize, value.size))
        parts.append(np.ascontiguousarray(value).tobytes())
    if version >= 3:
        parts.append(struct.pack("<I", len(aliases)))
        parts += [_name(alias) + _name(name) for alias, name in aliases]
    return b"".join(parts)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write settings."""
    path.write_text(json.dumps(document), "utf-8")


def write_vocabulary(directory: Path, name: str, tokens: Sequence[str], suffix: str = ".json") -> None:
    """Write a vocabulary, as JSON or as text."""
    path = directory / f"{name}_vocabulary{suffix}"
    path.write_text(json.dumps(list(tokens)) if suffix == ".json" else "".join(f"{each}\n" for each in tokens), "utf-8")


def _name(text: str) -> bytes:
    return struct.pack("<H", len(text.encode()) + 1) + text.encode() + b"\0"


def _norm(weights: Mapping[str, Any], ours: str, theirs: str, found: Arrays) -> None:
    for name, end in (("weight", "gamma"), ("bias", "beta")):
        if f"{ours}.{name}" in weights:
            found[f"{theirs}/{end}"] = weights[f"{ours}.{name}"]


def _layer(weights: Mapping[str, Any], side: str, index: int, found: Arrays) -> None:
    ours, theirs = f"{side}.layers.{index}", f"{side}/layer_{index}"
    linears = {
        "self_attention/linear_0": ("self_attention.query", "self_attention.key", "self_attention.value"),
        "self_attention/linear_1": ("self_attention.output",),
        "ffn/linear_1": ("feed_forward.outer",),
    }
    norms = {"self_attention": "self_attention_residual", "ffn": "feed_forward_residual"}
    if f"{ours}.feed_forward.gate.weight" in weights:
        linears |= {"ffn/linear_0": ("feed_forward.gate",), "ffn/linear_0_noact": ("feed_forward.inner",)}
    else:
        linears |= {"ffn/linear_0": ("feed_forward.inner",)}
    if side == "decoder":
        linears |= {
            "attention/linear_0": ("cross_attention.query",),
            "attention/linear_1": ("cross_attention.key", "cross_attention.value"),
            "attention/linear_2": ("cross_attention.output",),
        }
        norms["attention"] = "cross_attention_residual"
    for part, names in linears.items():
        for end in ("weight", "bias"):
            values = [weights[f"{ours}.{name}.{end}"] for name in names if f"{ours}.{name}.{end}" in weights]
            if values:
                found[f"{theirs}/{part}/{end}"] = np.concatenate(values)
    for part, name in norms.items():
        _norm(weights, f"{ours}.{name}.norm", f"{theirs}/{part}/layer_norm", found)
