"""The interface of the engine's computation: encodes sources, continues rows by the search, stores caches."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple, Protocol

import numpy as np

from service.bundle import fused_io
from service.engine.batch import SearchState
from service.engine.sequence import Attention


@dataclass(frozen=True, slots=True)
class RunnerSpec:
    """A runner's limits, and the model's special tokens."""

    max_slots: int
    kv_capacity: int  # most tokens per row, forced prefix included
    max_source_tokens: int
    eos_id: int
    decoder_start_id: int
    bytes_per_slot: int  # device memory per row
    has_logits: bool = False  # whether runs can return them
    renormalizes: bool = False  # transformers' `renormalize_logits`: scores are normalized again once they are changed
    pads_sources: bool = True  # whether `encode` computes as much for each source as for the longest


class RunTerminated(Exception):
    """A run did not finish because of `Runner.terminate`: intended, so not an error."""


class EncodeJob(NamedTuple):
    """One source to encode, and the rows that get its cross-attention keys and values."""

    source_ids: Sequence[int]
    rows: Sequence[int]


class RunLimits(NamedTuple):
    """Limits of a run, which also ends with all of its rows, and may end once a row has ended."""

    max_steps: int
    returns_after: int = 0  # ends as soon as so many rows have ended; 0: however many have
    least_steps: int = 0  # before others that could join end it


ONE_STEP: Final = RunLimits(1)


class SearchRun(NamedTuple):
    """The outcome of a run, besides the changed rows."""

    num_steps: int  # 0 if it was interrupted at once
    num_row_steps: int  # the rows of every step
    num_generated: int  # one token per sequence and step, however wide its beam, without forced ones
    num_ended: int  # rows


_PLACES = {name: place for place, name in enumerate(fused_io.CONTROL.names or ())}
_RESULTS = itemgetter(*(_PLACES[name] for name in SearchRun._fields))


class Control:
    """Input and output of a search run: `fields`, (16,) int32 (`fused_io.CONTROL`). Any thread may interrupt a run."""

    def __init__(self, spec: RunnerSpec) -> None:
        control = np.zeros(1, fused_io.CONTROL)
        control["eos_id"], control["decoder_start_id"] = spec.eos_id, spec.decoder_start_id
        self.fields = control.view(np.int32)
        self._memory = self.fields.data  # faster to index than an array

    def write(self, num_rows: int, limits: RunLimits, num_threads: int = 1) -> None:
        memory = self._memory
        memory[_PLACES["num_rows"]], memory[_PLACES["max_steps"]] = num_rows, limits.max_steps
        memory[_PLACES["returns_after"]], memory[_PLACES["num_threads"]] = limits.returns_after, num_threads
        memory[_PLACES["least_steps"]] = limits.least_steps

    def read(self) -> SearchRun:
        return SearchRun(*_RESULTS(self._memory))

    def interrupt(self) -> None:
        """Make the run under way, or else the next one, end after its current step, or before it."""
        self._memory[_PLACES["interrupt"]] = fused_io.INTERRUPT_NOW

    def interrupt_for_newcomers(self) -> None:
        """End the run after `RunLimits.least_steps`; never undoes `interrupt`. Hold the lock of `clear_interrupt`."""
        if self._memory[_PLACES["interrupt"]] == fused_io.NO_INTERRUPT:
            self._memory[_PLACES["interrupt"]] = fused_io.INTERRUPT_FOR_NEWCOMERS

    def clear_interrupt(self) -> None:
        """Undo `interrupt`, once its reason will be handled before the next run."""
        self._memory[_PLACES["interrupt"]] = fused_io.NO_INTERRUPT


class Runner(Protocol):
    """Computes; the engine decides what moves where.

    Rows [0, n) are live. All methods except `terminate` are called on the engine's thread. A method that raises has
    failed for all sequences of the call, and the runner stays usable.
    """

    @property
    def spec(self) -> RunnerSpec: ...

    @property
    def control(self) -> Control: ...

    def attach(self, state: SearchState) -> None:
        """Use these rows from now on; `encode` raises the guards of those whose sources repeat themselves more."""
        ...

    def encode(self, jobs: Sequence[EncodeJob]) -> list[bool]:
        """Run the encoder over all jobs at once and fill their rows, which follow the live rows.

        Return per job whether the encoder's output is finite; if not, the job's rows are unusable until cleared.
        """
        ...

    def search(self, num_rows: int, limits: RunLimits) -> SearchRun:
        """Advance the first `num_rows` rows in place until the limits, an interrupt, or the last row's end.

        Rows that have ended have another `status` than `RUNNING`; they must leave before the next run.
        """
        ...

    def attention(self, slots: Sequence[int], num_sources: int) -> Attention | None:
        """Return how much each of T output tokens attended to each of the `num_sources` source tokens, (T, S); `None`
        if the runner does not record it. `slots` (T,) are those of the rows that made the steps from the first on."""
        ...

    def move(self, source_row: int, target_row: int, length: int) -> None:
        """Move a row with `length` live tokens to a free row."""
        ...

    def clear(self, rows: Sequence[int]) -> None: ...

    def idle(self) -> None:
        """Leave all threads to the model's other runners until the next `encode`: no row is live."""
        ...

    def reset(self) -> None:
        """Clear all rows and undo `terminate`: called once by each engine that starts on this runner."""
        ...

    def terminate(self) -> None:
        """Make the run under way and all later ones fail soon, until `reset`. Thread-safe."""
        ...
