"""Single steps of a runner."""

from typing import Any

import numpy as np

from service.engine.runner import Fetch, Rows, RunOutput, StepRunner


def step(runner: StepRunner, token_ids: Any, lengths: Any, source_lengths: Any, fetch: Fetch) -> RunOutput:
    """Run one step of rows that are far from their limits; all (n,)."""
    limits = np.full(len(token_ids), runner.spec.kv_capacity, np.int32)
    return runner.run(Rows(token_ids, lengths, source_lengths, limits), fetch, 1)
