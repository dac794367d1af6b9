"""The search of the kernels' library over a model that makes one step of all rows at a time: a plain graph."""

import ctypes
import functools
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy import typing as npt

from service.bundle import fused_io, graph_io
from service.domain.options import MAX_TOP_K
from service.engine.batch import SearchState
from service.engine.runner import Control, RunLimits, RunnerSpec, SearchRun
from service.engine.runtime.kernels import library_path
from service.engine.runtime.session import Array, Buffer, DeviceMemory, DeviceUnavailable

MOST_CANDIDATES: Final = MAX_TOP_K


class Need(NamedTuple):
    """The outputs that a step needs beside the arg-max: for all rows what any of them wants."""

    num_candidates: int
    log_probs: int  # 0 or 1, like those below
    logits: int
    log_totals: int


class Step(NamedTuple):
    """The next step of the model's first `num_rows` rows, whose inputs have been written."""

    num_rows: int
    need: Need
    total_length: int  # the most tokens in a row's cache after it
    longest_source: int


MakeStep = Callable[[Step], None]
Reorder = Callable[[Sequence[int], Sequence[int], Sequence[int]], None]


class StepInputs:
    """`token_ids`, `lengths` and `source_lengths` of up to `max_slots` rows, in one contiguous block.

    With a `device`, they are copied to its memory in one transfer per step; without, the graph reads host memory.
    """

    def __init__(self, max_slots: int, device: str | None) -> None:
        self._bytes = np.zeros(max_slots * 16, np.uint8)
        self.token_ids = self._bytes[: 8 * max_slots].view(np.int64)
        self.lengths = self._bytes[8 * max_slots : 12 * max_slots].view(np.int32)
        self.source_lengths = self._bytes[12 * max_slots :].view(np.int32)
        self._on_device = None if device is None else DeviceMemory(device, self._bytes.nbytes)

    def send(self) -> None:
        if self._on_device is not None:
            self._on_device.write(self._bytes)

    def buffers(self, num_rows: int) -> dict[str, Buffer]:
        """Return input names and the buffers of their first `num_rows` entries, which stay valid."""
        arrays: dict[str, Array] = {
            graph_io.TOKEN_IDS: self.token_ids,
            graph_io.LENGTHS: self.lengths,
            graph_io.SOURCE_LENGTHS: self.source_lengths,
        }
        if self._on_device is None:
            return {name: Buffer.of(array[:num_rows]) for name, array in arrays.items()}
        start = self._bytes.ctypes.data
        return {
            name: self._on_device.view(array.ctypes.data - start, array.dtype, (num_rows,))
            for name, array in arrays.items()
        }


class _State(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_void_p)
            for name in ("control", "rows", "output_ids", "history", "hypotheses", "hypothesis_ids")
        ),
        ("num_slots", ctypes.c_int64),
        ("capacity", ctypes.c_int64),
    )


class _Exchange(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_void_p)
        for name in (
            "step", "token_ids", "lengths", "source_lengths", "next_ids", "next_log_probs", "candidate_ids",
            "candidate_log_probs", "logits", "log_totals", "cache_ranks", "copies",
        )
    )  # fmt: skip


