"""Our weights as a transformers M2M100 model: an implementation that shares no code with ours."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import M2M100Config, M2M100ForConditionalGeneration

from export.architecture import ModelConfig, PositionConfig
from export.architecture.transformer import Transformer
from service.domain.options import DecodingOptions

POSITIONS = PositionConfig(layout="halves", fairseq_exponent=True, base=10000.0, offset=2)

_ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
_FEED_FORWARD = {
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}


@dataclass(frozen=True)
class ReferenceOutput:
    """The output of `generate` for one source: hypotheses best first, without start, padding and end ids."""

    token_ids: list[tuple[int, ...]]
    scores: list[float]


def to_m2m100(model: Transformer) -> Any:
    """Return the same model as transformers' `M2M100ForConditionalGeneration`, in evaluation mode.

    Raises:
        ValueError: the model uses options that M2M100 does not support; all are listed.
    """
    config = model.config
    problems = _inexpressible(config)
    if problems:
        raise ValueError(f"M2M100 can't express: {', '.join(problems)}.")
    reference: Any = M2M100ForConditionalGeneration(
        M2M100Config(
            vocab_size=config.target_vocabulary_size,
            d_model=config.d_model,
            encoder_layers=config.num_encoder_layers,
            decoder_layers=config.num_decoder_layers,
            encoder_attention_heads=config.num_heads,
            decoder_attention_heads=config.num_heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.decoder_d_ff or config.d_ff,
            encoder_layerdrop=0.0,
            decoder_layerdrop=0.0,
            activation_function=config.activation,
            scale_embedding=config.scale_embeddings,
            max_position_embeddings=min(config.max_source_positions, config.max_target_positions),
            pad_token_id=config.pad_id,
            bos_token_id=0,
            eos_token_id=config.eos_id,
            decoder_start_token_id=config.decoder_start_id,
            tie_word_embeddings=True,
        )
    )
    weights = dict(_renamed(model.weights()))
    missing, unexpected = reference.load_state_dict(weights, strict=False)
    tied = {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"}
    assert set(missing) <= tied, missing
    assert not unexpected, unexpected
    reference.tie_weights()
    return reference.eval()


@torch.no_grad()
def generate(
    reference: Any, sources: Sequence[Sequence[int]], options: DecodingOptions, suppressed_ids: Sequence[int]
) -> list[ReferenceOutput]:
    """Translate a padded batch with transformers' own greedy or beam search."""
    pad_id, eos_id = reference.config.pad_token_id, reference.config.eos_token_id
    width = max(map(len, sources))
    padded = torch.tensor([[*source, *[pad_id] * (width - len(source))] for source in sources])
    live = torch.tensor([[1] * len(source) + [0] * (width - len(source)) for source in sources])
    output = reference.generate(
        input_ids=padded,
        attention_mask=live,
        do_sample=False,
        num_beams=options.beam_size,
        num_return_sequences=options.num_hypotheses,
        length_penalty=options.length_penalty,
        early_stopping=False,
        max_new_tokens=options.max_output_tokens,
        max_length=None,
        suppress_tokens=list(suppressed_ids) or None,
        forced_eos_token_id=None,
        return_dict_in_generate=True,
        output_scores=True,
    )
    rows = [_trimmed(row.tolist()[1:], pad_id, eos_id) for row in output.sequences]
    scores = getattr(output, "sequences_scores", None)
    values = scores.tolist() if scores is not None else [float("nan")] * len(rows)
    n = options.num_hypotheses
    return [ReferenceOutput(rows[i : i + n], values[i : i + n]) for i in range(0, len(rows), n)]


@torch.no_grad()
def logits_along(reference: Any, source: Sequence[int], output: Sequence[int]) -> Tensor:
    """Return the logits (T + 1, V) from which `output` (T tokens) and its successor are chosen."""
    start = reference.config.decoder_start_token_id
    result = reference(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([[start, *output]]))
    logits: Tensor = result.logits[0]
    return logits


def _inexpressible(config: ModelConfig) -> list[str]:
    expected: dict[str, Any] = {
        "norm": "pre",
        "final_norm": True,
        "layer_norm_epsilon": 1e-5,
        "attention_bias": True,
        "share_embeddings": True,
        "tie_projection": True,
        "projection_bias": False,
        "positions": POSITIONS,
    }
    return [f"{name} {getattr(config, name)!r}" for name, value in expected.items() if getattr(config, name) != value]


def _renamed(weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    for name, value in weights.items():
        if name == "encoder.embedding.tokens.weight":
            yield "model.shared.weight", value
            continue
        stack, _, rest = name.partition(".")
        if rest.startswith("final_norm."):
            yield f"model.{stack}.layer_norm.{rest.rpartition('.')[2]}", value
            continue
        layers, number, rest = rest.split(".", 2)
        part, _, kind = rest.rpartition(".")
        yield f"model.{stack}.{layers}.{number}.{_part(part)}.{kind}", value


def _part(part: str) -> str:
    if part in _FEED_FORWARD:
        return _FEED_FORWARD[part]
    module, _, rest = part.partition(".")
    theirs = "encoder_attn" if module.startswith("cross_attention") else "self_attn"
    return f"{theirs}_layer_norm" if rest == "norm" else f"{theirs}.{_ATTENTION[rest]}"


def _trimmed(row: list[int], pad_id: int, eos_id: int) -> tuple[int, ...]:
    """Remove the padding of finished rows, for which M2M100's generation may use the end id too."""
    ids = row[: row.index(eos_id)] if eos_id in row else row
    return tuple(token_id for token_id in ids if token_id != pad_id)
