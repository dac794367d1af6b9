"""Marian's settings of a model, as our configuration."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from export.architecture import ModelConfig
from export.architecture.config import Activation, Autoregression, NormPlacement, PositionConfig, PositionLayout
from export.importers.marian_files.container import MarianModel
from service.domain.errors import counted, shown

EPSILON = 1e-6  # under the root of Marian's layer norms
MAX_POSITIONS = 1024  # Marian computes any number of them
TABLES = ("Wemb", "encoder_Wemb", "decoder_Wemb")
PROJECTIONS = ("decoder_ff_logit_out_W", "decoder_ff_logit_out_Wt")  # of models that do not tie it; one or none
_NO_POSITIONS = "transformer-disable-position-embeddings"
# What may only have these values; missing ones have the first.
_FIXED: Mapping[str, tuple[Any, ...]] = {
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-no-projection": (False,),
    "transformer-no-affine": (False,),
    "transformer-rnn-projection": (False,),
    "transformer-pool": (False,),
    "transformer-attention-mask": ("default",),
    _NO_POSITIONS: (False, True),
    "dec-cell-base-depth": (2,),
    "dec-cell-high-depth": (1,),
    "input-types": ([],),
    "lemma-dim-emb": (0,),
    "factors-dim-emb": (0,),
    "ulr": (False,),
    "right-left": (False,),
}
_ACTIVATIONS: Mapping[Any, Activation] = {"relu": "relu", "swish": "silu"}
_SIZES = ("dim-emb", "enc-depth", "dec-depth", "transformer-dim-ffn", "transformer-heads")
# Operations before and after a sub-layer: n normalizes, a adds the input; d, dropout, does nothing in a trained model.
_NORMS: Mapping[tuple[str, str], NormPlacement] = {("", "an"): "post", ("n", "a"): "pre"}
_OPERATIONS = {"preprocess": "", "postprocess": "dan", "postprocess-emb": "d", "postprocess-top": ""}


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Ids of a model's target vocabulary."""

    eos_id: int
    unk_id: int


def read_config(stored: MarianModel, ids: TokenIds, problems: list[str]) -> ModelConfig | None:
    """Return the configuration of a model, whose start token, an embedding of zeros, follows the vocabulary; or `None`,
    with every setting that is missing or not supported added to `problems`."""
    settings, parameters, found = stored.settings, stored.parameters, len(problems)
    problems += _unsupported(settings)
    problems += _unsupported_decoder(settings)
    tables = {name: parameters[name] for name in TABLES if name in parameters}
    is_shared = "Wemb" in tables
    if set(tables) not in ({"Wemb"}, {"encoder_Wemb", "decoder_Wemb"}):
        problems.append(f"embeddings are {sorted(tables)}, expected Wemb, or encoder_Wemb and decoder_Wemb")
    if "Wpos" in parameters:  # what makes positions learned: transformer-train-position-embeddings has no effect
        problems.append("it has learned positions, Wpos, with which Marian 1.12 itself can't translate")
    if len(problems) > found:
        return None
    source, target = (len(tables["Wemb" if is_shared else f"{side}_Wemb"]) + 1 for side in ("encoder", "decoder"))
    layout: PositionLayout = "none" if settings.get(_NO_POSITIONS, False) else "halves"
    operations = {name: _operations(settings, name) for name in _OPERATIONS}
    try:
        return ModelConfig(
            source_vocabulary_size=source,
            target_vocabulary_size=target,
            d_model=settings["dim-emb"],
            d_ff=settings["transformer-dim-ffn"],
            decoder_d_ff=settings.get("transformer-decoder-dim-ffn") or None,
            num_heads=settings["transformer-heads"],
            num_encoder_layers=settings["enc-depth"],
            num_decoder_layers=settings["dec-depth"],
            max_source_positions=MAX_POSITIONS,
            max_target_positions=MAX_POSITIONS,
            autoregression=_autoregression(settings) or "self_attention",
            activation=_ACTIVATIONS[settings["transformer-ffn-activation"]],
            feed_forward_bias="encoder_l1_ffn_b1" in parameters,
            norm=_NORMS[operations["preprocess"], operations["postprocess"]],
            final_norm=operations["postprocess-top"] == "n",
            embedding_norm=operations["postprocess-emb"] == "n",
            layer_norm_epsilon=EPSILON,
            attention_bias="encoder_l1_self_bq" in parameters,
            scale_embeddings=layout != "none",  # Marian scales and adds positions in one
            share_embeddings=is_shared,
            tie_projection=not any(name in parameters for name in PROJECTIONS),
            projection_bias=True,
            positions=PositionConfig(layout=layout, fairseq_exponent=True),
            pad_id=ids.eos_id,
            eos_id=ids.eos_id,
            unk_id=ids.unk_id,
            decoder_start_id=target - 1,
        )
    except ValueError as error:
        problems.append(str(error))
        return None