class StepSearch:
    """Chooses the tokens of a runner's rows from what its model computes for them.

    The model writes what a step needs, and `next_ids` in any case, to these arrays, of whose memory all is used again
    in each step:

    - `next_ids` (max_slots,) int64: the arg-max, `graph_io.NO_TOKEN` for a row whose last hidden state contains NaN
    - `next_log_probs` (max_slots,) float32
    - `candidates(n, K)`: ids (n, K) int64 and log-probabilities (n, K) float32
    - `logits(n)`: (n, V) float32
    - `log_totals` (max_slots,) float32

    The model's rows [0, n) are a permutation of the search's, which changes nothing but the rows of a beam: there
    caches follow the tokens, so that few are copied.
    """

    def __init__(self, spec: RunnerSpec, vocabulary_size: int, inputs: StepInputs) -> None:
        self._library = _library()
        self._max_slots, self._vocabulary_size = spec.max_slots, vocabulary_size
        self._renormalizes = spec.renormalizes
        self._inputs = inputs
        self.control = Control(spec)
        self.next_ids = np.zeros(spec.max_slots, np.int64)
        self.next_log_probs = np.zeros(spec.max_slots, np.float32)
        self.log_totals = np.zeros(spec.max_slots, np.float32)
        most_candidates = spec.max_slots * min(MOST_CANDIDATES, vocabulary_size)
        self._candidate_ids = np.zeros(most_candidates, np.int64)
        self._candidate_log_probs = np.zeros(most_candidates, np.float32)
        self._logits: npt.NDArray[np.float32] | None = None  # of all rows, once they have been requested: large
        step = np.zeros(1, fused_io.STEP).view(np.int32)
        self._step = step.data  # read faster than an array
        self._copies = np.zeros((spec.max_slots, 3), np.int32)
        self._exchange = _Exchange(
            *(
                array.ctypes.data
                for array in (
                    step, inputs.token_ids, inputs.lengths, inputs.source_lengths, self.next_ids, self.next_log_probs,
                    self._candidate_ids, self._candidate_log_probs,
                )
            ),
            None,
            self.log_totals.ctypes.data,
            None,
            self._copies.ctypes.data,
        )  # fmt: skip
        self._state: SearchState | None = None
        self._stepper: int | None = None
        self._delete: Callable[[], object] = int  # nothing

    def attach(self, state: SearchState) -> None:
        assert len(state.rows) == self._max_slots, f"{len(state.rows)} rows, {self._max_slots} slots"
        self._state = state
        self._exchange.cache_ranks = state.cache_ranks.ctypes.data
        arrays = (
            self.control.fields, state.rows, state.output_ids, state.history, state.hypotheses, state.hypothesis_ids,
        )  # fmt: skip
        pointers = _State(*(array.ctypes.data for array in arrays), *state.output_ids.shape)
        self._delete()
        self._stepper = self._library.dragoman_stepper_new(
            ctypes.byref(pointers), ctypes.byref(self._exchange), self._vocabulary_size, int(self._renormalizes)
        )
        if self._stepper is None:
            raise MemoryError
        self._delete = weakref.finalize(self, self._library.dragoman_stepper_delete, self._stepper)

    def raise_guards(self, source_ids: Sequence[int], rows: Sequence[int]) -> None:
        """Let a sequence of these rows, if it may repeat itself so often at most, do so as often as its source does."""
        assert self._state is not None, "encode before attach"
        max_repeats = self._state.rows["max_repeats"]
        if max_repeats[rows[0]] < fused_io.UNGUARDED:
            ids = np.array(source_ids, np.int64)
            own = self._library.dragoman_most_repeats(ids.ctypes.data, len(ids))
            max_repeats[list(rows)] = max(own, int(max_repeats[rows[0]]))

    def run(self, num_rows: int, limits: RunLimits, make_step: MakeStep, reorder: Reorder) -> SearchRun:
        """Make a run's steps (`Runner.search`), each by `make_step`, after `reorder` copied caches (from rows, to rows,
        numbers of tokens).

        It ends with the first row, or an exception: then rows are as before the step.
        """
        assert self._state is not None, "search before attach"
        self.control.write(num_rows, limits)
        library, stepper = self._library, self._stepper
        problem = library.dragoman_stepper_begin(stepper)
        while problem is None:
            *need, total_length, longest_source, is_over, num_copies = self._step.tolist()
            if num_copies:
                reorder(*self._copies[:num_copies].T.tolist())
            if is_over:
                return self.control.read()
            make_step(Step(num_rows, Need(*need), total_length, longest_source))
            problem = library.dragoman_stepper_advance(stepper)
        raise ValueError(problem.decode())

    def candidates(self, num_rows: int, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return the memory for the candidates of the first rows in a step that needs `count` of each."""
        size, shape = num_rows * count, (num_rows, count)
        return self._candidate_ids[:size].reshape(shape), self._candidate_log_probs[:size].reshape(shape)

    def logits(self, num_rows: int) -> npt.NDArray[np.float32]:
        if self._logits is None:
            self._logits = np.zeros((self._max_slots, self._vocabulary_size), np.float32)
            self._exchange.logits = self._logits.ctypes.data
        return self._logits[:num_rows]


def _library() -> ctypes.PyDLL:
    """Load the library, whose functions keep the interpreter's lock: they take microseconds, waiting for it may not."""
    return _load(library_path())


@functools.cache
def _load(path: Path) -> ctypes.PyDLL:
    try:
        library = ctypes.PyDLL(str(path))
        library.dragoman_stepper_new.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32]
        library.dragoman_stepper_new.restype = ctypes.c_void_p
        library.dragoman_stepper_delete.argtypes = [ctypes.c_void_p]
        library.dragoman_stepper_delete.restype = None
        for call in (library.dragoman_stepper_begin, library.dragoman_stepper_advance):
            call.argtypes, call.restype = [ctypes.c_void_p], ctypes.c_char_p
        library.dragoman_most_repeats.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    except (OSError, AttributeError) as error:
        raise DeviceUnavailable(f"{path} can't be loaded ({error}); build it with 'make serve'") from error
    return library
