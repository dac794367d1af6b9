"""Chooses and opens the graphs of a bundle that fit this machine: fused ones if possible, otherwise plain ones."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from service.bundle import graph_io
from service.bundle.manifest import Manifest
from service.engine.config import EngineConfig
from service.engine.cpus import available_cpus
from service.engine.runtime.fused_runner import FusedRunner
from service.engine.runtime.kernels import Kernels, KernelsNotWanted, KernelsUnavailable, find_kernels
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.session import SessionConfig
from service.engine.runtime.shared_graph import SharedGraph, num_workers

_LOG = logging.getLogger(__name__)

PLAIN = "plain"
_CACHED_BYTES = 16 * 2**20  # of weights that a step reads: fewer stay in the CPU's caches
_MOST_THREADS = 4  # of a worker: they wait for each other some twenty times a step

BundleRunner = OnnxRunner | FusedRunner


@dataclass(frozen=True, slots=True)
class Runners:
    """A runner for each of a model's workers, and what they run on.

    `kernels` is "plain", or "fused" and the instruction set. `encoder` is the plain encoder; with fused graphs it is
    open only if the bundle has an alignment graph, which needs it.
    """

    runners: Sequence[BundleRunner]
    kernels: str
    encoder: SharedGraph | None


def open_runners(directory: Path, manifest: Manifest, config: EngineConfig, session_config: SessionConfig) -> Runners:
    """Open a bundle's graphs, for as many workers as there should be (`num_workers`).

    Raises:
        DeviceUnavailable: the device can't be used here.
        BundleError: a graph can't be opened, or does not match the expected interface.
    """
    try:
        names, kernels = _fused(manifest, session_config)
    except KernelsUnavailable as reason:
        level = logging.INFO if isinstance(reason, KernelsNotWanted) else logging.WARNING
        _LOG.log(level, "%s runs on ONNX Runtime's own kernels, which are slower: %s", directory, reason)
        plain = OnnxRunner.load_for_workers(directory, manifest, config, session_config)
        return Runners(plain, PLAIN, plain[0].encoder)
    workers = _num_workers(directory / manifest.graphs.decoder_step, config, session_config)
    fused = FusedRunner.load_for_workers(directory, manifest, names, kernels.path, config, session_config, workers)
    encoder = None
    if manifest.graphs.alignment:
        encoder = SharedGraph(
            directory / manifest.graphs.encoder,
            replace(session_config, intra_op_threads=1),
            graph_io.encoder_inputs(),
            graph_io.cross_names(manifest.model.num_decoder_layers),
            workers=1,
        )
    used = f"fused {kernels.instruction_set}"
    _LOG.info("%s runs on %s kernels", directory, used)
    return Runners(fused, used, encoder)


def _num_workers(decoder_step: Path, config: EngineConfig, session_config: SessionConfig) -> int:
    """Return how many workers should run fused graphs.

    Workers of one thread never wait for each other. But each reads all weights in each step: if these come from memory,
    which is what limits the speed, one worker whose threads share its batch reads them once.
    """
    if decoder_step.stat().st_size <= _CACHED_BYTES:
        return num_workers(session_config, config.max_slots)
    return -(-(session_config.intra_op_threads or available_cpus()) // _MOST_THREADS)


def _fused(manifest: Manifest, session_config: SessionConfig) -> tuple[tuple[str, str], Kernels]:
    """Return the names of a bundle's fused graphs, and the library for them.

    Raises:
        KernelsNotWanted: they are made for other bundles or devices, or switched off.
        KernelsUnavailable: they can't run here; says why.
    """
    graphs = manifest.graphs
    names = graphs.fused_encoder, graphs.fused_decoder
    if session_config.device != "cpu":
        raise KernelsNotWanted(f"the kernels are for the CPU, not for {session_config.device!r}")
    if manifest.precision != "int8":
        raise KernelsNotWanted(f"the kernels are for int8 bundles, and this is a {manifest.precision} one")
    if not all(names):
        raise KernelsNotWanted("the bundle has no fused graphs; export it again with 'make export'")
    return names, find_kernels()
