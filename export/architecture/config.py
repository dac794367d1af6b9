"""`ModelConfig`: all choices in which encoder-decoder Transformers differ."""

import dataclasses
import math
import typing
from dataclasses import dataclass, field
from typing import Any, Literal

from service.bundle.manifest_parts import STATE_MULTIPLE

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "identity"]
NormPlacement = Literal["pre", "post", "sandwich"]
LayerNormKind = Literal["vector", "scalar", "rms"]
AttentionOutput = Literal["same", "biased", "unbiased", "none"]
ScoreScale = Literal["head", "model", "none"]
PositionLayout = Literal["interleaved", "halves", "learned", "rotary", "none"]
RotaryPairs = Literal["interleaved", "halves"]
HeadNorm = Literal["none", "rms", "layer"]
CosineExponent = Literal["paired", "unbracketed"]
Autoregression = Literal["self_attention", "ssru"]

# Far above any model: a file with a larger value would make us reserve memory or create layers without bound.
MAX_SIZE = 10_000_000
_MAX_SIZES = {
    **dict.fromkeys(("num_encoder_layers", "num_decoder_layers"), 1000),
    **dict.fromkeys(("max_source_positions", "max_target_positions"), 100_000),
}
_MAX_NUMBER = 1e9
_UNUSABLE = "The model configuration is not usable: "
_DECODER_SIZES = ("d_model", "d_ff", "num_heads", "d_head")  # `decoder_...`: the decoder's, if they differ


@dataclass(frozen=True, slots=True)
class PositionConfig:
    """Positions: what is added to embeddings, a sinusoid, a row of a table (`learned`), or nothing (`none`).

    `interleaved` alternates sine and cosine as in section 3.5 of the paper; `halves` puts all sines first, as Marian
    and fairseq (M2M100). The wavelength exponent runs over `i / (d/2)` in the paper and over `i / (d/2 - 1)` in fairseq
    (`fairseq_exponent`). `offset` is the position number of the first token. A cosine has its sine's wavelength
    (`paired`) or, in code that omits the brackets of `(c - 1) / d`, component c has the exponent `c - 1/d`
    (`unbracketed`), so almost all cosines are almost 1.

    With `rotary`, self-attention rotates pairs of a head's components by position instead (Su et al. 2021, section
    3.4): neighbours (`interleaved`, as GPT-J) or i and i + `rotary_size` / 2 (`halves`, as Llama). Only the first
    `rotary_size` components are rotated; `None`: all.
    """

    layout: PositionLayout = "interleaved"
    fairseq_exponent: bool = False
    base: float = 10000.0
    offset: int = 0
    cosine_exponent: CosineExponent = "paired"
    rotary_pairs: RotaryPairs = "halves"
    rotary_size: int | None = None

    @property
    def is_sinusoidal(self) -> bool:
        return self.layout in ("interleaved", "halves")


