"""Compares an int8 bundle with the model: the engine decodes, then the model reads each whole output at once.

It does so in float, for the quality, and rounded as in int8, to see whether the bundle is a quantization of this model:
then it is hardly farther from the rounded model than that is from the one in float.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy import typing as npt

from export.architecture.stored import Array
from export.architecture.streamed import StreamedTransformer
from export.engine_decode import open_engine
from export.importers.imported import ImportedCheckpoint
from export.verification_sentences import Sentence
from export.verify import VerificationError
from service.bundle.manifest import Manifest
from service.domain.errors import counted
from service.domain.options import DecodingOptions
from service.domain.translation import FinishReason
from service.engine.generate import sequences_of

# How much farther from the rounded model it may be than that is from the one in float: shares of positions, and nats
# per token. With large random weights, a last bit that is rounded otherwise changes all that follows.
FEW_POSITIONS, LITTLE, FARTHER = 0.03, 0.005, 1.5
# Below that, or above, int8 is poor: share of positions, nats per token, nats of one token. Trained models have 0.96 to
# 0.98, 0.01 and 0.3.
_LEAST_AGREEMENT, _MOST_DIVERGENCE, _LARGEST_GAP = 0.92, 0.1, 5.0
POOR = (
    "int8 is poor for this model or these texts: trained models agree at 96 % of positions and more, 0.01 off, with a "
    "largest gap of 0.3; compare texts of its own kind with --check FILE, or convert it with --precision float32"
)
_BATCH_SIZE = 32

Floats = npt.NDArray[np.floating]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A sentence, the tokens that int8 chose, the end included, and the sum of their log-probabilities."""

    sentence: Sentence
    output: tuple[int, ...]
    log_prob: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of int8 with the model in float, given the tokens before each position.

    `agreement` is the share of positions with the same choice. `divergence` is the mean, over sentences, of the
    difference of the output's log-probability per token. `largest_gap` is how much less probable a token of int8's is
    than float's, in nats, at most. `with_rounded` and `from_rounded` are the first two for the rounded model.
    """

    num_sentences: int
    num_positions: int
    agreement: float
    divergence: float
    largest_gap: float
    with_rounded: float
    from_rounded: float

    @property
    def is_poor(self) -> bool:
        is_near = self.divergence <= _MOST_DIVERGENCE and self.largest_gap <= _LARGEST_GAP
        return self.agreement < _LEAST_AGREEMENT or not is_near

    def line(self) -> str:
        return (
            f"int8 against float on {counted(self.num_sentences, 'sentence')}: the same next token at "
            f"{self.agreement:.1%} of {self.num_positions} positions, "
            f"log-probabilities {self.divergence:.3f} off per token, "
            f"largest gap {self.largest_gap:.2f}; against the rounded model {self.with_rounded:.1%}, "
            f"{self.from_rounded:.3f}"
        )

    def document(self) -> dict[str, Any]:
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


def agreement(checkpoint: ImportedCheckpoint, weights: Mapping[str, Array], decoded: Iterable[Decoded]) -> Agreement:
    """Compare outputs with the model whose `weights` are in any floating dtype."""
    by_length = sorted((each for each in decoded if each.output), key=lambda each: len(each.sentence.source_ids))
    lengths = np.array([len(each.output) for each in by_length])
    begins = np.cumsum(lengths) - lengths
    tokens = np.array([token for each in by_length for token in each.output])
    exact, rounded = (
        _along(checkpoint, StreamedTransformer(checkpoint.model.config, weights, rounds=rounds), by_length)
        for rounds in (False, True)
    )
    own = np.array([each.log_prob / len(each.output) for each in by_length])

    def per_token(along: "_Along") -> Floats:
        means: Floats = np.add.reduceat(along.own, begins) / lengths
        return means

    found = Agreement(
        len(by_length),
        len(tokens),
        agreement=_share(exact.best_ids == tokens),
        divergence=float(np.abs(own - per_token(exact)).mean()),
        largest_gap=float((exact.best - exact.own).max()),
        with_rounded=_share(rounded.best_ids == tokens),
        from_rounded=float(np.abs(own - per_token(rounded)).mean()),
    )
    least = _share(rounded.best_ids == exact.best_ids) - FEW_POSITIONS - len(tokens) ** -0.5
    most = FARTHER * float(np.abs(per_token(rounded) - per_token(exact)).mean()) + LITTLE
    if not (found.with_rounded >= least and found.from_rounded <= most):
        raise VerificationError(
            f"{found.line()}; allowed for that are at least {least:.1%} and at most {most:.3f}: this is not a "
            "quantization of the model"
        )
    return found


class _Along(NamedTuple):
    """A model's predictions at each of n positions of outputs: its best token, its and the output's log-probability."""

    best_ids: Ids
    best: Floats
    own: Floats


def _along(checkpoint: ImportedCheckpoint, model: StreamedTransformer, decoded: Sequence[Decoded]) -> _Along:
    parts = []
    for start in range(0, len(decoded), _BATCH_SIZE):
        batch = decoded[start : start + _BATCH_SIZE]
        prefixes = [each.sentence.languages.target_prefix_ids for each in batch]
        start_id = checkpoint.tokenizer.decoder_start_id
        read = [(start_id, *prefix, *each.output[:-1]) for prefix, each in zip(prefixes, batch, strict=True)]
        hidden = model.hidden([each.sentence.source_ids for each in batch], read)
        before = [row[len(prefix) : len(ids)] for row, prefix, ids in zip(hidden, prefixes, read, strict=True)]
        tokens = np.array([token for each in batch for token in each.output])
        parts.append(_log_probs(checkpoint, model, np.concatenate(before), tokens))
    return _Along(*map(np.concatenate, zip(*parts, strict=True)))


def _share(agrees: npt.NDArray[np.bool_]) -> float:
    return float(agrees.mean())


def _log_probs(checkpoint: ImportedCheckpoint, model: StreamedTransformer, hidden: Floats, tokens: Ids) -> _Along:
    """Return what follows (n, d), of which `tokens` (n,) are the output."""
    suppressed, rows = np.array(checkpoint.suppressed_ids, dtype=np.int64), np.arange(len(hidden))
    best, own, totals = (np.full(len(hidden), -np.inf, np.float32) for _ in range(3))
    best_ids, begin = np.zeros_like(tokens), 0
    for logits in model.logits(hidden):
        end = begin + logits.shape[1]
        allowed = logits.copy()
        allowed[:, suppressed[(suppressed >= begin) & (suppressed < end)] - begin] = -np.inf
        totals = np.logaddexp(totals, _log_total(allowed if checkpoint.renormalizes else logits))
        ids = allowed.argmax(axis=1)
        values = allowed[rows, ids]
        best_ids = np.where(values > best, ids + begin, best_ids)
        best = np.maximum(best, values)
        is_here = (tokens >= begin) & (tokens < end)
        own = np.where(is_here, logits[rows, (tokens - begin).clip(0, logits.shape[1] - 1)], own)
        begin = end
    return _Along(best_ids, best - totals, own - totals)


def _log_total(logits: Floats) -> Floats:
    """Return the logarithm of the sum of each row's exponentials; minus infinity if all are suppressed."""
    largest = np.maximum(logits.max(axis=1), np.finfo(np.float32).min)
    with np.errstate(divide="ignore"):
        total: Floats = np.log(np.exp(logits - largest[:, None]).sum(axis=1)) + largest
    return total
