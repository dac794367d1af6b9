"""Alignment with fused graphs: the decoder reads a translation again, and records the attention of its steps."""

import contextlib
import dataclasses
import threading
from collections.abc import Iterator, Sequence

from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from service.engine.runner import EncodeJob, RunLimits
from service.engine.runtime.aligner import Attention, Pair, align_in_batches
from service.engine.runtime.fused_runner import FusedGraphs, FusedRunner
from service.engine.search_state import SearchState
from service.engine.sequence import Sequence as Decoded

_MAX_PAIRS = 32  # of a run


class FusedAligner:
    """Implements `Aligner` with the engine's own sessions: alignments are not worth a second copy of the weights.

    Each run has rows of its own, as many of them as callers have ever aligned at the same time.
    """

    def __init__(self, graphs: FusedGraphs, manifest: Manifest) -> None:
        """Align with a bundle's graphs."""
        self._graphs = graphs
        self._reads = manifest.graphs.alignment_reads
        # A token that is read takes one more step than one that is predicted.
        capacity = manifest.limits.max_output_tokens + manifest.longest_target_prefix + self._reads
        self._spec = dataclasses.replace(graphs.spec, max_slots=_MAX_PAIRS, kv_capacity=capacity)
        self._lock = threading.Lock()
        self._free: list[FusedRunner] = []

    def align(self, pairs: Sequence[Pair]) -> list[Attention]:
        """See `Aligner.align`."""
        return align_in_batches(pairs, self._run)

    def _run(self, pairs: Sequence[Pair]) -> list[Attention]:
        with self._runner() as runner:
            return [
                attention
                for begin in range(0, len(pairs), _MAX_PAIRS)
                for attention in self._align(runner, pairs[begin : begin + _MAX_PAIRS])
            ]

    def _align(self, runner: FusedRunner, pairs: Sequence[Pair]) -> list[Attention]:
        """Return the attention (T, S) of at most `_MAX_PAIRS` pairs that have a target."""
        spec = self._spec
        state = SearchState.empty(spec.max_slots, spec.kv_capacity)
        runner.attach(state)
        options = DecodingOptions(beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=1)
        for row, (source_ids, target_ids) in enumerate(pairs):
            # All tokens are forced but one: the last of the target, or the one after it, which does not matter.
            forced = tuple(target_ids if self._reads else target_ids[:-1])
            sequence = Decoded(tuple(source_ids), options, arrived_seconds=0.0, target_prefix_ids=forced)
            state.begin(row, sequence, spec.decoder_start_id)
        runner.encode([EncodeJob(tuple(source_ids), (row,)) for row, (source_ids, _) in enumerate(pairs)])
        runner.search(len(pairs), RunLimits(spec.kv_capacity))
        first, slots = int(self._reads), state.slots
        return [
            runner.attention[slots[row], first : first + len(target_ids), : len(source_ids)].copy()
            for row, (source_ids, target_ids) in enumerate(pairs)
        ]

    @contextlib.contextmanager
    def _runner(self) -> Iterator[FusedRunner]:
        """Yield a runner that no other thread uses."""
        with self._lock:
            runner = self._free.pop() if self._free else None
        if runner is None:
            runner = FusedRunner(self._graphs, self._spec, records=True)
        yield runner
        runner.idle()
        with self._lock:
            self._free.append(runner)
