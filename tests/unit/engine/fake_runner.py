"""A runner without a model: a row's next token depends on its source and its output so far, and on nothing else."""

import zlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy import typing as npt

from service.bundle.graph_io import NO_TOKEN
from service.engine.runner import EncodeJob, Fetch, Rows, RunnerSpec, RunOutput, RunTerminated

EOS_ID = 1
START_ID = 0
BAD_SOURCE_ID = 998  # a source containing it makes an encoder run raise
NAN_SOURCE_ID = 997  # a source containing it encodes to NaN
LOG_TOTAL = np.float32(4.0)  # of the logits: they have both signs, unlike log-probabilities
NAN_STEP_SOURCE_ID = 996  # a source containing it produces NaN from the third step on


class FakeRunner:
    """Keeps each row's source and inputs, as the real one keeps keys and values, so that misplaced rows show.

    `before_step` is called at the start of each step with its number, and may raise or call the engine. A run makes as
    many steps as it may, up to `max_steps`; a row that has ended gets meaningless tokens until the others have ended.
    """

    def __init__(
        self,
        max_slots: int = 8,
        kv_capacity: int = 40,
        max_source_tokens: int = 32,
        vocabulary_size: int = 50,
        eos_weight: float = 2.0,
        before_step: Callable[[int], None] | None = None,
        max_steps: int = 1,
    ) -> None:
        self.spec = RunnerSpec(
            max_slots,
            kv_capacity,
            max_source_tokens,
            EOS_ID,
            START_ID,
            bytes_per_slot=4096,
            max_steps=max_steps,
            has_logits=True,
        )
        self.before_step = before_step
        self.num_steps = 0
        self.num_encodes = 0
        self.encoded: list[list[Sequence[int]]] = []
        self.batch_sizes: list[int] = []
        self.fetches: list[Fetch] = []
        self.num_runs = 0
        self.is_at_work = False
        self.is_terminated = False
        self._vocabulary_size = vocabulary_size
        self._eos_weight = eos_weight
        self._sources: list[tuple[int, ...] | None] = [None] * max_slots
        self._inputs: list[list[int]] = [[] for _ in range(max_slots)]
        self._meaningless = np.zeros(vocabulary_size, np.float32)  # of a row past its end
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], npt.NDArray[np.float32]] = {}
        self._unclean: set[int] = set()  # rows that contain NaN and must be cleared before reuse

    def encode(self, jobs: Sequence[EncodeJob]) -> list[bool]:
        self._check_terminated()
        self.is_at_work = True
        self.num_encodes += 1
        self.encoded.append([job.source_ids for job in jobs])
        if any(BAD_SOURCE_ID in job.source_ids for job in jobs):
            raise RuntimeError("bad source")
        for job in jobs:
            for row in job.rows:
                assert row not in self._unclean, f"row {row} was not cleared"
                self._sources[row] = tuple(job.source_ids)
                self._inputs[row] = []
                if NAN_SOURCE_ID in job.source_ids:
                    self._unclean.add(row)
        return [NAN_SOURCE_ID not in job.source_ids for job in jobs]

    def run(self, rows: Rows, fetch: Fetch, max_steps: int) -> RunOutput:
        self._check_terminated()
        assert 1 <= max_steps <= self.spec.max_steps
        assert max_steps == 1 or not (fetch.num_candidates or fetch.logits)
        self.num_runs += 1
        assert self.is_at_work
        steps: list[RunOutput] = []
        token_ids, lengths = rows.token_ids, rows.lengths
        has_ended = np.zeros(len(token_ids), np.bool_)
        while not steps or (len(steps) < max_steps and not has_ended.all()):
            steps.append(self._step(token_ids, lengths, rows.source_lengths, fetch, has_ended))
            if steps[-1].next_ids is None:
                return steps[-1]
            token_ids, lengths = steps[-1].next_ids[:, 0], lengths + 1
            has_ended |= (token_ids == EOS_ID) | (token_ids == NO_TOKEN) | (lengths >= rows.limits)
        if len(steps) == 1:
            return steps[0]
        log_probs = [step.next_log_probs for step in steps if step.next_log_probs is not None]
        return RunOutput(
            np.concatenate([step.next_ids for step in steps if step.next_ids is not None], axis=1),
            np.concatenate(log_probs, axis=1) if log_probs else None,
            None,
            None,
            num_steps=len(steps),
        )

    def _step(
        self,
        token_ids: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int32],
        source_lengths: npt.NDArray[np.int32],
        fetch: Fetch,
        has_ended: npt.NDArray[np.bool_],
    ) -> RunOutput:
        self._check_terminated()
        self.num_steps += 1
        self.batch_sizes.append(len(token_ids))
        self.fetches.append(fetch)
        if self.before_step is not None:
            self.before_step(self.num_steps)
        self._check_terminated()
        rows = []
        for row, (token_id, length, source_length) in enumerate(zip(token_ids, lengths, source_lengths, strict=True)):
            if has_ended[row]:
                rows.append(self._meaningless)
                continue
            source = self._sources[row]
            assert source is not None, f"row {row} was not encoded"
            assert len(source) == source_length, f"row {row} has another row's source"
            assert len(self._inputs[row]) == length, f"row {row} holds {len(self._inputs[row])} tokens, not {length}"
            self._inputs[row].append(int(token_id))
            rows.append(self.log_probs(source, self._inputs[row]))
            if np.isnan(rows[-1]).any():
                self._unclean.add(row)
        log_probs = np.stack(rows)
        order = np.argsort(-log_probs, axis=1, kind="stable")
        ranked = np.take_along_axis(log_probs, order, axis=1)
        width = fetch.num_candidates
        next_ids = np.where(np.isnan(log_probs).any(axis=1), NO_TOKEN, order[:, 0])
        return RunOutput(
            next_ids[:, None] if fetch.next_ids else None,
            ranked[:, :1] if fetch.next_log_probs else None,
            order[:, :width] if width else None,
            ranked[:, :width] if width else None,
            logits=log_probs + LOG_TOTAL if fetch.logits else None,
            log_totals=np.full(len(rows), LOG_TOTAL) if fetch.log_totals else None,
        )

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
        logits[EOS_ID] += self._eos_weight
        logits[START_ID] = -np.inf
        log_probs: npt.NDArray[np.float32] = (logits - np.log(np.exp(logits).sum())).astype(np.float32)
        return log_probs

    def move(self, source_row: int, target_row: int, length: int) -> None:
        assert not {source_row, target_row} & self._unclean, "a row was not cleared"
        self._sources[target_row] = self._sources[source_row]
        self._inputs[target_row] = self._inputs[source_row][:length]
        self._sources[source_row] = None

    def reorder(self, source_rows: Sequence[int], target_rows: Sequence[int], lengths: Sequence[int]) -> None:
        assert not set(source_rows) & set(target_rows)
        assert len(set(target_rows)) == len(target_rows)
        for source, target, length in zip(source_rows, target_rows, lengths, strict=True):
            assert self._sources[source] == self._sources[target]
            self._inputs[target] = self._inputs[source][:length]

    def clear(self, rows: Sequence[int]) -> None:
        for row in rows:
            self._sources[row] = None
        self._unclean -= set(rows)

    def idle(self) -> None:
        self.is_at_work = False

    def reset(self) -> None:
        self.idle()
        self.is_terminated = False
        self._unclean.clear()
        self._sources = [None] * self.spec.max_slots

    def terminate(self) -> None:
        self.is_terminated = True

    def _check_terminated(self) -> None:
        if self.is_terminated:
            raise RunTerminated("terminated")
