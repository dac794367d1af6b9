"""Compares an int8 bundle with the model in float: the engine decodes, the model then reads each whole output at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from export.architecture.config import ModelConfig
from export.architecture.streamed import StreamedTransformer
from export.engine_decode import open_engine
from export.importers.imported import ImportedCheckpoint
from export.verification_sentences import Sentence
from export.verify import VerificationError
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from service.domain.translation import FinishReason
from service.engine.generate import sequences_of

# What a quantization of the model stays within, by far, and another model doesn't. See `tests/export/test_quantize.py`.
LEAST_AGREEMENT, MOST_DIVERGENCE = 0.75, 0.5
_BATCH_SIZE = 32
_POSITIONS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Decoded:
    """A sentence, the tokens that int8 chose, the end included, and the sum of their log-probabilities."""

    sentence: Sentence
    output: tuple[int, ...]
    log_prob: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """How near int8 is to the model in float, given the tokens before each position.

    `agreement` is the share of positions at which both choose the same token. `divergence` is the average, over
    sentences, of how much the log-probability of its output differs, per token. `largest_gap` is how much less probable
    a token of int8's is than float's own, in nats, at most.
    """

    num_sentences: int
    num_positions: int
    agreement: float
    divergence: float
    largest_gap: float

    def line(self) -> str:
        """Return a line for the terminal."""
        return (
            f"int8 against float on {self.num_sentences} sentences: the same next token at {self.agreement:.1%} of "
            f"{self.num_positions} positions, log-probabilities {self.divergence:.3f} off per token, "
            f"largest gap {self.largest_gap:.2f}"
        )

    def document(self) -> dict[str, Any]:
        """Return the entry for the manifest."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def decode(directory: Path, manifest: Manifest, sentences: Sequence[Sentence]) -> list[Decoded]:
    """Translate sentences greedily with the engine that will serve the bundle, as many at a time as it has slots."""
    sequences = []
    for each in sentences:
        options = DecodingOptions(
            beam_size=1,
            length_penalty=0.0,  # the score is the log-probability
            num_hypotheses=1,
            max_output_tokens=each.max_output_tokens,
            return_scores=True,
        )
        sequences += sequences_of([(each.source_ids, each.languages.target_prefix_ids)], options)
    eos_id = manifest.tokenizer.eos_id
    with open_engine(directory, manifest) as engine:
        outputs = [best for best, *_ in engine.generate(sequences)]
    return [
        Decoded(
            sentence,
            (*best.token_ids, eos_id) if best.finish_reason is FinishReason.STOP else best.token_ids,
            best.score,
        )
        for sentence, best in zip(sentences, outputs, strict=True)
    ]


def agreement(checkpoint: ImportedCheckpoint, weights: Mapping[str, Tensor], decoded: Iterable[Decoded]) -> Agreement:
    """Compare outputs with the model whose `weights` are in any floating dtype.

    Raises:
        VerificationError: they are not of a quantization of the model.
    """
    config, model = checkpoint.model.config, StreamedTransformer(checkpoint.model.config, weights)
    by_length = sorted((each for each in decoded if each.output), key=lambda each: len(each.sentence.source_ids))
    num_agreed, num_positions, gaps, divergences = 0, 0, [0.0], []
    for start in range(0, len(by_length), _BATCH_SIZE):
        batch = by_length[start : start + _BATCH_SIZE]
        prefixes = [each.sentence.languages.target_prefix_ids for each in batch]
        read = [
            (config.decoder_start_id, *prefix, *each.output[:-1]) for prefix, each in zip(prefixes, batch, strict=True)
        ]
        hidden = model.hidden([each.sentence.source_ids for each in batch], read)
        chosen_from = [row[len(prefix) : len(ids)] for row, prefix, ids in zip(hidden, prefixes, read, strict=True)]
        tokens = torch.tensor([token for each in batch for token in each.output])
        best, own = _log_probs(checkpoint, config, model, torch.cat(chosen_from), tokens)
        gap = best - own
        num_agreed += int((gap <= 0.0).sum())
        num_positions += len(tokens)
        gaps.append(float(gap.max()))
        for each, log_probs in zip(batch, own.split([len(each.output) for each in batch]), strict=True):
            divergences.append(abs(each.log_prob - float(log_probs.sum())) / len(each.output))
    found = Agreement(
        len(by_length),
        num_positions,
        num_agreed / max(num_positions, 1),
        sum(divergences) / max(len(divergences), 1),
        max(gaps),
    )
    if not (found.agreement >= LEAST_AGREEMENT and found.divergence <= MOST_DIVERGENCE):
        raise VerificationError(
            f"{found.line()}; allowed are {LEAST_AGREEMENT:.0%} or more of the positions and {MOST_DIVERGENCE} or less "
            "per token"
        )
    return found


def _log_probs(
    checkpoint: ImportedCheckpoint, config: ModelConfig, model: StreamedTransformer, hidden: Tensor, tokens: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the log-probability of the best allowed token, and of the given one, at each of (n, d) places: (n,)."""
    suppressed = torch.tensor(checkpoint.suppressed_ids, dtype=torch.int64)
    best, own, totals = (torch.full((len(hidden),), -torch.inf) for _ in range(3))
    begin = 0
    for logits in model.logits(hidden):
        here = suppressed[(suppressed >= begin) & (suppressed < begin + logits.shape[1])] - begin
        allowed = logits.index_fill(1, here, -torch.inf)
        counted = allowed if checkpoint.renormalizes else logits
        totals = torch.logaddexp(totals, counted.logsumexp(dim=-1))
        best = torch.maximum(best, allowed.max(dim=-1).values)
        is_here = (tokens >= begin) & (tokens < begin + logits.shape[1])
        places = (tokens - begin).clamp(0, logits.shape[1] - 1)
        own = torch.where(is_here, logits.gather(1, places[:, None])[:, 0], own)
        begin += logits.shape[1]
    return best - totals, own - totals
