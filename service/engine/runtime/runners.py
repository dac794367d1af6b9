"""Opens the graphs of a bundle: fused ones of an int8 bundle, otherwise plain ones."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from service.bundle.manifest import Manifest
from service.engine.config import EngineConfig
from service.engine.cpus import available_cpus
from service.engine.runtime.aligner import Aligner
from service.engine.runtime.fused_runner import FusedGraphs, FusedRunner
from service.engine.runtime.kernels import find_kernels
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.session import SessionConfig
from service.engine.runtime.shared_graph import num_workers
from service.engine.runtime.weights import Weights

_LOG = logging.getLogger(__name__)

PLAIN = "plain"

BundleRunner = OnnxRunner | FusedRunner


@dataclass(frozen=True, slots=True)
class Runners:
    """A model's runners, one per worker, what they run on, and its aligner.

    `kernels` is "plain", or "fused" and the instruction set. `aligner` is `None` without an alignment graph: fused
    graphs record attention.
    """

    runners: Sequence[BundleRunner]
    kernels: str
    aligner: Aligner | None


def open_runners(directory: Path, manifest: Manifest, config: EngineConfig, session_config: SessionConfig) -> Runners:
    if not manifest.is_fused:
        # On a GPU, ONNX Runtime copies weights there while it opens a graph.
        weights = Weights(directory, apart=True) if session_config.device == "cpu" else None
        plain = OnnxRunner.load_for_workers(directory, manifest, config, session_config, weights)
        return Runners(plain, PLAIN, Aligner.load(directory, manifest, plain[0].encoder, session_config, weights))
    kernels = find_kernels()
    graphs = FusedGraphs.load(directory, manifest, config, kernels.path, session_config)
    workers = _num_workers(directory, manifest, config, session_config)
    fused = FusedRunner.for_workers(graphs, config, session_config, workers)
    used = f"fused {kernels.instruction_set}"
    _LOG.info("%s runs on %s kernels", directory, used)
    return Runners(fused, used, None)


def _num_workers(directory: Path, manifest: Manifest, config: EngineConfig, session_config: SessionConfig) -> int:
    """Return how many workers should run fused graphs.

    Workers of one thread never wait for each other, but each reads all weights in each step: if these come from memory,
    one worker whose threads share its batch is faster.
    """
    num_bytes = sum((directory / name).stat().st_size for name in manifest.checksums)
    if num_bytes <= 16 * 2**20:  # which stay in the CPU's caches
        return num_workers(session_config, config.max_slots)
    most_threads = 4  # of a worker: they wait for each other some twenty times a step
    return -(-(session_config.intra_op_threads or available_cpus()) // most_threads)
