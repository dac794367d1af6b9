"""The interface of search strategies: what they need from a run, and how they process its output."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from service.engine.batch import Batch
from service.engine.runner import Fetch, RunOutput
from service.engine.sequence import DecodedHypothesis, Sequence


@dataclass(slots=True)
class Outcome:
    """The results of a run.

    `failed` are sequences for which the model produced NaN. `copies` (source row, target row) are beams that continue
    another beam: their cache must be copied before the next run. `num_generated` counts one token per sequence and
    step, however wide its beam, without forced ones; `num_row_steps` the rows of every step.
    """

    finished: list[tuple[Sequence, tuple[DecodedHypothesis, ...]]] = field(default_factory=list)
    failed: list[Sequence] = field(default_factory=list)
    copies: list[tuple[int, int]] = field(default_factory=list)
    num_generated: int = 0
    num_steps: int = 0
    num_row_steps: int = 0


class Strategy(Protocol):
    """Continues the sequences that joined it; between runs it may keep state for each.

    Tokens reach the batch only through `Batch.append`, which advances the rows' lengths.
    """

    @property
    def sequences(self) -> Iterable[Sequence]:
        """Return the sequences that joined and have not left."""
        ...

    def join(self, sequence: Sequence) -> None:
        """Add a sequence that has rows in the batch."""
        ...

    def leave(self, sequence: Sequence) -> None:
        """Remove a sequence, however it ended."""
        ...

    def fetch(self, batch: Batch) -> Fetch:
        """Return what a run has to compute for the sequences; called again only after a sequence joins or leaves."""
        ...

    def max_steps(self, batch: Batch) -> int:
        """Return how many steps a run may make before the next token must be chosen here."""
        ...

    def advance(self, batch: Batch, output: RunOutput, outcome: Outcome) -> None:
        """Append each sequence's tokens to its rows and add to `outcome`; no sequence leaves the batch."""
        ...

    def certain(self, batch: Batch, sequence: Sequence) -> tuple[int, ...]:
        """Return the tokens that the best hypothesis will begin with, without the model's prefix; the result only
        grows."""
        ...
