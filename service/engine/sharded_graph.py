"""Splits a run's rows among threads, each of which runs the graph on its share; few rows run as a whole.

Between the threads of one run ONNX Runtime waits at every operator, and a thread that does not spin takes longer to
wake than most operators of a step take to run. Shares have no business with each other until all are done: one wait
per run. The price is a second session, with its own copy of the weights.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from service.engine.cpus import available_cpus
from service.engine.session import Array, Binding, Buffer, GraphSession, SessionConfig

MIN_ROWS_PER_SHARD = 2


class ShardedBinding(NamedTuple):
    """One binding per share, all of the same session; the first one belongs to the calling thread."""

    session: GraphSession
    shards: list[Binding]


class ShardedGraph:
    """One graph, run on any number of rows. On a GPU there are no shares."""

    def __init__(self, path: Path, config: SessionConfig, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Open a graph whose inputs and outputs must have the given names; raises what `GraphSession` does."""
        self._num_shards = (config.intra_op_threads or available_cpus()) if config.device == "cpu" else 1
        self._whole = GraphSession(path, config, inputs, outputs)
        self._sharded = self._whole
        if self._num_shards > 1:
            single = dataclasses.replace(config, intra_op_threads=1)
            self._sharded = GraphSession(path, single, inputs, outputs)
        self._workers = ThreadPoolExecutor(max(self._num_shards - 1, 1), thread_name_prefix="shard")

    def input_dtype(self, name: str) -> np.dtype[Any]:
        """The element type that an input wants."""
        return self._whole.input_dtype(name)

    def bind(
        self,
        num_rows: int,
        inputs: Mapping[str, Array | Buffer],
        outputs: Mapping[str, Array | Buffer],
        shared_inputs: Mapping[str, Array] | None = None,
    ) -> ShardedBinding:
        """Bind as `GraphSession.bind` does. `inputs` and `outputs` have a first axis of `num_rows`; each share takes
        its rows of them, and all of `shared_inputs`."""
        row_inputs, row_outputs = _buffers(inputs), _buffers(outputs)
        shared = shared_inputs or {}
        if self._num_shards == 1 or num_rows < MIN_ROWS_PER_SHARD * self._num_shards:
            return ShardedBinding(self._whole, [self._whole.bind({**row_inputs, **shared}, row_outputs)])
        ends = [num_rows * number // self._num_shards for number in range(self._num_shards + 1)]
        shards = []
        for start, stop in itertools.pairwise(ends):
            own_inputs = {name: buffer.rows(start, stop) for name, buffer in row_inputs.items()}
            own_outputs = {name: buffer.rows(start, stop) for name, buffer in row_outputs.items()}
            shards.append(self._sharded.bind({**own_inputs, **shared}, own_outputs))
        return ShardedBinding(self._sharded, shards)

    def run(self, binding: ShardedBinding) -> None:
        """Run all shares; on return all are done, also if one failed.

        Raises:
            What `GraphSession.run` does: the first share's error, in their order.
        """
        session, (first, *others) = binding
        if not others:
            session.run(first)
            return
        futures = [self._workers.submit(session.run, shard) for shard in others]
        errors: list[BaseException | None] = []
        try:
            session.run(first)
        except Exception as error:
            errors.append(error)
        errors += [future.exception() for future in futures]  # waits for each
        failed = [error for error in errors if error is not None]
        if failed:
            raise failed[0]

    def terminate(self) -> None:
        """Make the runs under way and all later ones fail, until `reset`. Thread-safe."""
        self._whole.terminate()
        self._sharded.terminate()

    def reset(self) -> None:
        """Take `terminate` back."""
        self._whole.reset()
        self._sharded.reset()


def _buffers(arrays: Mapping[str, Array | Buffer]) -> dict[str, Buffer]:
    return {name: item if isinstance(item, Buffer) else Buffer.of(item) for name, item in arrays.items()}
