"""Measures the quality lost by a precision: the same sentences translated by both bundles, scored and compared."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF


@dataclass(frozen=True, slots=True)
class Quality:
    """Scores (0 to 100) of greedy translations against the references, and the share with the same tokens as float32.

    `alignment` is the share of identical pieces in sources and translations that point at each other, if the bundle has
    an alignment graph.
    """

    lines: int
    bleu: float
    bleu_float32: float
    chrf: float
    chrf_float32: float
    identical: float
    activation_ranges: str
    cpu: str  # other processors may round differently
    alignment: float | None = None
    alignment_float32: float | None = None

    def document(self) -> dict[str, Any]:
        """Return the entry for the manifest."""
        return asdict(self)

    def line(self) -> str:
        """Return a line for the terminal."""
        scored = (
            f"{self.lines} sentences: BLEU {self.bleu:.2f} (float32 {self.bleu_float32:.2f}), "
            f"chrF {self.chrf:.2f} ({self.chrf_float32:.2f}), {self.identical:.1%} identical"
        )
        if self.alignment is None or self.alignment_float32 is None:
            return scored
        return f"{scored}, {self.alignment:.1%} of identical pieces aligned ({self.alignment_float32:.1%})"


def scores(outputs: Sequence[str], references: Sequence[str]) -> tuple[float, float]:
    """Return corpus BLEU and chrF to two places; more would be noise."""
    bleu = BLEU().corpus_score(list(outputs), [list(references)]).score
    chrf = CHRF().corpus_score(list(outputs), [list(references)]).score
    return round(bleu, 2), round(chrf, 2)
