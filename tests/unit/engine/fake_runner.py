"""A runner without a model: a row's next token depends on its source and its output so far, and on nothing else."""

import zlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy import typing as npt

from service.bundle import fused_io
from service.bundle.graph_io import NO_TOKEN
from service.engine.batch import SearchState
from service.engine.runner import Control, EncodeJob, RunLimits, RunnerSpec, RunTerminated, SearchRun
from service.engine.runtime.step_search import Need, Step, StepInputs, StepSearch
from service.engine.sequence import Attention

EOS_ID = 1
START_ID = 0
BAD_SOURCE_ID = 998  # a source containing it makes an encoder run raise
NAN_SOURCE_ID = 997  # a source containing it encodes to NaN
LOG_TOTAL = np.float32(4.0)  # of the logits: they have both signs, unlike log-probabilities
NAN_STEP_SOURCE_ID = 996  # a source containing it produces NaN from the third step on


class FakeRunner:
    """Keeps each row's source and inputs, as the real one keeps keys and values, so that misplaced rows show.

    Tokens are chosen by the real search. `before_step` is called at the start of each step with its number, and may
    raise or call the engine; `before_run` likewise. A run makes up to `steps_per_run` steps, whatever its limits say;
    0: as many as they say. With `has_ties`, many tokens have equal logits.
    """

    def __init__(
        self,
        max_slots: int = 8,
        kv_capacity: int = 40,
        max_source_tokens: int = 32,
        vocabulary_size: int = 50,
        eos_weight: float = 2.0,
        before_step: Callable[[int], None] | None = None,
        steps_per_run: int = 1,
        has_ties: bool = False,
        renormalizes: bool = False,
    ) -> None:
        tokens = (EOS_ID, START_ID)
        self.spec = RunnerSpec(
            max_slots, kv_capacity, max_source_tokens, *tokens, 4096, has_logits=True, renormalizes=renormalizes
        )
        self.before_step = before_step
        self.before_run: Callable[[], None] | None = None
        self.steps_per_run = steps_per_run
        self.num_steps = 0
        self.num_encodes = 0
        self.encoded: list[list[Sequence[int]]] = []
        self.batch_sizes: list[int] = []
        self.needs: list[Need] = []
        self.runs: list[RunLimits] = []
        self.num_copies = 0
        self.is_at_work = False
        self.is_terminated = False
        self._vocabulary_size = vocabulary_size
        self._eos_weight, self._has_ties = eos_weight, has_ties
        self._sources: list[tuple[int, ...] | None] = [None] * max_slots
        self._inputs: list[list[int]] = [[] for _ in range(max_slots)]
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], npt.NDArray[np.float32]] = {}
        self._unclean: set[int] = set()  # rows that contain NaN and must be cleared before reuse
        self._step_inputs = StepInputs(max_slots, None)
        self._search = StepSearch(self.spec, vocabulary_size, self._step_inputs)

    @property
    def num_runs(self) -> int:
        return len(self.runs)

    @property
    def control(self) -> Control:
        return self._search.control

    @property
    def is_interrupted(self) -> bool:
        """Return whether the next run will make no step."""
        (control,) = self.control.fields.view(fused_io.CONTROL)
        return bool(control["interrupt"] == fused_io.INTERRUPT_NOW)

    def attach(self, state: SearchState) -> None:
        self._search.attach(state)

    def encode(self, jobs: Sequence[EncodeJob]) -> list[bool]:
        self._check_terminated()
        self.is_at_work = True
        self.num_encodes += 1
        self.encoded.append([job.source_ids for job in jobs])
        if any(BAD_SOURCE_ID in job.source_ids for job in jobs):
            raise RuntimeError("bad source")
        for job in jobs:
            self._search.raise_guards(*job)
            for row in job.rows:
                assert row not in self._unclean, f"row {row} was not cleared"
                self._sources[row] = tuple(job.source_ids)
                self._inputs[row] = []
                if NAN_SOURCE_ID in job.source_ids:
                    self._unclean.add(row)
        return [NAN_SOURCE_ID not in job.source_ids for job in jobs]

    def search(self, num_rows: int, limits: RunLimits) -> SearchRun:
        self._check_terminated()
        if self.before_run is not None:
            self.before_run()
        assert limits.max_steps >= 1
        assert self.is_at_work
        self.runs.append(limits)
        if self.steps_per_run:
            limits = RunLimits(self.steps_per_run, *limits[1:])
        return self._search.run(num_rows, limits, self._step, self._reorder)

    def _step(self, step: Step) -> None:
        self._check_terminated()
        self.num_steps += 1
        num_rows, need, inputs, search = step.num_rows, step.need, self._step_inputs, self._search
        self.batch_sizes.append(num_rows)
        self.needs.append(need)
        if self.before_step is not None:
            self.before_step(self.num_steps)
        self._check_terminated()
        rows = []
        for row in range(num_rows):
            source, length = self._sources[row], inputs.lengths[row]
            assert source is not None, f"row {row} was not encoded"
            assert len(source) == inputs.source_lengths[row], f"row {row} has another row's source"
            assert len(self._inputs[row]) == length, f"row {row} holds {len(self._inputs[row])} tokens, not {length}"
            self._inputs[row].append(int(inputs.token_ids[row]))
            rows.append(self.log_probs(source, self._inputs[row]))
            if np.isnan(rows[-1]).any():
                self._unclean.add(row)
        assert step.total_length == max(map(len, self._inputs[:num_rows]))
        assert step.longest_source == inputs.source_lengths[:num_rows].max()
        log_probs = np.stack(rows)
        order = np.argsort(-log_probs, axis=1, kind="stable")
        ranked = np.take_along_axis(log_probs, order, axis=1)
        search.next_ids[:num_rows] = np.where(np.isnan(log_probs).any(axis=1), NO_TOKEN, order[:, 0])
        search.next_log_probs[:num_rows] = ranked[:, 0] if need.log_probs else np.nan
        search.log_totals[:num_rows] = LOG_TOTAL if need.log_totals else np.nan
        ids, best = search.candidates(num_rows, need.num_candidates)
        ids[:], best[:] = order[:, : need.num_candidates], ranked[:, : need.num_candidates]
        if need.logits:
            search.logits(num_rows)[:] = log_probs + LOG_TOTAL

    def log_probs(self, source: tuple[int, ...], inputs: Sequence[int]) -> npt.NDArray[np.float32]:
        """Return (V,) log-probabilities of what follows `inputs` (start token and prefix included) given a source."""
        key = (source, tuple(inputs))
        if key not in self._known:
            self._known[key] = self._compute(source, key[1])
        return self._known[key]

    def _compute(self, source: tuple[int, ...], inputs: tuple[int, ...]) -> npt.NDArray[np.float32]:
        if NAN_STEP_SOURCE_ID in source and len(inputs) > 2:
            return np.full(self._vocabulary_size, np.nan, np.float32)
        seed = zlib.crc32(repr((source, inputs)).encode())
        logits = np.random.default_rng(seed).normal(0, 2, self._vocabulary_size)
        if self._has_ties:
            logits = logits.round()
        logits[EOS_ID] += self._eos_weight
        logits[START_ID] = -np.inf
        log_probs: npt.NDArray[np.float32] = (logits - np.log(np.exp(logits).sum())).astype(np.float32)
        return log_probs

    def move(self, source_row: int, target_row: int, length: int) -> None:
        assert not {source_row, target_row} & self._unclean, "a row was not cleared"
        self._sources[target_row] = self._sources[source_row]
        self._inputs[target_row] = self._inputs[source_row][:length]
        self._sources[source_row] = None

    def _reorder(self, source_rows: Sequence[int], target_rows: Sequence[int], lengths: Sequence[int]) -> None:
        assert not set(source_rows) & set(target_rows)
        assert len(set(target_rows)) == len(target_rows)
        self.num_copies += len(target_rows)
        for source, target, length in zip(source_rows, target_rows, lengths, strict=True):
            assert self._sources[source] == self._sources[target]
            self._inputs[target] = self._inputs[source][:length]

    def clear(self, rows: Sequence[int]) -> None:
        for row in rows:
            self._sources[row] = None
        self._unclean -= set(rows)

    def attention(self, slots: Sequence[int], num_sources: int) -> Attention | None:
        return None

    def idle(self) -> None:
        self.is_at_work = False

    def reset(self) -> None:
        self.idle()
        self.control.clear_interrupt()
        self.is_terminated = False
        self._unclean.clear()
        self._sources = [None] * self.spec.max_slots

    def terminate(self) -> None:
        self.is_terminated = True

    def _check_terminated(self) -> None:
        if self.is_terminated:
            raise RunTerminated("terminated")