@dataclass(frozen=True, slots=True)
class RelativeBiasConfig:
    """Biases of self-attention's scores by distance, per head (T5: Raffel et al. 2020, section 2.1).

    Distances up to `max_distance` have `num_buckets` buckets, half of them per direction in the encoder. Layers share
    the first one's biases, unless they are `per_layer`.
    """

    num_buckets: int = 32
    max_distance: int = 128
    per_layer: bool = False


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes and choices of an encoder-decoder Transformer, in the paper's terms; a `ValueError` names all problems."""

    source_vocabulary_size: int
    target_vocabulary_size: int
    d_model: int = 512
    d_ff: int = 2048
    decoder_d_ff: int | None = None  # of the decoder's layers, if `d_ff` is only the encoder's
    num_heads: int = 8
    d_head: int | None = None  # the width of a head, where heads side by side are not as wide as the model
    decoder_d_model: int | None = None  # sizes of the decoder, as `decoder_d_ff`
    decoder_num_heads: int | None = None
    decoder_d_head: int | None = None
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    max_source_positions: int = 512
    max_target_positions: int = 512
    autoregression: Autoregression = "self_attention"  # how a decoder layer reads the tokens before: `recurrence.py`
    activation: Activation = "relu"
    gated: bool = False  # feed-forward: the activation of one layer multiplies another one (Shazeer 2020)
    feed_forward_bias: bool = True
    norm: NormPlacement = "post"  # where residual connections have norms: `layers.py`
    block_norm: bool = False  # one more layer norm at the end of each layer, of what its last residual connection gives
    final_norm: bool = False  # a layer norm after the last layer of each stack; usual with pre-norm
    layer_norm: LayerNormKind = "vector"  # gain and bias per component, or one of each, or only a gain: `layers.py`
    embedding_norm: bool = False  # a layer norm after the embedding with its positions
    layer_norm_epsilon: float = 1e-5
    attention_bias: bool = True  # of queries, keys and values
    attention_output: AttentionOutput = "same"  # the output layer: biased like the others, or of its own kind
    qk_norm: HeadNorm = "none"  # of each head's queries and keys, before they are rotated; one gain for all heads
    score_scale: ScoreScale = "head"  # scores are divided by the square root of this width
    scale_embeddings: bool = True  # multiply by sqrt(d_model), section 3.4
    share_embeddings: bool = False  # one table for source and target
    tie_projection: bool = False  # the projection is the transposed target embedding
    projection_bias: bool = False
    positions: PositionConfig = field(default_factory=PositionConfig)
    relative_bias: RelativeBiasConfig | None = None
    dropout: float = 0.1
    attention_dropout: float = 0.0
    pad_id: int = 1
    eos_id: int = 2
    unk_id: int = 3
    decoder_start_id: int = 2

    def __post_init__(self) -> None:
        problems = self._problems()
        if problems:
            raise ValueError(_UNUSABLE + "; ".join(problems) + ".")

    def of(self, side: str) -> "ModelConfig":
        """Return the configuration with the sizes of one side, `encoder` or `decoder`, as those of all layers."""
        changes: dict[str, Any] = {}
        for name in _DECODER_SIZES if side == "decoder" else ():
            if (size := getattr(self, f"decoder_{name}")) is not None:
                changes |= {name: size, f"decoder_{name}": None}
        return dataclasses.replace(self, **changes) if changes else self

    @property
    def head_size(self) -> int:
        return self.d_head or self.d_model // self.num_heads

    @property
    def attention_width(self) -> int:
        return self.num_heads * self.head_size

    @property
    def rotary_size(self) -> int:
        return (self.positions.rotary_size or self.head_size) if self.positions.layout == "rotary" else 0

    @property
    def score_factor(self) -> float:
        widths = {"head": self.head_size, "model": self.d_model, "none": 1}
        return 1.0 / math.sqrt(widths[self.score_scale])

    @property
    def state_size(self) -> int:
        """Return the width of a decoder layer's state; 0: it has none, but self-attention."""
        return (self.decoder_d_model or self.d_model) if self.autoregression == "ssru" else 0

    @property
    def has_attention_output_bias(self) -> bool:
        return self.attention_bias if self.attention_output == "same" else self.attention_output == "biased"

    def _problems(self) -> list[str]:
        problems = [*_mistyped(self), *(f"positions.{problem}" for problem in _mistyped(self.positions))]
        if self.relative_bias is not None:
            problems += [f"relative_bias.{problem}" for problem in _mistyped(self.relative_bias)]
        if problems:
            return problems
        if self.d_head is None and self.d_model % self.num_heads:
            problems.append(f"d_model {self.d_model} is not a multiple of num_heads {self.num_heads}")
        if self.attention_output == "none" and self.attention_width != self.d_model:
            problems.append(f"attention_output none needs heads as wide as d_model, not {self.attention_width}")
        if self.relative_bias is not None:
            problems += _bias_problems(self.relative_bias)
            if self.autoregression == "ssru":
                problems.append("relative_bias needs self-attention, which autoregression ssru lacks")
        if self.positions.is_sinusoidal and self.d_model % 2:
            problems.append(f"d_model {self.d_model} is odd, sinusoidal positions need pairs")
        if self.rotary_size % 2 or self.rotary_size > self.head_size:
            problems.append(f"positions rotate {self.rotary_size} of a head's {self.head_size} components, not pairs")
        if self.rotary_size and self.autoregression == "ssru":
            problems.append("positions.layout rotary needs self-attention, which autoregression ssru lacks")
        if self.state_size % STATE_MULTIPLE:
            problems.append(
                f"d_model {self.state_size} is not a multiple of {STATE_MULTIPLE}, as autoregression ssru needs"
            )
        if self.share_embeddings and self.decoder_d_model not in (None, self.d_model):
            problems.append(f"share_embeddings needs a decoder_d_model of {self.d_model}, not {self.decoder_d_model}")
        if self.share_embeddings and self.source_vocabulary_size != self.target_vocabulary_size:
            problems.append("share_embeddings needs vocabularies of the same size")
        if self.positions.base == 0.0:
            problems.append("positions.base is 0, allowed: a number above 0")
        if self.positions.cosine_exponent == "unbracketed" and self.positions.layout != "interleaved":
            problems.append("positions.cosine_exponent unbracketed needs positions.layout interleaved")
        smallest = min(self.source_vocabulary_size, self.target_vocabulary_size)
        # Padding fills rows of both sides; the other ids are the target's.
        sizes = {
            "pad_id": smallest,
            **dict.fromkeys(("eos_id", "unk_id", "decoder_start_id"), self.target_vocabulary_size),
        }
        for name, size in sizes.items():
            if getattr(self, name) >= size:
                problems.append(f"{name} {getattr(self, name)} is outside the vocabulary of {size}")
        for name in ("dropout", "attention_dropout"):
            if not getattr(self, name) < 1.0:
                problems.append(f"{name} is {getattr(self, name)}, allowed: 0 up to below 1")
        if not problems:
            try:
                self.of("decoder")
            except ValueError as error:
                problems.append(f"in the decoder, {str(error).removeprefix(_UNUSABLE).removesuffix('.')}")
        return problems

    def to_document(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "ModelConfig":
        known = {item.name: item for item in dataclasses.fields(cls)}
        unknown = sorted(document.keys() - known.keys())
        required = {name for name, item in known.items() if _is_required(item)}
        missing = sorted(required - document.keys())
        if unknown or missing:
            raise ValueError(f"The model configuration has unknown keys {unknown} and lacks {missing}.")
        values = dict(document)
        for name, kind in (("positions", PositionConfig), ("relative_bias", RelativeBiasConfig)):
            if values.get(name) is not None:
                try:
                    values[name] = kind(**values[name])
                except TypeError as error:
                    allowed = ", ".join(item.name for item in dataclasses.fields(kind))
                    raise ValueError(f"{name} is {values[name]!r:.80}, expected an object of {allowed}.") from error
        return cls(**values)


def _bias_problems(bias: RelativeBiasConfig) -> list[str]:
    """Return a problem unless each direction has buckets of single distances and of longer ones."""
    if bias.num_buckets % 2 == 0 and bias.num_buckets >= 4 and bias.max_distance > bias.num_buckets // 2:
        return []
    return [
        f"relative_bias has {bias.num_buckets} buckets for distances up to {bias.max_distance}; allowed: an even "
        "number from 4, and more than half as many distances"
    ]


def _mistyped(config: ModelConfig | PositionConfig | RelativeBiasConfig) -> list[str]:
    problems = []
    for item in dataclasses.fields(config):
        value, kind = getattr(config, item.name), item.type
        if typing.get_origin(kind) is Literal:
            if value not in (choices := typing.get_args(kind)):
                problems.append(f"{item.name} is {value!r}, allowed: {', '.join(choices)}")
        elif kind is int or (kind == int | None and value is not None):
            lowest = 0 if item.name.endswith("_id") or item.name == "offset" else 1
            highest = _MAX_SIZES.get(item.name, MAX_SIZE)
            if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
                problems.append(f"{item.name} is {value!r}, allowed: a number from {lowest} to {highest}")
        elif kind is float:
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not 0.0 <= value <= _MAX_NUMBER:
                problems.append(f"{item.name} is {value!r}, allowed: a number from 0 to {_MAX_NUMBER:g}")
        elif kind is bool and not isinstance(value, bool):
            problems.append(f"{item.name} is {value!r}, allowed: true, false")
    return problems


def _is_required(item: "dataclasses.Field[Any]") -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
