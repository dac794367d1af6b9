"""The runner that serves: a bundle's two graphs in ONNX Runtime, on the rows of a `KVCache`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy import typing as npt

from service.bundle import graph_io
from service.bundle.manifest import Manifest
from service.engine.config import EngineConfig
from service.engine.kv_cache import Array, KVCache
from service.engine.runner import EncodeJob, Fetch, RunnerSpec, StepOutput
from service.engine.session import Binding, GraphSession, SessionConfig

_MAX_BINDINGS = 512


class OnnxRunner:
    """Implements `runner.Runner`.

    Bindings are kept per number of rows, source bucket and kind of step, as setting one up costs more Python time
    than the rest of a step; the arrays behind them never move.
    """

    def __init__(
        self,
        encoder: GraphSession,
        decoder_step: GraphSession,
        cache: KVCache,
        spec: RunnerSpec,
        *,
        pad_id: int,
        vocabulary_size: int,
        max_encode_tokens: int,
    ) -> None:
        self.spec = spec
        self._encoder = encoder
        self._decoder_step = decoder_step
        self._cache = cache
        self._pad_id = pad_id
        self._vocabulary_size = vocabulary_size
        num_layers, (num_heads, head_size) = cache.num_layers, cache.row_shape
        self._cross_names = graph_io.cross_names(num_layers)
        self._past_names = graph_io.past_names(num_layers)
        self._present_names = graph_io.present_names(num_layers)
        most_tokens = max(max_encode_tokens, spec.max_source_tokens)
        self._encoded: Array = np.zeros((2 * num_layers, most_tokens * num_heads * head_size), cache.self_arenas.dtype)
        self._bindings: dict[tuple[int, int, Fetch], Binding] = {}
        self._token_ids = np.zeros(spec.max_slots, np.int64)
        self._lengths = np.zeros(spec.max_slots, np.int32)
        self._source_lengths = np.zeros(spec.max_slots, np.int32)
        self._total_length = np.zeros(1, np.int32)
        self._next_ids = np.zeros(spec.max_slots, np.int64)
        self._next_log_probs = np.zeros(spec.max_slots, np.float32)

    @classmethod
    def load(
        cls, directory: Path, manifest: Manifest, config: EngineConfig, session_config: SessionConfig
    ) -> "OnnxRunner":
        """Open a bundle's graphs and reserve the rows.

        Raises:
            DeviceUnavailable: the device can't be used here.
            BundleError: a graph can't be opened, or does not fit the contract.
        """
        model, limits, tokens = manifest.model, manifest.limits, manifest.tokenizer
        num_layers = model.num_decoder_layers
        encoder = GraphSession(
            directory / manifest.graphs.encoder,
            session_config,
            graph_io.encoder_inputs(),
            graph_io.cross_names(num_layers),
        )
        decoder_step = GraphSession(
            directory / manifest.graphs.decoder_step,
            session_config,
            graph_io.step_inputs(num_layers),
            graph_io.step_outputs(num_layers),
        )
        longest_prefix = max(len(pair.target_prefix_ids) for pair in manifest.languages)
        kv_capacity = config.kv_capacity or limits.max_output_tokens + longest_prefix
        cache = KVCache(
            num_layers,
            model.num_heads,
            model.head_size,
            config.max_slots,
            kv_capacity,
            limits.max_source_tokens,
            decoder_step.input_dtype(graph_io.past_names(num_layers)[0]),
        )
        return cls(
            encoder,
            decoder_step,
            cache,
            RunnerSpec(config.max_slots, kv_capacity, limits.max_source_tokens, tokens.eos_id, tokens.decoder_start_id),
            pad_id=tokens.pad_id,
            vocabulary_size=model.vocabulary_size,
            max_encode_tokens=config.max_encode_tokens,
        )

    def encode(self, jobs: Sequence[EncodeJob]) -> list[bool]:
        """See `Runner.encode`."""
        lengths = np.array([len(job.source_ids) for job in jobs], np.int32)
        num_sources, longest = len(jobs), int(lengths.max())
        source_ids = np.full((num_sources, longest), self._pad_id, np.int64)
        for row, job in zip(source_ids, jobs, strict=True):
            row[: len(job.source_ids)] = job.source_ids
        num_heads, head_size = self._cache.row_shape
        shape = (num_sources, num_heads, longest, head_size)
        cross = [flat[: num_sources * num_heads * longest * head_size].reshape(shape) for flat in self._encoded]
        binding = self._encoder.bind(
            {graph_io.SOURCE_IDS: source_ids, graph_io.SOURCE_LENGTHS: lengths},
            dict(zip(self._cross_names, cross, strict=True)),
        )
        self._encoder.run(binding)
        self._cache.reserve_source(longest, num_live=min(job.rows[0] for job in jobs))
        for index, job in enumerate(jobs):
            self._cache.write_cross(job.rows, cross, index, len(job.source_ids))
        sums = sum(part.sum(axis=(1, 2, 3), dtype=np.float64) for part in cross)
        return [bool(np.isfinite(total)) for total in np.atleast_1d(sums)]

    def step(
        self,
        token_ids: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int32],
        source_lengths: npt.NDArray[np.int32],
        fetch: Fetch,
    ) -> StepOutput:
        """See `Runner.step`."""
        num_rows = len(token_ids)
        self._cache.fit_source(int(source_lengths.max()), num_rows)
        self._token_ids[:num_rows] = token_ids
        self._lengths[:num_rows] = lengths
        self._source_lengths[:num_rows] = source_lengths
        self._total_length[0] = lengths.max() + 1
        binding = self._binding(num_rows, fetch)
        self._decoder_step.run(binding)
        outputs = binding.outputs
        return StepOutput(
            outputs.get(graph_io.NEXT_IDS),
            outputs.get(graph_io.NEXT_LOG_PROBS),
            outputs.get(graph_io.CANDIDATE_IDS),
            outputs.get(graph_io.CANDIDATE_LOG_PROBS),
        )

    def move(self, source_row: int, target_row: int, length: int) -> None:
        """See `Runner.move`."""
        self._cache.move(source_row, target_row, length)

    def reorder(self, source_rows: Sequence[int], target_rows: Sequence[int], lengths: Sequence[int]) -> None:
        """See `Runner.reorder`."""
        self._cache.reorder(source_rows, target_rows, lengths)

    def clear(self, rows: Sequence[int]) -> None:
        """See `Runner.clear`."""
        self._cache.clear(rows)

    def reset(self) -> None:
        """See `Runner.reset`."""
        self._encoder.reset()
        self._decoder_step.reset()
        self._bindings.clear()
        self._cache.clear_all()

    def terminate(self) -> None:
        """See `Runner.terminate`."""
        self._encoder.terminate()
        self._decoder_step.terminate()

    def _binding(self, num_rows: int, fetch: Fetch) -> Binding:
        key = (num_rows, self._cache.source_bucket, fetch)
        if key not in self._bindings:
            if len(self._bindings) >= _MAX_BINDINGS:
                self._bindings.clear()
            self._bindings[key] = self._bind(num_rows, fetch)
        return self._bindings[key]

    def _bind(self, num_rows: int, fetch: Fetch) -> Binding:
        """Bind the first `num_rows` rows of everything. K = 0 tells the graph that no log-probabilities are wanted."""
        rows = slice(0, num_rows)
        num_candidates = min(fetch.num_candidates, self._vocabulary_size)
        inputs: dict[str, Array] = {
            graph_io.TOKEN_IDS: self._token_ids[rows],
            graph_io.LENGTHS: self._lengths[rows],
            graph_io.TOTAL_LENGTH: self._total_length,
            graph_io.SOURCE_LENGTHS: self._source_lengths[rows],
            graph_io.NUM_CANDIDATES: np.array([num_candidates or int(fetch.next_log_probs)], np.int64),
        }
        outputs: dict[str, Array] = {}
        for part, (past, present) in enumerate(zip(self._past_names, self._present_names, strict=True)):
            inputs[past] = outputs[present] = self._cache.self_arenas[part, rows]
        for part, name in enumerate(self._cross_names):
            inputs[name] = self._cache.cross_views[part, rows]
        if fetch.next_ids:
            outputs[graph_io.NEXT_IDS] = self._next_ids[rows]
        if fetch.next_log_probs:
            outputs[graph_io.NEXT_LOG_PROBS] = self._next_log_probs[rows]
        if num_candidates:
            outputs[graph_io.CANDIDATE_IDS] = np.zeros((num_rows, num_candidates), np.int64)
            outputs[graph_io.CANDIDATE_LOG_PROBS] = np.zeros((num_rows, num_candidates), np.float32)
        return self._decoder_step.bind(inputs, outputs)
