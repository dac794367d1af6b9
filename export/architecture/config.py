"""`ModelConfig`: every choice that makes one encoder-decoder Transformer differ from another."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

Activation = Literal["relu", "gelu", "silu"]
NormPlacement = Literal["pre", "post"]


@dataclass(frozen=True, slots=True)
class PositionConfig:
    """How sinusoidal positions are laid out.

    `interleaved` puts sine and cosine side by side as the paper's section 3.5 writes them; `halves` puts all sines
    first, as Marian and fairseq (M2M100) do. The wavelength exponent runs over `i / (d/2)` in the paper and over
    `i / (d/2 - 1)` in fairseq (`fairseq_exponent`). `offset` is the position number of the first token.
    """

    layout: Literal["interleaved", "halves"] = "interleaved"
    fairseq_exponent: bool = False
    base: float = 10000.0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes and choices of an encoder-decoder Transformer, in the paper's terms where it has one.

    Raises:
        ValueError: all the problems with the given values, in one message.
    """

    source_vocabulary_size: int
    target_vocabulary_size: int
    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    max_source_positions: int = 512
    max_target_positions: int = 512
    activation: Activation = "relu"
    norm: NormPlacement = "post"
    final_norm: bool = False  # a layer norm after the last layer of each stack; usual with pre-norm
    layer_norm_epsilon: float = 1e-5
    attention_bias: bool = True
    scale_embeddings: bool = True  # multiply by sqrt(d_model), section 3.4
    share_embeddings: bool = False  # one table for source and target
    tie_projection: bool = False  # the projection is the target embedding, transposed
    projection_bias: bool = False
    positions: PositionConfig = field(default_factory=PositionConfig)
    dropout: float = 0.1
    attention_dropout: float = 0.0
    pad_id: int = 1
    eos_id: int = 2
    unk_id: int = 3
    decoder_start_id: int = 2

    def __post_init__(self) -> None:
        problems = self._problems()
        if problems:
            raise ValueError("The model configuration is not usable: " + "; ".join(problems) + ".")

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.d_model // self.num_heads

    def _problems(self) -> list[str]:
        problems = []
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if item.type == "int" or item.type is int:
                lowest = 0 if item.name.endswith("_id") else 1
                if not isinstance(value, int) or value < lowest:
                    problems.append(f"{item.name} is {value!r}, allowed is a number from {lowest}")
        if problems:
            return problems
        if self.d_model % self.num_heads:
            problems.append(f"d_model {self.d_model} is not a multiple of num_heads {self.num_heads}")
        if self.d_model % 2:
            problems.append(f"d_model {self.d_model} is odd, sinusoidal positions need pairs")
        if self.share_embeddings and self.source_vocabulary_size != self.target_vocabulary_size:
            problems.append("share_embeddings needs vocabularies of the same size")
        if self.activation not in ("relu", "gelu", "silu"):
            problems.append(f"activation is {self.activation!r}, allowed are relu, gelu, silu")
        if self.norm not in ("pre", "post"):
            problems.append(f"norm is {self.norm!r}, allowed are pre, post")
        if self.positions.layout not in ("interleaved", "halves"):
            problems.append(f"positions.layout is {self.positions.layout!r}, allowed are interleaved, halves")
        smallest = min(self.source_vocabulary_size, self.target_vocabulary_size)
        for name in ("pad_id", "eos_id", "unk_id", "decoder_start_id"):
            if getattr(self, name) >= smallest:
                problems.append(f"{name} {getattr(self, name)} is outside the vocabulary of {smallest}")
        for name in ("dropout", "attention_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                problems.append(f"{name} is {getattr(self, name)}, allowed is 0 up to below 1")
        return problems

    def to_document(self) -> dict[str, Any]:
        """The configuration as plain JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "ModelConfig":
        """Build a configuration from parsed JSON.

        Raises:
            ValueError: unknown or missing keys, or unusable values; all are listed.
        """
        known = {item.name: item for item in dataclasses.fields(cls)}
        unknown = sorted(document.keys() - known.keys())
        required = {name for name, item in known.items() if _is_required(item)}
        missing = sorted(required - document.keys())
        if unknown or missing:
            raise ValueError(f"The model configuration has unknown keys {unknown} and lacks {missing}.")
        values = dict(document)
        if "positions" in values:
            try:
                values["positions"] = PositionConfig(**values["positions"])
            except TypeError as error:
                raise ValueError(f"The model configuration's positions are not usable: {error}.") from error
        return cls(**values)


def _is_required(item: "dataclasses.Field[Any]") -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
