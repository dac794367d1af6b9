"""The names of a notebook's state dict and ours: one table for the whole model, one per kind of layer."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from export.architecture import ModelConfig
from export.architecture.names import DECODER_TABLE, PROJECTION
from export.architecture.transformer import Transformer
from export.importers.state_dict.attention import FORMS, AttentionForm, AttentionKind
from export.importers.state_dict.parts import describe

# Ours -> theirs, by the names in document 002.
MODEL = {
    "encoder.embedding.tokens": "source_embedding.embeddings",
    "decoder.embedding.tokens": "target_embedding.embeddings",
    "encoder.final_norm": "encoder.normalize",
    "decoder.final_norm": "decoder.normalize",
    "projection": "projection_layer.linear_layer",
}
STACKS = {"encoder": "encoder.encoder_list", "decoder": "decoder.decoder_list"}
POSITION_TABLES = (  # source and target; buffers, which a state dict may lack
    "source_positional_encoding.positional_embeddings",
    "target_positional_encoding.positional_embeddings",
)
SCALAR_NORM = {"gain": "aplha", "bias": "beta"}
_ATTENTION = re.compile(r"(?:encoder\.encoder_list|decoder\.decoder_list)\.\d+\.(?:self_|cross_|)attention\.(.+)")


@dataclass(frozen=True, slots=True)
class Block:
    """Ours -> theirs inside a layer of either stack."""

    encoder: dict[str, str]
    decoder: dict[str, str]


RESIDUAL_BLOCK = Block(  # 002
    encoder={
        "self_attention": "self_attention",
        "self_attention_residual.norm": "skip_connections.0.normalize",
        "feed_forward.inner": "feed_forward_block.linear_layer1",
        "feed_forward.outer": "feed_forward_block.linear_layer2",
        "feed_forward_residual.norm": "skip_connections.1.normalize",
    },
    decoder={
        "self_attention": "self_attention",
        "self_attention_residual.norm": "residual_connection.0.normalize",
        "cross_attention": "cross_attention",
        "cross_attention_residual.norm": "residual_connection.1.normalize",
        "feed_forward.inner": "feed_forward_layers.linear_layer1",
        "feed_forward.outer": "feed_forward_layers.linear_layer2",
        "feed_forward_residual.norm": "residual_connection.2.normalize",
    },
)
NUMBERED_BLOCK = Block(  # 004, which describes no decoder: cross-attention is numbered in between
    encoder={
        "self_attention": "attention",
        "self_attention_residual.norm": "norm_1",
        "feed_forward.inner": "ff.0",
        "feed_forward.outer": "ff.2",
        "feed_forward_residual.norm": "norm_2",
    },
    decoder={
        "self_attention": "attention",
        "self_attention_residual.norm": "norm_1",
        "cross_attention": "cross_attention",
        "cross_attention_residual.norm": "norm_2",
        "feed_forward.inner": "ff.0",
        "feed_forward.outer": "ff.2",
        "feed_forward_residual.norm": "norm_3",
    },
)


@dataclass(frozen=True, slots=True)
class Naming:
    """The naming scheme of one state dict."""

    form: AttentionForm
    block: Block

    def choices(self, weights: Mapping[str, Tensor]) -> dict[str, Any]:
        table, projection = _weight_of(DECODER_TABLE), _weight_of(PROJECTION)
        return {
            **self.form.choices(_attention_names(weights)),
            "layer_norm": "scalar" if any(name.endswith(f".{SCALAR_NORM['gain']}") for name in weights) else "vector",
            "final_norm": any(name.startswith(f"{MODEL['encoder.final_norm']}.") for name in weights),
            "projection_bias": f"{MODEL['projection']}.bias" in weights,
            "tie_projection": {table, projection} <= weights.keys() and same(weights[table], weights[projection]),
        }

    def shapes(self, model: Transformer) -> dict[str, tuple[int, ...]]:
        """Return every name in the state dict of such a model with its shape; shared weights under one name only."""
        kept = model.weights()
        shapes = {theirs: tuple(kept[ours].shape) for ours, theirs in self._single(model).items()}
        for _, theirs in self._attentions(model.config):
            shapes |= {f"{theirs}.{name}": shape for name, shape in self.form.shapes(model.config).items()}
        return shapes

    def shared(self, model: Transformer) -> dict[str, str]:
        return {_weight_of(ours): _weight_of(kept) for ours, kept in model.shared_names().items()}

    def ours(self, weights: Mapping[str, Tensor], model: Transformer) -> dict[str, Tensor]:
        renamed = {ours: weights[theirs] for ours, theirs in self._single(model).items()}
        for ours, theirs in self._attentions(model.config):
            parts = {name: weights[f"{theirs}.{name}"] for name in self.form.shapes(model.config)}
            laid_out = self.form.laid_out(parts, model.config.num_heads)
            renamed |= {f"{ours}.{name}": tensor for name, tensor in laid_out.items()}
        return renamed

    def _single(self, model: Transformer) -> dict[str, str]:
        """Return ours -> theirs for parameters that are one tensor in both: all but attention's."""
        kept = model.weights().keys()
        inner = SCALAR_NORM if model.config.layer_norm == "scalar" else {}
        return {
            f"{ours}.{name}": f"{theirs}.{inner.get(name, name) if ours.endswith('norm') else name}"
            for ours, theirs in self._modules(model.config)
            if not ours.endswith("attention")
            for name, _ in model.get_submodule(ours).named_parameters()
            if f"{ours}.{name}" in kept
        }

    def _attentions(self, config: ModelConfig) -> Iterator[tuple[str, str]]:
        return ((ours, theirs) for ours, theirs in self._modules(config) if ours.endswith("attention"))

    def _modules(self, config: ModelConfig) -> Iterator[tuple[str, str]]:
        yield from MODEL.items()
        stacks = (
            ("encoder", self.block.encoder, config.num_encoder_layers),
            ("decoder", self.block.decoder, config.num_decoder_layers),
        )
        for stack, parts, num_layers in stacks:
            for layer in range(num_layers):
                for ours, theirs in parts.items():
                    yield f"{stack}.layers.{layer}.{ours}", f"{STACKS[stack]}.{layer}.{theirs}"


