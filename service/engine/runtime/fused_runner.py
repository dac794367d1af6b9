"""The runner of fused graphs: their operators encode sources, and decode many steps with the choice of tokens."""

import contextlib
import dataclasses
import itertools
import math
import mmap
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy import typing as npt

from service.bundle import fused_io
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import ModelShape
from service.engine.batch import SearchState
from service.engine.config import FIRST_SLOTS, EngineConfig
from service.engine.cpus import available_cpus
from service.engine.runner import Control, EncodeJob, RunLimits, RunnerSpec, RunTerminated, SearchRun
from service.engine.runtime.session import Binding, Buffer, GraphSession, SessionConfig
from service.engine.runtime.weights import Weights
from service.engine.sequence import Attention

_CACHED = np.uint16  # bfloat16, or half of a float32 of a state


@dataclass(frozen=True, slots=True)
class FusedShape:
    """Sizes of a slot's caches: blocks of 16 tokens of a head, keys, then values; or states (`fused_io`)."""

    model: ModelShape
    kv_capacity: int
    max_source_tokens: int

    def self_cache(self, num_slots: int) -> tuple[int, ...]:
        if self.model.is_recurrent:
            return num_slots, self.model.num_decoder_layers, *fused_io.state(self.model.state_size)
        return self._cache(num_slots, self.kv_capacity)

    def cross_cache(self, num_slots: int) -> tuple[int, ...]:
        return self._cache(num_slots, self.max_source_tokens)

    @property
    def bytes_per_slot(self) -> int:
        """Return the memory reserved per slot for its longest source and whole capacity, used or not."""
        return (math.prod(self.self_cache(1)) + math.prod(self.cross_cache(1))) * np.dtype(_CACHED).itemsize

    def _cache(self, num_slots: int, num_tokens: int) -> tuple[int, ...]:
        padded_head_size, num_blocks = -(-self.model.head_size // 16) * 16, -(-num_tokens // fused_io.BLOCK_TOKENS)
        width = fused_io.BLOCK_TOKENS * padded_head_size
        return num_slots, self.model.num_decoder_layers, num_blocks, self.model.num_heads, 2, width


@dataclass(frozen=True, slots=True)
class _Encoding:
    """A binding of an encoder run of some number of sources, whose arrays of int32 have one entry for each."""

    binding: Binding
    ends: memoryview
    slots: memoryview
    is_finite: memoryview
    most_repeats: memoryview


@dataclass(frozen=True, slots=True)
class FusedGraphs:
    """A bundle's fused graphs; `spec` is of a runner of one slot."""

    encoder: GraphSession
    decoder: GraphSession
    model: ModelShape
    spec: RunnerSpec
    records_attention: bool
    attention_reads: bool  # whether a token's attention is that of the step that reads it, not of the one before

    @classmethod
    def load(
        cls, directory: Path, manifest: Manifest, config: EngineConfig, operators: Path, session_config: SessionConfig
    ) -> "FusedGraphs":
        graphs, limits, tokens = manifest.graphs, manifest.limits, manifest.tokenizer
        weights = Weights(directory)
        one_thread = dataclasses.replace(session_config, intra_op_threads=1)
        encoder, decoder = (
            GraphSession(
                directory / name,
                one_thread,
                fused_io.inputs_of(operator, manifest.model),
                outputs,
                operators=operators,
                weights=weights.of(name),
            )
            for name, operator, outputs in (
                (graphs.encoder, fused_io.ENCODE, fused_io.ENCODE_OUTPUTS),
                (graphs.decoder_step, fused_io.DECODE, fused_io.DECODE_OUTPUTS),
            )
        )
        kv_capacity = config.kv_capacity or limits.max_output_tokens + manifest.longest_target_prefix
        spec = RunnerSpec(
            max_slots=1,
            kv_capacity=kv_capacity,
            max_source_tokens=limits.max_source_tokens,
            eos_id=tokens.eos_id,
            decoder_start_id=tokens.decoder_start_id,
            bytes_per_slot=0,
            has_logits=True,
            renormalizes=manifest.renormalizes,
            pads_sources=False,
        )
        made = cls(encoder, decoder, manifest.model, spec, manifest.records_attention, graphs.alignment_reads)
        bytes_per_slot = made.shape.bytes_per_slot + 4 * (manifest.model.shortlist_size + 1)
        if made.records_attention:
            bytes_per_slot += kv_capacity * limits.max_source_tokens * np.dtype(np.float32).itemsize
        return dataclasses.replace(made, spec=dataclasses.replace(spec, bytes_per_slot=bytes_per_slot))

    @property
    def shape(self) -> FusedShape:
        return FusedShape(self.model, self.spec.kv_capacity, self.spec.max_source_tokens)


class FusedRunner:
    """Implements `runner.Runner`.

    Workers share sessions, but not caches, whose rows are the slots: they never move, so neither does bound memory.
    Operators have threads of their own: all for a worker alone, else a share.
    """

    def __init__(
        self,
        graphs: FusedGraphs,
        spec: RunnerSpec,
        *,
        threads: tuple[int, int] = (1, 1),
        at_work: set["FusedRunner"] | None = None,
    ) -> None:
        """Use the first of `threads` while alone, the second beside others; share `at_work`, the runners with rows."""
        self.spec = spec
        self._threads = threads
        self._at_work = set() if at_work is None else at_work
        self._num_threads = np.ones(1, np.int32)
        self._graphs = graphs
        self._encoder, self._decoder = graphs.encoder, graphs.decoder
        self.control = Control(spec)
        self._encodings: dict[int, _Encoding] = {}  # by the number of sources
        self._reserve(spec.max_source_tokens)
        self._num_steps = np.zeros(1, np.int32)  # the operator's only output; `control` has it too
        self._is_terminated = False
        self._state: SearchState | None = None
        self._search: Binding | None = None
        self._clear_all()

    @classmethod
    def for_workers(
        cls, graphs: FusedGraphs, config: EngineConfig, session_config: SessionConfig, workers: int
    ) -> "list[FusedRunner]":
        spec = dataclasses.replace(graphs.spec, max_slots=(config.max_slots or FIRST_SLOTS * workers) // workers)
        total = session_config.intra_op_threads or available_cpus()
        threads, at_work = (total, max(total // workers, 1)), set[FusedRunner]()
        return [cls(graphs, spec, threads=threads, at_work=at_work) for _ in range(workers)]

    def attach(self, state: SearchState) -> None:
        assert len(state.rows) == self.spec.max_slots, f"{len(state.rows)} rows, {self.spec.max_slots} slots"
        self._state = state
        self._source_slots = state.rows["source_slot"].data
        self._max_repeats = state.rows["max_repeats"].data
        self._search = None

    def resize(self, max_slots: int) -> None:
        """Reserve a different number of slots; clears all. No engine may run on this runner."""
        self.spec = dataclasses.replace(self.spec, max_slots=max_slots)
        self._state = None
        self._clear_all()

    def encode(self, jobs: Sequence[EncodeJob]) -> list[bool]:
        self._check_terminated()
        assert self._state is not None, "encode before attach"
        self._at_work.add(self)
        self._num_threads[0] = self._threads[len(self._at_work) > 1]
        ends = list(itertools.accumulate([len(job.source_ids) for job in jobs]))
        if ends[-1] > len(self._token_ids):
            self._reserve(2 * ends[-1])
        encoding = self._encodings.get(len(jobs))
        if encoding is None:
            encoding = self._encodings[len(jobs)] = self._encoding(len(jobs))
        start = 0
        for number, (job, end) in enumerate(zip(jobs, ends, strict=True)):
            self._token_view[start:end] = array("q", job.source_ids)
            encoding.ends[number], encoding.slots[number] = end, self._source_slots[job.rows[0]]
            start = end
        self._encoder.run(encoding.binding)
        self._check_terminated()
        max_repeats = self._max_repeats
        for job, most_repeats in zip(jobs, encoding.most_repeats.tolist(), strict=True):
            if most_repeats > max_repeats[job.rows[0]]:
                for row in job.rows:
                    max_repeats[row] = most_repeats
        return list(map(bool, encoding.is_finite.tolist()))

    def search(self, num_rows: int, limits: RunLimits) -> SearchRun:
        self._check_terminated()
        if self._search is None:
            self._search = self._bind()
        num_threads = self._threads[len(self._at_work) > 1]
        self.control.write(num_rows, limits, num_threads)
        self._decoder.run(self._search)
        self._check_terminated()
        return self.control.read()

    def attention(self, slots: Sequence[int], num_sources: int) -> Attention | None:
        """A cut hypothesis' last token is never read: the step that predicts it stands for the one that reads it."""
        if not self._graphs.records_attention:
            return None
        _, *size = self._attention.shape
        places = np.arange(len(slots))
        if self._graphs.attention_reads:
            places = np.minimum(places + 1, len(slots) - 1)
        starts = np.array(slots)[places] * math.prod(size) + places * num_sources
        return self._attention.reshape(-1).take(starts[:, np.newaxis] + np.arange(num_sources))

    def move(self, source_row: int, target_row: int, length: int) -> None:
        """Do nothing: the rows' slots stay where they are."""

    def clear(self, rows: Sequence[int]) -> None:
        assert self._state is not None, "clear before attach"
        for row in rows:
            self._self_cache[self._state.rows["slot"][row]] = 0
            self._cross_cache[self._state.rows["source_slot"][row]] = 0

    def idle(self) -> None:
        self._at_work.discard(self)

    def reset(self) -> None:
        self.idle()
        self._encoder.reset()
        self._decoder.reset()
        self._is_terminated = False
        self.control.clear_interrupt()
        self._clear_all()

    def terminate(self) -> None:
        self._is_terminated = True
        self._encoder.terminate()
        self._decoder.terminate()
        self.control.interrupt()  # last: a run that it ends must find that it was terminated

    def _check_terminated(self) -> None:
        if self._is_terminated:
            raise RunTerminated("the run was terminated")

    def _clear_all(self) -> None:
        """Zero all slots: the new memory is not touched before it is used."""
        self._search = None
        self._encodings.clear()
        num_slots, graphs = self.spec.max_slots, self._graphs
        self._self_cache = self._cross_cache = np.empty(0, _CACHED)  # first: old and new need not fit together
        self._self_cache = _sparse_zeros(graphs.shape.self_cache(num_slots), _CACHED)
        self._cross_cache = _sparse_zeros(graphs.shape.cross_cache(num_slots), _CACHED)
        self._shortlists = _sparse_zeros((num_slots, graphs.model.shortlist_size + 1), np.int32)
        self._attention = np.zeros((0, 0, 0), np.float32)  # (N, C, W), by slots
        if graphs.records_attention:
            self._attention = _sparse_zeros((num_slots, self.spec.kv_capacity, self.spec.max_source_tokens), np.float32)

    def _reserve(self, num_tokens: int) -> None:
        """Make room for the tokens of sources, which stays bound, as binding takes longer than copying."""
        self._encodings.clear()
        self._token_ids = np.zeros(num_tokens, np.int64)
        self._token_view = self._token_ids.data.cast("B").cast("q")  # as `array` has them

    def _encoding(self, num_sources: int) -> _Encoding:
        ends, slots, is_finite, most_repeats = (np.zeros(num_sources, np.int32) for _ in range(4))
        memory: tuple[npt.NDArray[Any], ...] = (
            self._token_ids,
            ends,
            slots,
            self._cross_cache,
            self._num_threads,
            self._shortlists,
        )
        inputs = dict(zip(fused_io.inputs_of(fused_io.ENCODE, self._graphs.model), memory, strict=False))
        outputs = dict(zip(fused_io.ENCODE_OUTPUTS, (is_finite, most_repeats), strict=True))
        return _Encoding(
            self._encoder.bind(inputs, outputs), *(each.data for each in (ends, slots, is_finite, most_repeats))
        )

    def _bind(self) -> Binding:
        assert self._state is not None, "search before attach"
        state = self._state
        inputs: tuple[npt.NDArray[Any], ...] = (
            self.control.fields,
            state.raw_rows,
            state.output_ids,
            state.history,
            state.hypotheses.view(np.uint8).reshape(len(state.hypotheses), -1),
            state.hypothesis_ids,
            self._self_cache,
            self._cross_cache,
            self._attention,
            self._shortlists,
        )
        names = fused_io.inputs_of(fused_io.DECODE, self._graphs.model)
        buffers = {name: Buffer.of(array) for name, array in zip(names, inputs, strict=False)}
        return self._decoder.bind(buffers, {fused_io.DECODE_OUTPUTS[0]: self._num_steps})


def _sparse_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros that begin with a page and take no memory before they are used, page by page.

    Most slots are never used up, as most rows are short. NumPy asks for huge pages of 2 MiB, with which all of it takes
    memory; they are not faster here, as a block of 16 tokens is several small pages.
    """
    memory = mmap.mmap(-1, math.prod(shape) * np.dtype(dtype).itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype).reshape(shape)
