"""What a run of the search is told and what it tells (`fused_io.CONTROL`)."""

from operator import itemgetter

import numpy as np

from service.bundle import fused_io
from service.engine.runner import RunLimits, RunnerSpec, SearchRun

_PLACES = {name: place for place, name in enumerate(fused_io.CONTROL.names or ())}
_RESULTS = itemgetter(*(_PLACES[name] for name in SearchRun._fields))


class Control:
    """The numbers as `fields`, (16,) int32, which the search reads and writes; other threads may interrupt it."""

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
        self._memory[_PLACES["interrupt"]] = fused_io.INTERRUPT_NOW

    def interrupt_for_newcomers(self) -> None:
        if self._memory[_PLACES["interrupt"]] == fused_io.NO_INTERRUPT:
            self._memory[_PLACES["interrupt"]] = fused_io.INTERRUPT_FOR_NEWCOMERS

    def clear_interrupt(self) -> None:
        self._memory[_PLACES["interrupt"]] = fused_io.NO_INTERRUPT
