"""The interface of the engine's computation: encodes new sequences, steps the batch, stores each row's cache."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy import typing as npt


@dataclass(frozen=True, slots=True)
class RunnerSpec:
    """A runner's limits, and the model's special tokens."""

    max_slots: int
    kv_capacity: int  # most tokens per row, forced prefix included
    max_source_tokens: int
    eos_id: int
    decoder_start_id: int
    bytes_per_slot: int  # device memory per row
    max_steps: int = 1  # per run
    has_logits: bool = False  # whether runs can return them
    renormalizes: bool = False  # transformers' `renormalize_logits`: scores are normalized again once they are changed


class RunTerminated(Exception):
    """A run did not finish because of `Runner.terminate`: intended, so not an error."""


class EncodeJob(NamedTuple):
    """One source to encode, and the rows that get its cross-attention keys and values."""

    source_ids: Sequence[int]
    rows: Sequence[int]


class Fetch(NamedTuple):
    """The outputs that a run has to compute. `num_candidates` is 0 if none are needed."""

    next_ids: bool
    next_log_probs: bool
    num_candidates: int
    logits: bool = False
    log_totals: bool = False


class Rows(NamedTuple):
    """The n live rows as a run finds them; all (n,), as in `bundle.graph_io` except `limits`."""

    token_ids: npt.NDArray[np.int64]  # the input of the first step
    lengths: npt.NDArray[np.int32]  # tokens in the self-attention cache
    source_lengths: npt.NDArray[np.int32]
    limits: npt.NDArray[np.int32]  # the length at which a row ends


@dataclass(frozen=True, slots=True)
class RunOutput:
    """The outputs of a run of `num_steps` (K) steps for the n live rows, `None` if not requested; valid until the next
    run.

    A row may end within the run: by the end-of-sentence token, at its limit, or by NaN. Values after its end are
    undefined.
    """

    next_ids: npt.NDArray[np.int64] | None  # (n, K); NO_TOKEN for a row that has NaN
    next_log_probs: npt.NDArray[np.float32] | None  # (n, K)
    candidate_ids: npt.NDArray[np.int64] | None  # (n, C), best first, for a run of one step
    candidate_log_probs: npt.NDArray[np.float32] | None  # (n, C); C is less than requested only for tiny vocabularies
    num_steps: int = 1
    logits: npt.NDArray[np.float32] | None = None  # (n, V), for a run of one step
    log_totals: npt.NDArray[np.float32] | None = None  # (n,), for a run of one step


class Runner(Protocol):
    """Computes without making decisions. Rows [0, n) are live; the engine decides what moves where.

    All methods except `terminate` are called on the engine's thread. A method that raises has failed for all sequences
    of the call, and the runner stays usable.
    """

    @property
    def spec(self) -> RunnerSpec:
        """Return the limits and special tokens, which never change."""
        ...

    def encode(self, jobs: Sequence[EncodeJob]) -> list[bool]:
        """Run the encoder over all jobs at once and fill their rows, which follow the live rows.

        Returns:
            Per job, whether the encoder's output is finite; if not, the job's rows are unusable until cleared.
        """
        ...

    def run(self, rows: Rows, fetch: Fetch, max_steps: int) -> RunOutput:
        """Run the decoder for one or more tokens of each live row, up to `max_steps`, which is 1 if candidates or
        logits are requested. In every step but the first, a row's input is the token that the previous step chose.

        Each input is appended to its row's cache. Repeating a run overwrites the same positions.
        """
        ...

    def move(self, source_row: int, target_row: int, length: int) -> None:
        """Move a row with `length` live tokens to a free row."""
        ...

    def reorder(self, source_rows: Sequence[int], target_rows: Sequence[int], lengths: Sequence[int]) -> None:
        """Overwrite beams with copies of other beams of the same sequence; no row is both a source and a target."""
        ...

    def clear(self, rows: Sequence[int]) -> None:
        """Zero rows whose sequence failed, so that nothing of it reaches the rows' next owner."""
        ...

    def idle(self) -> None:
        """Leave all threads to the model's other runners until the next `encode`: no row is live."""
        ...

    def reset(self) -> None:
        """Clear all rows and undo `terminate`: called once by each engine that starts on this runner."""
        ...

    def terminate(self) -> None:
        """Make the run under way and all later ones fail soon, until `reset`. Thread-safe."""
        ...
