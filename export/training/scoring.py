"""BLEU and chrF of a checkpoint on held-out pairs, by part, with sacrebleu's signatures."""

from collections.abc import Sequence
from dataclasses import dataclass

import sentencepiece
import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from export.architecture.transformer import Transformer
from export.training.corpus import Pair
from export.training.evaluation import translate_greedily


@dataclass(frozen=True, slots=True)
class Score:
    """One row of the score table."""

    part: str
    lines: int
    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


def score_by_part(
    model: Transformer, tokenizer: sentencepiece.SentencePieceProcessor, pairs: Sequence[Pair], device: torch.device
) -> tuple[list[Score], list[str]]:
    """Translate all sources greedily and score each part separately; return the translations as well."""
    outputs = translate_greedily(model, tokenizer, [pair.source for pair in pairs], device)
    scores = []
    for part in dict.fromkeys(pair.part for pair in pairs):
        rows = [i for i, pair in enumerate(pairs) if pair.part == part]
        scores.append(score(part, [outputs[i] for i in rows], [pairs[i].target for i in rows]))
    return scores, outputs


def score(part: str, outputs: list[str], references: list[str]) -> Score:
    bleu, chrf = BLEU(), CHRF()
    return Score(
        part=part,
        lines=len(outputs),
        bleu=bleu.corpus_score(outputs, [references]).score,
        chrf=chrf.corpus_score(outputs, [references]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )
