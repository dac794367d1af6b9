"""Single steps of a runner's model, without the search."""

from typing import Any, NamedTuple

import numpy as np
from numpy import typing as npt

from service.engine.batch import Batch
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.step_search import Need, Step


class Outputs(NamedTuple):
    """What a step computed, copied; what it was not asked for is from an earlier one."""

    next_ids: npt.NDArray[np.int64]  # (n,)
    next_log_probs: npt.NDArray[np.float32]  # (n,)
    candidate_ids: npt.NDArray[np.int64]  # (n, K)
    candidate_log_probs: npt.NDArray[np.float32]  # (n, K)


def attached(runner: OnnxRunner) -> OnnxRunner:
    """Give a runner rows of its own, which steps don't use."""
    runner.attach(Batch(runner.spec.max_slots, runner.spec.kv_capacity).state)
    return runner


def step(runner: OnnxRunner, token_ids: Any, lengths: Any, source_lengths: Any, need: Need) -> Outputs:
    """Run one step; all (n,)."""
    num_rows, inputs, search = len(token_ids), runner._inputs, runner._search
    inputs.token_ids[:num_rows], inputs.lengths[:num_rows] = token_ids, lengths
    inputs.source_lengths[:num_rows] = source_lengths
    runner._step(Step(num_rows, need, int(np.max(lengths)) + 1, int(np.max(source_lengths))))
    ids, log_probs = search.candidates(num_rows, need.num_candidates)
    next_ids, next_log_probs = search.next_ids[:num_rows].copy(), search.next_log_probs[:num_rows].copy()
    return Outputs(next_ids, next_log_probs, ids.copy(), log_probs.copy())
