"""One graph for several workers: one session with all threads for a worker that runs alone, one with a share of them.

ONNX Runtime synchronizes the threads of a run at every operator, and waking a thread that does not spin takes longer
than most operators. Workers side by side, each with its share, need no synchronization. The price is a second session,
with its own copy of the weights.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from service.engine.config import FIRST_SLOTS
from service.engine.cpus import available_cpus
from service.engine.runtime.session import GraphSession, SessionConfig
from service.engine.runtime.weights import Weights

_MAX_LANES = 4  # each reads all weights in each step: more workers would be limited by memory bandwidth


def num_workers(config: SessionConfig, max_slots: int | None) -> int:
    """Return how many workers a model should have: one per thread up to a maximum, as long as each has enough slots."""
    if config.device != "cpu":
        return 1
    threads = config.intra_op_threads or available_cpus()
    most = _MAX_LANES if max_slots is None else max_slots // FIRST_SLOTS
    return max(1, min(threads, _MAX_LANES, most))


class SharedGraph:
    """One graph, run concurrently by the threads of several workers."""

    def __init__(
        self,
        path: Path,
        config: SessionConfig,
        inputs: Sequence[str],
        outputs: Sequence[str],
        workers: int,
        optional_outputs: Sequence[str] = (),
        weights: Weights | None = None,
    ) -> None:
        constants = weights.of(path.name) if weights else None
        self._alone = GraphSession(path, config, inputs, outputs, optional_outputs, weights=constants)
        self._beside_others = self._alone
        if workers > 1:
            threads = (config.intra_op_threads or available_cpus()) // workers
            narrow = dataclasses.replace(config, intra_op_threads=threads)
            self._beside_others = GraphSession(path, narrow, inputs, outputs, optional_outputs, weights=constants)

    def session(self, *, is_alone: bool) -> GraphSession:
        return self._alone if is_alone else self._beside_others

    @property
    def has_optional_outputs(self) -> bool:
        return self._alone.has_optional_outputs

    def input_dtype(self, name: str) -> np.dtype[Any]:
        return self._alone.input_dtype(name)

    def terminate(self) -> None:
        self._alone.terminate()
        self._beside_others.terminate()

    def reset(self) -> None:
        self._alone.reset()
        self._beside_others.reset()
