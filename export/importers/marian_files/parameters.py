"""Marian's names of parameters, as ours."""

import re
from collections.abc import Iterator, Mapping

import numpy as np

from export.architecture import ModelConfig
from export.architecture.names import DECODER_TABLE, ENCODER_TABLE, PROJECTION
from export.importers.marian_files.container import Floats, MarianModel
from export.importers.marian_files.settings import PROJECTIONS, TABLES, decoder_layers


def _norm(theirs: str, ours: str) -> dict[str, str]:
    kinds = {"scale": "weight", "bias": "bias"}
    return {f"{theirs}_ln_{kind}{end}": f"{ours}.{kinds[kind]}" for kind in kinds for end in ("", "_pre")}


def _layers(ours: str, letters: Mapping[str, str]) -> dict[str, str]:
    kinds = {"W": "weight", "b": "bias"}
    return {f"{kind}{end}": f"{ours}.{name}.{kinds[kind]}" for kind in kinds for end, name in letters.items()}


_ATTENTION = {"q": "query", "k": "key", "v": "value", "o": "output"}
_PARTS: Mapping[str, Mapping[str, str]] = {
    "self": _layers("self_attention", _ATTENTION) | _norm("Wo", "self_attention_residual.norm"),
    "context": _layers("cross_attention", _ATTENTION) | _norm("Wo", "cross_attention_residual.norm"),
    "ffn": _layers("feed_forward", {"1": "inner", "2": "outer"}) | _norm("ffn", "feed_forward_residual.norm"),
    "rnn": {
        "W": "recurrence.candidate.weight",
        "Wf": "recurrence.gate.weight",
        "bf": "recurrence.gate.bias",
        "ln_scale_pre": "recurrence_residual.norm.weight",
        "ln_bias_pre": "recurrence_residual.norm.bias",
        "ffn_ln_scale": "recurrence_residual.norm.weight",
        "ffn_ln_bias": "recurrence_residual.norm.bias",
    },
}
_LAYER = re.compile(r"(encoder|decoder)_l([1-9][0-9]{0,3})_(self|context|ffn|rnn)_(\w+)")
_OUTSIDE = {
    f"{side}_{theirs}": f"{side}.{ours}"
    for side in ("encoder", "decoder")
    for theirs, ours in (_norm("emb", "embedding.norm") | _norm("top", "final_norm")).items()
}
_BIAS = "decoder_ff_logit_out_b"
_BELOW_ALL = np.float32(30.0)  # exp(-30) of a probability is below float32's precision


def our_weights(stored: MarianModel, config: ModelConfig, problems: list[str]) -> dict[str, Floats]:
    """Return weights by our names, shared where layers are the same; what has none is added to `problems`."""
    ours: dict[str, Floats] = {}
    repeated = decoder_layers(stored.settings)
    for name, given in stored.parameters.items():
        values = np.require(given, requirements=("C", "W"))
        if name in TABLES:
            side = ENCODER_TABLE if config.share_embeddings or name.startswith("encoder") else DECODER_TABLE
            ours[side] = _with_start(values)
        elif name in PROJECTIONS:
            ours[PROJECTION] = _with_start(values)
        elif name != _BIAS:
            our_names = list(_our_names(name, repeated))
            if not our_names:
                problems.append(f"{name[:100]!r} is a parameter that the architecture does not have")
            ours |= {each: values.ravel() if each.endswith(("bias", "norm.weight")) else values for each in our_names}
    # No other token is as improbable as the start, which is suppressed anyway.
    bias = stored.parameters.get(_BIAS, np.zeros(config.target_vocabulary_size - 1, np.float32)).ravel()
    ours["projection.bias"] = np.append(bias, bias.min(initial=0.0) - _BELOW_ALL)
    return ours


def _with_start(table: Floats) -> Floats:
    """Return a table whose last row is the start's: a decoder begins with zeros."""
    return np.pad(table, ((0, 1), (0, 0)))


def _our_names(name: str, repeated: list[int]) -> Iterator[str]:
    """Yield our names of a parameter, which may be that of several layers of the decoder."""
    if name in _OUTSIDE:
        yield _OUTSIDE[name]
    matched = _LAYER.fullmatch(name)
    if matched is None:
        return
    side, number, part, rest = matched.groups()
    if (ours := _PARTS[part].get(rest)) is not None:
        stored = int(number)
        same = [index for index, each in enumerate(repeated) if each == stored]
        for index in same if side == "decoder" else [stored - 1]:
            yield f"{side}.layers.{index}.{ours}"
