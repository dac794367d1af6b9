"""A CTranslate2 model's flags and shapes as our configuration: src/layers/transformer.cc and attention.cc read them."""

import dataclasses
import math
import re
from dataclasses import dataclass
from typing import Literal

from export.architecture import ModelConfig, PositionConfig
from export.architecture.config import Activation, RelativeBiasConfig
from export.importers.ctranslate2.positions import MAX_POSITIONS, shared_positions
from export.importers.ctranslate2.settings import Settings
from export.importers.ctranslate2.variables import Variables

_SPECS = {"TransformerSpec": 8, "TransformerBase": 8, "TransformerBig": 16}  # heads, where files have no number
_OTHER_SPECS = {
    "TransformerDecoderSpec": "a decoder-only language model",
    "TransformerEncoderSpec": "an encoder-only model",
    "WhisperSpec": "a model of speech",
}
_FIRST_REVISION = 2  # the first one had OpenNMT-tf's names
_SIGMOID_GELU = 4  # x sigmoid(1.702 x), as Marian's gelu and transformers' quick_gelu
_ACTIVATIONS: dict[int, Activation] = {0: "relu", 1: "gelu_tanh", 2: "silu", 3: "gelu", _SIGMOID_GELU: "silu"}
_OTHER_ACTIVATIONS = {5: "tanh", 6: "the sigmoid"}
_VECTOR_EPSILON, _RMS_EPSILON = 1e-5, 1e-6  # where config.json has none
_SCALE_ERROR = 1e-3
_MOST_LAYERS = 1000


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Ids of a model's special tokens; `start` may be one more than the vocabulary has."""

    pad: int
    eos: int
    unk: int
    start: int


@dataclass(frozen=True, slots=True)
class _Side:
    """The choices of an encoder or a decoder that the other one has to share."""

    num_heads: int
    activation: Activation
    norm: Literal["pre", "post"]
    layer_norm: Literal["vector", "rms"]
    final_norm: bool
    embedding_norm: bool
    scale_embeddings: bool
    gated: bool
    score_scale: Literal["head", "none"]
    relative_bias: RelativeBiasConfig | None


def check_spec(variables: Variables, problems: list[str]) -> None:
    spec, revision = variables.stored.spec, variables.stored.revision
    if spec not in _SPECS:
        what = f", {_OTHER_SPECS[spec]}" if spec in _OTHER_SPECS else ""
        problems.append(f"it is a {spec[:60]!r}{what}; supported: {', '.join(_SPECS)}")
    elif revision < _FIRST_REVISION:
        problems.append(f"it is of revision {revision}, whose names of variables are unknown; convert it again")


def embedding_name(variables: Variables, side: str) -> str:
    plain = f"{side}/embeddings/weight"
    return plain if variables.has(plain) else f"{side}/embeddings_0/weight"


def num_layers(variables: Variables, side: str) -> int:
    found = (re.match(rf"{side}/layer_([0-9]{{1,4}})/", name) for name in variables.stored.variables)
    return min(max((int(match[1]) + 1 for match in found if match), default=0), _MOST_LAYERS)


def starts_from_zero(variables: Variables) -> bool:
    """Return whether the decoder's first input is a vector of zeros, whatever the token is, as Marian's."""
    return bool(variables.number("decoder/start_from_zero_embedding"))


def silu_factor(variables: Variables, side: str) -> float:
    """Return k of a side's activation x sigmoid(k x), which is silu(k x) / k; 1 of other activations."""
    return 1.702 if variables.number(f"{side}/activation", "activation") == _SIGMOID_GELU else 1.0


