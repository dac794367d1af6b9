"""The search of `kernels/src/search`, compiled by itself and driven step by step."""

import ctypes
import subprocess
from collections.abc import Sequence as Several
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy import typing as npt

from service.bundle.fused_io import CONTROL, HYPOTHESIS, ROW
from service.engine.batch import SearchState
from service.engine.runner import RunnerSpec
from service.engine.sequence import Sequence
from tests.unit.engine.reference_search import most_repeats

KERNELS = Path(__file__).parents[2] / "kernels"
MAX_CANDIDATES = 64


def compile_search(compiler: str, folder: Path, *flags: str) -> Path:
    """Compile the search and its entry; returns the library."""
    library, unit = folder / "search.so", folder / "search.cpp"
    sources = [*sorted((KERNELS / "src" / "search").glob("*.cpp")), Path(__file__).with_name("search_entry.cpp")]
    unit.write_text("".join(f'#include "{source}"\n' for source in sources))  # each would read the same headers again
    command = [compiler, "-std=c++17", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", *flags]
    subprocess.run([*command, f"-I{KERNELS / 'src'}", str(unit), "-o", str(library)], check=True)
    return library


class _State(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("control", "rows", "output_ids", "history", "hypotheses", "texts")),
        ("num_slots", ctypes.c_int64),
        ("capacity", ctypes.c_int64),
    )


class _Scores(ctypes.Structure):
    _fields_ = (
        ("is_broken", ctypes.c_bool),
        ("best_id", ctypes.c_int32),
        ("best_logit", ctypes.c_float),
        ("log_total", ctypes.c_float),
        ("num_candidates", ctypes.c_int32),
        ("candidate_ids", ctypes.c_void_p),
        ("candidate_logits", ctypes.c_void_p),
        ("logits", ctypes.c_void_p),
    )


class Need(NamedTuple):
    """What the search needs of one row."""

    log_total: bool
    num_candidates: int
    logits: bool


class Projected(NamedTuple):
    """What the projection computed for one row; what nobody needs is anything."""

    is_broken: bool
    best_id: int
    best_logit: float
    log_total: float
    candidate_ids: npt.NDArray[np.int32]
    candidate_logits: npt.NDArray[np.float32]
    logits: npt.NDArray[np.float32]


class State:
    """The arrays that Python owns."""

    def __init__(self, num_slots: int, capacity: int) -> None:
        self.control = np.zeros((), CONTROL)
        self.rows = np.zeros(num_slots, ROW)
        self.output_ids = np.zeros((num_slots, capacity), np.int64)
        self.history = np.zeros((3 * num_slots, capacity), np.int32)
        self.hypotheses = np.zeros(2 * num_slots, HYPOTHESIS)
        self.hypothesis_ids = np.zeros((2 * num_slots, capacity), np.int64)
        self.num_slots, self.capacity = num_slots, capacity

    @property
    def pointers(self) -> _State:
        """Return the arrays as the library reads them."""
        arrays = (self.control, self.rows, self.output_ids, self.history, self.hypotheses, self.hypothesis_ids)
        return _State(*(array.ctypes.data for array in arrays), self.num_slots, self.capacity)

    def join(self, sequence: Sequence, rows: Several[int], slots: Several[int], spec: RunnerSpec) -> None:
        """Reset `rows`, anywhere and in any order, for a sequence's first step."""
        made, own = SearchState.empty(len(rows), self.capacity), list(rows)
        made.begin(0, sequence, spec.decoder_start_id)
        self.rows[own], self.output_ids[own] = made.rows, made.output_ids
        self.rows["slot"][own] = slots
        self.rows["beam_rows"][rows[0], : len(rows)] = rows
        if sequence.options.max_repeats:
            self.rows["max_repeats"][own] = max(sequence.options.max_repeats, most_repeats(sequence.source_ids))


class NativeSearch:
    """One run."""

    def __init__(self, library: Path, state: State, vocabulary_size: int, *, renormalizes: bool = False,
                 num_readable: int = 2**31 - 1) -> None:  # fmt: skip
        """Begin a run.

        Raises:
            ValueError: the state is not valid; says what.
        """
        self._library = ctypes.CDLL(str(library))
        self._library.search_new.restype = ctypes.c_void_p
        self._state, self._pointers, self._handle = state, state.pointers, None
        error = ctypes.create_string_buffer(256)
        model = vocabulary_size, int(renormalizes), ctypes.c_int64(num_readable)
        self._handle = self._library.search_new(ctypes.byref(self._pointers), *model, error, ctypes.c_size_t(256))
        if not self._handle:
            raise ValueError(error.value.decode())

    def __enter__(self) -> "NativeSearch":
        return self

    def __exit__(self, *_: object) -> None:
        self._call("search_delete")
        self._handle = None

    def live(self) -> list[int]:
        """Return the rows that are still running."""
        rows = np.zeros(self._state.num_slots, np.int32)
        count = self._call("search_live", ctypes.c_void_p(rows.ctypes.data))
        return [int(row) for row in rows[:count]]

    def needs(self) -> list[Need]:
        """Return what to compute for each live row."""
        needs = np.zeros((self._state.num_slots, 3), np.int32)
        self._call("search_needs", ctypes.c_void_p(needs.ctypes.data))
        return [Need(bool(total), count, bool(logits)) for total, count, logits in needs[: len(self.live())].tolist()]

    def advance(self, projected: list[Projected]) -> bool:
        """Append a token to each live row; returns whether a row has ended."""
        scores = (_Scores * len(projected))()
        for each, row in zip(scores, projected, strict=True):
            each.is_broken, each.best_id, each.best_logit, each.log_total = row[:4]
            each.num_candidates = len(row.candidate_ids)
            each.candidate_ids = row.candidate_ids.ctypes.data
            each.candidate_logits = row.candidate_logits.ctypes.data
            each.logits = row.logits.ctypes.data
        return bool(self._call("search_advance", scores))

    def _call(self, name: str, *arguments: Any) -> int:
        result: int = getattr(self._library, name)(ctypes.c_void_p(self._handle), *arguments)
        return result