def find_naming(names: Iterable[str], said: AttentionKind | None) -> Naming:
    """Determine from a state dict's names which document it follows; `said` is the user's choice of attention."""
    names = list(names)
    found = _attention_names(names)
    forms = [form for form in FORMS if form.mark in found]
    if not forms:
        known = ", ".join(dict.fromkeys(form.mark for form in FORMS))
        nothing = f"no layer in {' or '.join(STACKS.values())} has a self_attention or attention with one of {known}"
        raise ValueError(describe(names) or nothing)
    for stack, path in STACKS.items():
        if not any(name.startswith(f"{path}.") for name in names):
            raise ValueError(
                f"it holds no {stack}: no name begins with {path}; save the state_dict() of the whole model"
            )
    fitting = [form for form in forms if said in (None, form.kind)]
    kinds = " or ".join(dict.fromkeys(form.kind for form in forms))
    if not fitting:
        raise ValueError(f"--config says attention {said!r}, but {forms[0].mark} is the name of {kinds} attention")
    if said is None and len({form.kind for form in forms}) > 1:
        raise ValueError(f"{forms[0].mark} may be {kinds}: say which as attention in --config")
    is_numbered = any(re.search(r"_list\.\d+\.norm_1\.", name) for name in names)
    return Naming(fitting[0], NUMBERED_BLOCK if is_numbered else RESIDUAL_BLOCK)


def same(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors of any dtypes hold the same numbers."""
    return torch.equal(one.double(), other.double())


def _attention_names(names: Iterable[str]) -> set[str]:
    return {match[1] for name in names if (match := _ATTENTION.fullmatch(name))}


def _weight_of(ours: str) -> str:
    return f"{MODEL[ours.removesuffix('.weight')]}.weight"