def read_config(variables: Variables, settings: Settings, ids: TokenIds, problems: list[str]) -> ModelConfig | None:
    """Return the configuration; or `None`, with what is missing or not supported added to `problems`."""
    found = len(problems)
    names = {side: embedding_name(variables, side) for side in ("encoder", "decoder")}
    shapes = {side: variables.shape(name) for side, name in names.items()}
    problems += [f"{names[side]} is missing or not a table" for side, shape in shapes.items() if len(shape) != 2]
    if len(problems) > found:
        return None
    width = shapes["encoder"][1]
    sides = {side: _read_side(variables, side, width, problems) for side in shapes}
    encoder, decoder = sides["encoder"], sides["decoder"]
    if encoder is None or decoder is None:
        return None
    for item in dataclasses.fields(_Side):
        ours, theirs = getattr(encoder, item.name), getattr(decoder, item.name)
        if ours != theirs:
            problems.append(f"{item.name} is {ours} in the encoder and {theirs} in the decoder; they must be the same")
    positions = PositionConfig(layout="none")
    lengths = (MAX_POSITIONS, MAX_POSITIONS)
    if encoder.relative_bias is None:
        positions, lengths = shared_positions(variables, width, problems)
    widths = {side: variables.shape(f"{side}/layer_0/ffn/linear_1/weight")[1:] or (1,) for side in shapes}
    heads = variables.shape("decoder/layer_0/self_attention/linear_1/weight")[1:] or (1,)
    if heads[0] % encoder.num_heads:
        problems.append(f"its attention is {heads[0]} wide, not a multiple of {encoder.num_heads} heads")
    if len(problems) > found:
        return None
    rows = {side: shape[0] for side, shape in shapes.items()}
    shares = variables.same(names["encoder"], names["decoder"])
    if starts_from_zero(variables):
        rows = {side: size + (side == "decoder" or shares) for side, size in rows.items()}
    attention_bias = variables.any(r"(en|de)coder/layer_\d+/(self_)?attention/linear_0/bias")
    output_bias = variables.any(
        r"(en|de)coder/layer_\d+/self_attention/linear_1/bias|decoder/layer_\d+/attention/linear_2/bias"
    )
    epsilon = _RMS_EPSILON if encoder.layer_norm == "rms" else _VECTOR_EPSILON
    d_head = heads[0] // encoder.num_heads
    try:
        return ModelConfig(
            source_vocabulary_size=rows["encoder"],
            target_vocabulary_size=rows["decoder"],
            d_model=width,
            d_ff=widths["encoder"][0],
            decoder_d_ff=None if widths["decoder"] == widths["encoder"] else widths["decoder"][0],
            num_heads=encoder.num_heads,
            d_head=None if heads[0] == width else d_head,
            num_encoder_layers=num_layers(variables, "encoder"),
            num_decoder_layers=num_layers(variables, "decoder"),
            max_source_positions=lengths[0],
            max_target_positions=lengths[1],
            activation=encoder.activation,
            gated=encoder.gated,
            feed_forward_bias=variables.any(r"(en|de)coder/layer_\d+/ffn/linear_\w+/bias"),
            norm=encoder.norm,
            final_norm=encoder.final_norm,
            layer_norm=encoder.layer_norm,
            embedding_norm=encoder.embedding_norm,
            layer_norm_epsilon=epsilon if settings.epsilon is None else settings.epsilon,
            attention_bias=attention_bias,
            attention_output="same" if attention_bias == output_bias else ("biased" if output_bias else "unbiased"),
            score_scale=encoder.score_scale,
            scale_embeddings=encoder.scale_embeddings,
            share_embeddings=shares,
            tie_projection=variables.same(names["decoder"], "decoder/projection/weight"),
            projection_bias=variables.has("decoder/projection/bias"),
            positions=positions,
            relative_bias=encoder.relative_bias,
            pad_id=ids.pad,
            eos_id=ids.eos,
            unk_id=ids.unk,
            decoder_start_id=ids.start,
        )
    except ValueError as error:
        problems.append(str(error))
        return None


