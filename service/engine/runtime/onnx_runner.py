"""The production runner: a bundle's two graphs in ONNX Runtime, on the rows of a `KVCache`."""

import contextlib
import copy
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from service.bundle import graph_io
from service.bundle.manifest import Manifest
from service.engine.batch import SearchState
from service.engine.config import FIRST_SLOTS, EngineConfig
from service.engine.runner import Control, EncodeJob, RunLimits, RunnerSpec, SearchRun
from service.engine.runtime.device_cache import DeviceCache
from service.engine.runtime.host_cache import HostCache
from service.engine.runtime.kv_cache import CacheShape, KVCache
from service.engine.runtime.session import Array, Binding, Buffer, SessionConfig
from service.engine.runtime.shared_graph import SharedGraph, num_workers
from service.engine.runtime.step_search import Need, Step, StepInputs, StepSearch
from service.engine.runtime.weights import Weights
from service.engine.sequence import Attention


class OnnxRunner:
    """Implements `runner.Runner`.

    A step runs the decoder's graph; between steps the search chooses the tokens (`StepSearch`). Bindings are cached per
    number of rows, source bucket and kind of step, as creating one costs more Python time than the rest of a step;
    their memory never moves. Only requested outputs are copied to the host.
    """

    def __init__(
        self,
        encoder: SharedGraph,
        decoder_step: SharedGraph,
        shape: CacheShape,
        spec: RunnerSpec,
        session_config: SessionConfig,
        *,
        pad_id: int,
        vocabulary_size: int,
        at_work: set["OnnxRunner"],
    ) -> None:
        """Share `at_work` with the model's other runners: those that have rows."""
        self.spec = spec
        self._at_work = at_work
        self.encoder = encoder
        self._decoder_step = decoder_step
        self._session_config = session_config
        self._pad_id = pad_id
        self._vocabulary_size = vocabulary_size
        num_layers, is_recurrent = shape.num_layers, shape.past.is_state
        self._source_names = graph_io.source_names(num_layers, has_shortlists=shape.listed_width > 0)
        self._past_names = graph_io.past_names(num_layers, is_recurrent=is_recurrent)
        self._present_names = graph_io.present_names(num_layers, is_recurrent=is_recurrent)
        self._reserve(shape)

    @classmethod
    def load_for_workers(
        cls,
        directory: Path,
        manifest: Manifest,
        config: EngineConfig,
        session_config: SessionConfig,
        weights: Weights | None = None,
    ) -> "list[OnnxRunner]":
        """Open a bundle's graphs like `load`, with a runner for each of `num_workers` workers; they share the slots."""
        workers = num_workers(session_config, config.max_slots)
        if config.max_slots is not None:
            config = dataclasses.replace(config, max_slots=config.max_slots // workers)
        first = cls.load(directory, manifest, config, session_config, workers, weights)
        return [first, *(first.beside() for _ in range(workers - 1))]

    @classmethod
    def load(
        cls,
        directory: Path,
        manifest: Manifest,
        config: EngineConfig,
        session_config: SessionConfig,
        workers: int = 1,
        weights: Weights | None = None,
    ) -> "OnnxRunner":
        """Open a bundle's graphs for some number of workers, and reserve one worker's rows."""
        model, limits, tokens = manifest.model, manifest.limits, manifest.tokenizer
        num_layers, is_recurrent = model.num_decoder_layers, model.is_recurrent
        has_shortlists = model.has_shortlists
        inputs = graph_io.step_inputs(num_layers, is_recurrent=is_recurrent, has_shortlists=has_shortlists)
        encoder = SharedGraph(
            directory / manifest.graphs.encoder,
            session_config,
            graph_io.encoder_inputs(),
            graph_io.source_names(num_layers, has_shortlists=has_shortlists),
            workers,
            weights=weights,
        )
        decoder_step = SharedGraph(
            directory / manifest.graphs.decoder_step,
            session_config,
            inputs,
            graph_io.step_outputs(num_layers, is_recurrent=is_recurrent),
            workers,
            graph_io.SCORE_OUTPUTS,
            weights,
        )
        kv_capacity = config.kv_capacity or limits.max_output_tokens + manifest.longest_target_prefix
        shape = CacheShape(
            num_layers=num_layers,
            num_heads=model.num_heads,
            head_size=model.head_size,
            max_slots=config.max_slots or FIRST_SLOTS,
            kv_capacity=kv_capacity,
            max_source_tokens=limits.max_source_tokens,
            max_encode_tokens=config.max_encode_tokens,
            dtype=decoder_step.input_dtype(graph_io.cross_names(num_layers)[0]),
            state_size=model.state_size,
            listed_width=graph_io.listed_width(model.vocabulary_size) if has_shortlists else 0,
        )
        spec = RunnerSpec(
            max_slots=shape.max_slots,
            kv_capacity=kv_capacity,
            max_source_tokens=limits.max_source_tokens,
            eos_id=tokens.eos_id,
            decoder_start_id=tokens.decoder_start_id,
            bytes_per_slot=shape.bytes_per_slot,
            has_logits=decoder_step.has_optional_outputs,
            renormalizes=manifest.renormalizes,
        )
        return cls(
            encoder,
            decoder_step,
            shape,
            spec,
            session_config,
            pad_id=tokens.pad_id,
            vocabulary_size=model.vocabulary_size,
            at_work=set(),
        )

    @property
    def control(self) -> Control:
        return self._search.control

    @property
    def is_alone(self) -> bool:
        """Return whether no other runner of the model has rows, so that this one may use all threads."""
        return len(self._at_work) <= 1

    def beside(self) -> "OnnxRunner":
        """Create another runner on the same graphs, with as many rows of its own, for another thread."""
        other = copy.copy(self)
        other._reserve(self._shape)
        return other

    def resize(self, max_slots: int) -> None:
        """Reserve a different number of rows; clears all rows. No engine may run on this runner."""
        self.spec = dataclasses.replace(self.spec, max_slots=max_slots)
        self._bindings.clear()
        with contextlib.suppress(AttributeError):  # some are not there after a device had no memory for as many rows
            del self._cache, self._inputs, self._search  # first: old and new rows need not fit into memory together
        self._reserve(dataclasses.replace(self._shape, max_slots=max_slots))

    def _reserve(self, shape: CacheShape) -> None:
        self._shape, config = shape, self._session_config
        is_on_host = config.device == "cpu"
        self._cache: KVCache = HostCache(shape) if is_on_host else DeviceCache(shape, config)
        self._inputs = StepInputs(shape.max_slots, None if is_on_host else config.device)
        self._search = StepSearch(self.spec, self._vocabulary_size, self._inputs)
        self._bindings: dict[tuple[int, int, Need, bool], Binding] = {}
        self._total_length = np.zeros(1, np.int32)

    def attach(self, state: SearchState) -> None:
        self._search.attach(state)

    def encode(self, jobs: Sequence[EncodeJob]) -> list[bool]:
        self._at_work.add(self)
        lengths = np.array([len(job.source_ids) for job in jobs], np.int32)
        width = self._cache.encoder_width(int(lengths.max()))
        source_ids = np.full((len(jobs), width), self._pad_id, np.int64)
        for row, job in zip(source_ids, jobs, strict=True):
            row[: len(job.source_ids)] = job.source_ids
        encoded = self._cache.encoder_outputs(len(jobs), width)
        session = self.encoder.session(is_alone=self.is_alone)
        binding = session.bind(
            {graph_io.SOURCE_IDS: source_ids, graph_io.SOURCE_LENGTHS: lengths},
            dict(zip(self._source_names, encoded, strict=True)),
        )
        session.run(binding)
        for job in jobs:
            self._search.raise_guards(*job)
        rows = [job.rows for job in jobs]
        return self._cache.store_sources(rows, lengths.tolist(), num_live=min(own_rows[0] for own_rows in rows))

    def search(self, num_rows: int, limits: RunLimits) -> SearchRun:
        return self._search.run(num_rows, limits, self._step, self._cache.reorder)

    def move(self, source_row: int, target_row: int, length: int) -> None:
        self._cache.move(source_row, target_row, length)

    def clear(self, rows: Sequence[int]) -> None:
        self._cache.clear(rows)

    def attention(self, slots: Sequence[int], num_sources: int) -> Attention | None:
        """`Aligner` computes it."""
        return None

    def idle(self) -> None:
        self._at_work.discard(self)

    def reset(self) -> None:
        self.idle()
        self.encoder.reset()
        self._decoder_step.reset()
        self.control.clear_interrupt()
        self._bindings.clear()
        self._cache.clear_all()

    def terminate(self) -> None:
        self.encoder.terminate()
        self._decoder_step.terminate()

    def _step(self, step: Step) -> None:
        num_rows, need, total_length, longest_source = step
        self._cache.prepare_step(longest_source, num_rows)
        self._inputs.send()
        self._total_length[0] = total_length
        is_alone = self.is_alone
        key = num_rows, self._cache.source_bucket, need, is_alone
        binding = self._bindings.get(key)
        if binding is None:
            if len(self._bindings) >= 512:
                self._bindings.clear()
            binding = self._bindings[key] = self._bind(num_rows, need, is_alone)
        self._decoder_step.session(is_alone=is_alone).run(binding)

    def _bind(self, num_rows: int, need: Need, is_alone: bool) -> Binding:
        """Bind the first `num_rows` rows of all tensors. K = 0 tells the graph to compute no log-probabilities."""
        past, search = self._cache.past(num_rows), self._search
        inputs: dict[str, Array | Buffer] = {
            graph_io.TOTAL_LENGTH: self._total_length,
            graph_io.NUM_CANDIDATES: np.array([need.num_candidates or need.log_probs or need.log_totals], np.int64),
            **self._inputs.buffers(num_rows),
            **dict(zip(self._past_names, past, strict=True)),
            **dict(zip(self._source_names, self._cache.cross(num_rows), strict=True)),
        }
        outputs: dict[str, Array | Buffer] = dict(zip(self._present_names, past, strict=True))
        outputs[graph_io.NEXT_IDS] = search.next_ids[:num_rows]
        if need.log_probs:
            outputs[graph_io.NEXT_LOG_PROBS] = search.next_log_probs[:num_rows]
        if need.num_candidates:
            ids, log_probs = search.candidates(num_rows, need.num_candidates)
            outputs |= {graph_io.CANDIDATE_IDS: ids, graph_io.CANDIDATE_LOG_PROBS: log_probs}
        if need.logits:
            outputs[graph_io.LOGITS] = search.logits(num_rows)
        if need.log_totals:
            outputs[graph_io.LOG_TOTALS] = search.log_totals[:num_rows]
        return self._decoder_step.session(is_alone=is_alone).bind(inputs, outputs)
