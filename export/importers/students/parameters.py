"""Marian's settings and names of parameters, as our configuration and names."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from export.architecture import ModelConfig
from export.architecture.config import Activation, PositionConfig
from export.architecture.names import DECODER_TABLE, ENCODER_TABLE
from export.importers.students.container import Floats, StoredModel

EPSILON = 1e-6  # under the root of Marian's layer norms
MAX_POSITIONS = 1024  # Marian computes any number of them
# What may only have one value, missing ones included: no student has another one.
_FIXED: Mapping[str, tuple[Any, ...]] = {
    "type": ("transformer",),
    "transformer-preprocess": ("",),
    "transformer-postprocess": ("dan",),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-postprocess-top": ("",),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-no-projection": (False,),
    "transformer-no-bias": (False,),
    "transformer-no-affine": (False,),
    "transformer-rnn-projection": (False,),
    "transformer-pool": (False,),
    "transformer-tied-layers": ([],),
    "transformer-train-position-embeddings": (False,),
    "transformer-disable-position-embeddings": (False,),
    "dec-cell-base-depth": (2,),
    "dec-cell-high-depth": (1,),
    "output-omit-bias": (False,),
    "input-types": ([],),
    "lemma-dim-emb": (0,),
    "factors-dim-emb": (0,),
    "ulr": (False,),
    "right-left": (False,),
}
_REQUIRED = "type"  # Marian's own default is no Transformer
_ACTIVATIONS: Mapping[Any, Activation] = {"relu": "relu", "swish": "silu"}
_SIZES = ("dim-emb", "enc-depth", "dec-depth", "transformer-dim-ffn", "transformer-heads")


def _norm(theirs: str, ours: str) -> dict[str, str]:
    return {f"{theirs}_ln_scale": f"{ours}_residual.norm.weight", f"{theirs}_ln_bias": f"{ours}_residual.norm.bias"}


def _layers(ours: str, letters: Mapping[str, str]) -> dict[str, str]:
    kinds = {"W": "weight", "b": "bias"}
    return {f"{kind}{end}": f"{ours}.{name}.{kinds[kind]}" for kind in kinds for end, name in letters.items()}


_ATTENTION = {"q": "query", "k": "key", "v": "value", "o": "output"}
_PARTS: Mapping[str, Mapping[str, str]] = {
    "self": _layers("self_attention", _ATTENTION) | _norm("Wo", "self_attention"),
    "context": _layers("cross_attention", _ATTENTION) | _norm("Wo", "cross_attention"),
    "ffn": _layers("feed_forward", {"1": "inner", "2": "outer"}) | _norm("ffn", "feed_forward"),
    "rnn": {"W": "recurrence.candidate.weight", "Wf": "recurrence.gate.weight", "bf": "recurrence.gate.bias"}
    | _norm("ffn", "recurrence"),
}
_LAYER = re.compile(r"(encoder|decoder)_l([1-9][0-9]{0,3})_(self|context|ffn|rnn)_(\w+)")
_TABLES = ("Wemb", "encoder_Wemb", "decoder_Wemb")
_BIAS = "decoder_ff_logit_out_b"
_BELOW_ALL = np.float32(30.0)  # exp(-30) of a probability is below float32's precision


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Ids of a student's vocabularies."""

    eos_id: int
    unk_id: int


def read_config(stored: StoredModel, ids: TokenIds, problems: list[str]) -> ModelConfig | None:
    """Return the configuration of a model, whose start token, an embedding of zeros, follows the vocabulary; or `None`,
    with every setting that is missing or not supported added to `problems`.
    """
    settings, found = stored.settings, len(problems)
    problems += _unsupported(settings)
    if settings.get("transformer-decoder-autoreg") != "rnn" or settings.get("dec-cell") != "ssru":
        given = f"{settings.get('transformer-decoder-autoreg')!r} of {settings.get('dec-cell')!r}"
        problems.append(f"transformer-decoder-autoreg is {given[:80]}; a student has 'rnn' of 'ssru'")
    activation = settings.get("transformer-ffn-activation")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        allowed = ", ".join(map(repr, _ACTIVATIONS))
        problems.append(f"transformer-ffn-activation is {str(activation)[:80]!r}; supported are {allowed}")
    for name in _SIZES:
        if not isinstance(settings.get(name), int) or isinstance(settings.get(name), bool):
            problems.append(f"{name} is {str(settings.get(name))[:80]!r}, expected a number")
    tables = {name: stored.parameters[name] for name in _TABLES if name in stored.parameters}
    is_shared = "Wemb" in tables
    if set(tables) not in ({"Wemb"}, {"encoder_Wemb", "decoder_Wemb"}):
        problems.append(f"embeddings are {sorted(tables)}, expected Wemb, or encoder_Wemb and decoder_Wemb")
    if len(problems) > found:
        return None
    source, target = (len(tables["Wemb" if is_shared else f"{side}_Wemb"]) + 1 for side in ("encoder", "decoder"))
    decoder_width = settings.get("transformer-decoder-dim-ffn") or None
    try:
        return ModelConfig(
            source_vocabulary_size=source,
            target_vocabulary_size=target,
            d_model=settings["dim-emb"],
            d_ff=settings["transformer-dim-ffn"],
            decoder_d_ff=decoder_width,
            num_heads=settings["transformer-heads"],
            num_encoder_layers=settings["enc-depth"],
            num_decoder_layers=settings["dec-depth"],
            max_source_positions=MAX_POSITIONS,
            max_target_positions=MAX_POSITIONS,
            autoregression="ssru",
            activation=_ACTIVATIONS[activation],
            layer_norm_epsilon=EPSILON,
            share_embeddings=is_shared,
            tie_projection=True,
            projection_bias=True,
            positions=PositionConfig(layout="halves", fairseq_exponent=True),
            pad_id=ids.eos_id,
            eos_id=ids.eos_id,
            unk_id=ids.unk_id,
            decoder_start_id=target - 1,
        )
    except ValueError as error:
        problems.append(str(error))
        return None


def our_weights(stored: StoredModel, config: ModelConfig, problems: list[str]) -> dict[str, Tensor]:
    """Return the weights by our names; what has no name in our model is added to `problems`."""
    ours: dict[str, Floats] = {}
    for name, values in stored.parameters.items():
        if name in _TABLES:
            side = ENCODER_TABLE if config.share_embeddings or name.startswith("encoder") else DECODER_TABLE
            ours[side] = np.pad(values, ((0, 1), (0, 0)))  # the start is a token whose embedding is zero
        elif name == _BIAS:
            # No other token is as improbable as the start, which is suppressed anyway.
            ours["projection.bias"] = np.append(values.ravel(), values.min() - _BELOW_ALL)
        elif (our_name := _our_name(name)) is not None:
            ours[our_name] = values.ravel() if our_name.endswith(("bias", "norm.weight")) else values
        else:
            problems.append(f"{name[:100]!r} is a parameter that the architecture does not have")
    return {name: torch.tensor(np.ascontiguousarray(values)) for name, values in ours.items()}


def _unsupported(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, allowed in _FIXED.items():
        value = settings.get(name, None if name == _REQUIRED else allowed[0])
        if not any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in allowed):
            yield f"{name} is {str(value)[:80]!r}; supported is {' or '.join(map(repr, allowed))}"


def _our_name(name: str) -> str | None:
    matched = _LAYER.fullmatch(name)
    if matched is None:
        return None
    side, number, part, rest = matched.groups()
    ours = _PARTS[part].get(rest)
    return None if ours is None else f"{side}.layers.{int(number) - 1}.{ours}"
