"""Times encoder runs and steps of a bundle's runner, opened as the server opens it, without the engine."""

import time
from pathlib import Path

import numpy as np

from service.bundle import fused_io
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from service.engine.batch import Batch
from service.engine.config import EngineConfig
from service.engine.runner import ONE_STEP, EncodeJob
from service.engine.runtime.runners import open_runners
from service.engine.runtime.session import SessionConfig
from service.engine.sequence import Sequence


class RunnerSteps:
    """One runner, which has all threads, with rows for up to `slots` sequences of `capacity` tokens."""

    def __init__(self, bundle: Path, slots: int, capacity: int, threads: int) -> None:
        """Open a bundle; `threads` 0 means one per CPU."""
        manifest = Manifest.load(bundle)
        config = EngineConfig(max_slots=slots, kv_capacity=capacity, max_encode_tokens=slots * capacity)
        # A single worker: with few slots there is no more than one.
        opened = open_runners(bundle, manifest, config, SessionConfig(intra_op_threads=threads))
        self.kernels = opened.kernels
        self._runner = opened.runners[0]
        if self._runner.spec.max_slots != slots:
            self._runner.resize(slots)
        self._vocabulary_size = manifest.model.vocabulary_size
        self._runner.reset()

    def time(self, batch_size: int, source_tokens: int, num_steps: int) -> tuple[float, float]:
        """Return seconds of one encoder run, and mean seconds of a step over `num_steps` from empty caches.

        Sources are random. Rows don't end: each step reads the start token.
        """
        runner, spec = self._runner, self._runner.spec
        batch = Batch(spec.max_slots, spec.kv_capacity)
        runner.attach(batch.state)
        options = DecodingOptions(beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=spec.kv_capacity)
        rng = np.random.default_rng(1)
        sources = rng.integers(40, self._vocabulary_size, (batch_size, source_tokens)).tolist()
        jobs = [
            EncodeJob(source, batch.join(Sequence(tuple(source), options, 0.0), spec.decoder_start_id))
            for source in sources
        ]
        began = time.perf_counter()
        runner.encode(jobs)
        encoded = time.perf_counter()
        rows = batch.state.rows[:batch_size]
        for length in range(num_steps):
            rows["token_id"], rows["length"], rows["status"] = spec.decoder_start_id, length, fused_io.RUNNING
            runner.search(batch_size, ONE_STEP)
        seconds = (time.perf_counter() - encoded) / num_steps
        runner.idle()
        return encoded - began, seconds