def _read_side(variables: Variables, side: str, width: int, problems: list[str]) -> _Side | None:
    found = len(problems)
    first = f"{side}/layer_0"
    heads = variables.number(f"{side}/num_heads", "num_heads")
    num_heads = _SPECS[variables.stored.spec] if heads is None else int(heads)
    if num_heads < 1:
        problems.append(f"{side}/num_heads is {num_heads}, expected a positive number")
        return None
    number = int(variables.number(f"{side}/activation", "activation") or 0)
    if number not in _ACTIVATIONS:
        what = _OTHER_ACTIVATIONS.get(number, f"number {number}")
        problems.append(f"{side}/activation is {what}; supported: {', '.join(dict.fromkeys(_ACTIVATIONS.values()))}")
    if not variables.has(f"{first}/ffn/layer_norm/gamma"):
        problems.append(f"{first}/ffn/layer_norm/gamma is missing")
    head_size = (variables.shape(f"{first}/self_attention/linear_1/weight")[1:] or (width,))[0] / num_heads
    result = _Side(
        num_heads=num_heads,
        activation=_ACTIVATIONS.get(number, "relu"),
        norm="post" if variables.number(f"{side}/pre_norm", "pre_norm") == 0 else "pre",
        layer_norm="vector" if variables.has(f"{first}/ffn/layer_norm/beta") else "rms",
        final_norm=variables.has(f"{side}/layer_norm/gamma"),
        embedding_norm=variables.has(f"{side}/layernorm_embedding/gamma"),
        scale_embeddings=_scales(variables, side, width, problems),
        gated=variables.has(f"{first}/ffn/linear_0_noact/weight"),
        score_scale=_score_scale(variables, side, head_size, problems),
        relative_bias=_relative_bias(variables, side),
    )
    return result if len(problems) == found else None


def _scales(variables: Variables, side: str, width: int, problems: list[str]) -> bool:
    """Return whether embeddings are multiplied by the root of the width: files have a flag, or the factor itself."""
    names = (f"{side}/scale_embeddings", f"{side}/embeddings/multiply_by_sqrt_depth")
    scale = variables.number(*names)
    is_flag = any(variables.kind(name) == "int8" for name in names)
    if scale is None or is_flag:
        return scale is None or scale != 0
    if math.isclose(scale, math.sqrt(width), rel_tol=_SCALE_ERROR):
        return True
    if scale != 1.0:
        problems.append(f"{names[0]} is {scale:g}; supported: 1 and the root of the width, {math.sqrt(width):g}")
    return False


def _score_scale(variables: Variables, side: str, head_size: float, problems: list[str]) -> Literal["head", "none"]:
    parts = ("self_attention",) if side == "encoder" else ("self_attention", "attention")
    found = set[float | None]()
    for index in range(num_layers(variables, side)):
        for part in parts:
            prefix = f"{side}/layer_{index}/{part}"
            variables.mark(f"{prefix}/head_dim")
            scale = variables.number(f"{prefix}/queries_scale")
            is_usual = scale is not None and math.isclose(scale, head_size**-0.5, rel_tol=_SCALE_ERROR)
            found.add(None if is_usual else scale)
    if found <= {None}:
        return "head"
    if found != {1.0}:
        problems.append(f"{side}: queries_scale is {sorted(map(str, found))}; supported: 1, or none")
    return "none"


def _relative_bias(variables: Variables, side: str) -> RelativeBiasConfig | None:
    """Return the configuration of T5's biases, of which each layer has a table, the same one if it is shared."""
    name = "self_attention/relative_attention_bias"
    shape = variables.shape(f"{side}/layer_0/{name}")
    if len(shape) != 2:
        return None
    layers = [f"{side}/layer_{index}" for index in range(num_layers(variables, side))]
    distances = [variables.number(f"{layer}/self_attention/relative_attention_max_distance") for layer in layers]
    per_layer = any(
        variables.has(f"{layer}/{name}") and not variables.same(f"{layer}/{name}", f"{layers[0]}/{name}")
        for layer in layers
    )
    return RelativeBiasConfig(shape[0], int(distances[0] or 0), per_layer)