def decoder_layers(settings: Mapping[str, Any]) -> list[int]:
    """Return the number, from 1, of the stored layer that each of the decoder's layers is: some models repeat them."""
    return settings.get("transformer-tied-layers") or list(range(1, settings["dec-depth"] + 1))


def _unsupported(settings: Mapping[str, Any]) -> Iterator[str]:
    kind = settings.get("type")
    if kind != "transformer":
        yield f"type is {shown(kind)}; supported: 'transformer', not recurrent networks or language models"
    for name, allowed in _FIXED.items():
        value = settings.get(name, allowed[0])
        if not any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in allowed):
            yield f"{name} is {shown(value)}; supported: {' or '.join(map(repr, allowed))}"
    before, after, embedding, top = (_operations(settings, name) for name in _OPERATIONS)
    if (before, after) not in _NORMS:
        yield (
            f"transformer-preprocess is {before!r} and transformer-postprocess {after!r} without dropout; "
            f"supported: {' and '.join(map(str, _NORMS))}"
        )
    for name, given in (("emb", embedding), ("top", top)):
        if given not in ("", "n"):
            yield f"transformer-postprocess-{name} is {given!r} without dropout; supported: '' and 'n'"
    activation = settings.get("transformer-ffn-activation")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        allowed_names = ", ".join(map(repr, _ACTIVATIONS))
        yield f"transformer-ffn-activation is {shown(activation)}; supported: {allowed_names}"
    for name in _SIZES:
        if not isinstance(settings.get(name), int) or isinstance(settings.get(name), bool):
            yield f"{name} is {shown(settings.get(name))}, expected a number"


def _unsupported_decoder(settings: Mapping[str, Any]) -> Iterator[str]:
    if _autoregression(settings) is None:
        given, cell = (shown(settings.get(name)) for name in ("transformer-decoder-autoreg", "dec-cell"))
        yield (
            f"transformer-decoder-autoreg is {given} with dec-cell {cell}; supported: 'self-attention', and "
            "'rnn' with 'ssru', not average attention (AAN) nor other recurrent networks"
        )
    tied, depth = settings.get("transformer-tied-layers", []), settings.get("dec-depth")
    if not isinstance(tied, list) or not all(type(number) is int and number > 0 for number in tied):
        yield f"transformer-tied-layers is {shown(tied)}, expected numbers of layers"
    elif tied and len(tied) != depth:
        yield f"transformer-tied-layers has {counted(len(tied), 'layer')}, dec-depth is {shown(depth)}"


def _autoregression(settings: Mapping[str, Any]) -> Autoregression | None:
    kind = settings.get("transformer-decoder-autoreg", "self-attention")
    if kind == "rnn" and settings.get("dec-cell") == "ssru":
        return "ssru"
    return "self_attention" if kind == "self-attention" else None


def _operations(settings: Mapping[str, Any], name: str) -> str:
    value = settings.get(f"transformer-{name}", _OPERATIONS[name])
    return value.replace("d", "") if isinstance(value, str) else shown(value)
