"""A runner that takes simulated time and chooses no tokens: how many a row gets is known from its source."""

from collections.abc import Callable, Sequence

import numpy as np

from service.bundle import fused_io
from service.engine.batch import SearchState
from service.engine.runner import Control, EncodeJob, RunLimits, RunnerSpec, SearchRun
from service.engine.sequence import Attention
from tests.clock import Clock

EOS_ID = 1
TOKEN_ID = 7


class TimedRunner:
    """Implements `Runner` for greedy search. A source's first id is the number of its output tokens.

    Encoding takes `encode_seconds` per source, and a step of n rows `step_seconds(n)`; `passed` is called after each,
    once the clock has advanced.
    """

    def __init__(
        self,
        clock: Clock,
        max_slots: int,
        encode_seconds: float,
        step_seconds: Callable[[int], float],
        passed: Callable[[], None],
        kv_capacity: int = 256,
    ) -> None:
        self.spec = RunnerSpec(
            max_slots,
            kv_capacity,
            max_source_tokens=kv_capacity,
            eos_id=EOS_ID,
            decoder_start_id=0,
            bytes_per_slot=1,
            pads_sources=False,
        )
        self._clock = clock
        self._encode_seconds = encode_seconds
        self._step_seconds = step_seconds
        self._passed = passed
        self._num_tokens = np.zeros(max_slots, np.int64)  # of outputs, by source slot
        self.control = Control(self.spec)

    def attach(self, state: SearchState) -> None:
        self._state = state

    def encode(self, jobs: Sequence[EncodeJob]) -> list[bool]:
        for job in jobs:
            self._num_tokens[self._state.rows["source_slot"][job.rows[0]]] = job.source_ids[0]
        self._pass(self._encode_seconds * len(jobs))
        return [True] * len(jobs)

    def search(self, num_rows: int, limits: RunLimits) -> SearchRun:
        rows = self._state.rows[:num_rows]
        self._state.output_ids[:num_rows] = TOKEN_ID
        lasts = self._num_tokens[rows["source_slot"]]
        num_steps = num_row_steps = num_ended = 0
        while num_steps < limits.max_steps and num_ended < (limits.returns_after or num_rows):
            (interrupt,) = self.control.fields.view(fused_io.CONTROL)["interrupt"]
            is_awaited = interrupt == fused_io.INTERRUPT_FOR_NEWCOMERS
            if interrupt == fused_io.INTERRUPT_NOW or (is_awaited and num_steps >= max(limits.least_steps, 1)):
                break
            running = rows["status"] == fused_io.RUNNING
            self._pass(self._step_seconds(int(running.sum())))
            num_steps += 1
            num_row_steps += int(running.sum())
            rows["length"][running] += 1
            rows["status"][running & (rows["length"] >= lasts)] = fused_io.AT_LIMIT
            num_ended = int((rows["status"] != fused_io.RUNNING).sum())
        return SearchRun(num_steps, num_row_steps, num_row_steps, num_ended)

    def move(self, source_row: int, target_row: int, length: int) -> None:
        """Slots don't move."""

    def clear(self, rows: Sequence[int]) -> None:
        """Nothing is kept."""

    def attention(self, slots: Sequence[int], num_sources: int) -> Attention | None:
        return None

    def idle(self) -> None:
        """There are no threads."""

    def reset(self) -> None:
        self.control.clear_interrupt()

    def terminate(self) -> None:
        self.control.interrupt()

    def _pass(self, seconds: float) -> None:
        self._clock.now += seconds
        self._passed()
