"""What the engine asks of whatever computes: encode newcomers, step the batch, keep each row's memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy import typing as npt


@dataclass(frozen=True, slots=True)
class RunnerSpec:
    """What a runner can hold, and the model's special tokens."""

    max_slots: int
    kv_capacity: int  # most tokens per row, forced prefix included
    max_source_tokens: int
    eos_id: int
    decoder_start_id: int
    bytes_per_slot: int  # what a row takes of the device's memory
    max_steps: int = 1  # that one run can make


class RunTerminated(Exception):
    """A run did not finish because of `Runner.terminate`: asked for, so no fault."""


class EncodeJob(NamedTuple):
    """One source to encode, and the rows that get its cross-attention keys and values."""

    source_ids: Sequence[int]
    rows: Sequence[int]


class Fetch(NamedTuple):
    """What a run has to compute. `num_candidates` is 0 where nobody needs any."""

    next_ids: bool
    next_log_probs: bool
    num_candidates: int


class Rows(NamedTuple):
    """The n live rows as a run finds them; all (n,), as in `bundle.graph_io` but for `limits`."""

    token_ids: npt.NDArray[np.int64]  # the input of the first step
    lengths: npt.NDArray[np.int32]  # tokens in the self-attention cache
    source_lengths: npt.NDArray[np.int32]
    limits: npt.NDArray[np.int32]  # the length at which a row ends


@dataclass(frozen=True, slots=True)
class RunOutput:
    """What a run of `num_steps` steps (K) computed for the n live rows: `None` where it was not asked for. Valid until
    the next run.

    A row may end within the run: by the end of the sentence, at its limit, or by NaN. What is behind is undefined.
    """

    next_ids: npt.NDArray[np.int64] | None  # (n, K); NO_TOKEN for a row that has NaN
    next_log_probs: npt.NDArray[np.float32] | None  # (n, K)
    candidate_ids: npt.NDArray[np.int64] | None  # (n, C) of a run of one step, best first; C is less than asked
    candidate_log_probs: npt.NDArray[np.float32] | None  # (n, C)               only for tiny vocabularies
    num_steps: int = 1


class Runner(Protocol):
    """Computes and never decides. Rows [0, n) are live; the engine says what moves where.

    All but `terminate` are called on the engine's thread. A method that raises has failed for all sequences of the
    call, and the runner stays usable.
    """

    @property
    def spec(self) -> RunnerSpec:
        """Limits and special tokens; never change."""
        ...

    def encode(self, jobs: Sequence[EncodeJob]) -> list[bool]:
        """Run the encoder over all jobs at once and fill their rows, which lie behind the rows that are live already.

        Returns:
            Per job, whether the encoder gave numbers; the rows of a job that did not are unusable until cleared.
        """
        ...

    def run(self, rows: Rows, fetch: Fetch, max_steps: int) -> RunOutput:
        """Run the decoder for one token of each live row or more, up to `max_steps`, which is 1 where candidates are
        wanted. In every step but the first a row's input is the token that the step before chose for it.

        Each input is appended to its row's cache. Running the same again overwrites the same places.
        """
        ...

    def move(self, source_row: int, target_row: int, length: int) -> None:
        """Move a row with `length` live tokens to a row that is free."""
        ...

    def reorder(self, source_rows: Sequence[int], target_rows: Sequence[int], lengths: Sequence[int]) -> None:
        """Overwrite beams by copies of other beams of the same sequence; no row is both a source and a target."""
        ...

    def clear(self, rows: Sequence[int]) -> None:
        """Wipe rows whose sequence failed, so that nothing of it reaches the rows' next owner."""
        ...

    def idle(self) -> None:
        """No row is live: leave all threads to the model's other runners until the next `encode`."""
        ...

    def reset(self) -> None:
        """Forget all rows and any `terminate`: called once by each engine that starts on this runner."""
        ...

    def terminate(self) -> None:
        """Make the run under way and all later ones fail soon, until `reset`. Thread-safe."""
        ...
