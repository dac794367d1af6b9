"""Padding gets no attention, however far below zero the scores of a row's own tokens are."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy import typing as npt

from export.alignment import AlignmentHeads
from export.graphs.dense import padded_head_size
from export.graphs.execution import AlignmentRun, GraphPair
from export.graphs.tracing import trace_alignment, trace_decoder_step, trace_encoder
from export.graphs.weights_file import WeightsFile
from service.bundle import graph_io
from service.bundle.manifest_parts import ModelShape
from tests.export.tiny_models import random_sources, tiny_config, tiny_model

GAIN = 100.0  # of queries and of keys: scores are beyond 100,000
VOCABULARY_SIZE = 120
LENGTHS = [2, 3, 4, 3, 2, 30]
SHAPE = ModelShape(num_decoder_layers=2, num_heads=4, head_size=padded_head_size(8), vocabulary_size=VOCABULARY_SIZE)

Sources = Sequence[tuple[int, ...]]
Rows = list[npt.NDArray[np.floating[Any]]]


@pytest.fixture(scope="module", params=["float32", "float16"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the graphs."""
    model, folder = tiny_model(tiny_config()), tmp_path_factory.mktemp("graphs")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("query.weight", "key.weight")):
                parameter.mul_(GAIN)
    model = model.half() if request.param == "float16" else model
    with WeightsFile(folder) as file:
        trace_encoder(model, folder / "encoder.onnx", file)
        trace_decoder_step(model, (), folder / "decoder_step.onnx", file)
        trace_alignment(model, AlignmentHeads(1, (0, 2)), folder / "alignment.onnx", file)
    return folder


def encoded(folder: Path, sources: Sources) -> Rows:
    """Return the first layer's keys of each source (H, S, D)."""
    (keys,) = _pair(folder).fetch_encoded(sources, 1, graph_io.cross_names(2)[:1])
    return [row[:, : len(source)] for row, source in zip(keys, sources, strict=True)]


def stepped(folder: Path, sources: Sources) -> Rows:
    """Return the log-probabilities (V,) of each source's fourth token."""
    state = _pair(folder).start(sources, 1, 3)
    for token in (2, 20, 30):
        ids, log_probs = state.candidates(np.full(len(sources), token), VOCABULARY_SIZE)
    return list(np.take_along_axis(log_probs, ids.argsort(axis=1), axis=1))


def aligned(folder: Path, sources: Sources) -> Rows:
    """Return the attention (T, S) of each source's translation; those of later sources are longer."""
    targets = [range(20, 22 + number) for number in range(len(sources))]
    run = AlignmentRun(folder / "alignment.onnx", _pair(folder), num_threads=1)
    return [each[:2] for each in run.attention(sources, targets, 1)]


def _pair(folder: Path) -> GraphPair:
    return GraphPair(folder / "encoder.onnx", folder / "decoder_step.onnx", SHAPE, num_threads=1)


def largest_change(run: Callable[[Path, Sources], Rows], folder: Path) -> float:
    """Return how much a row changes beside longer ones."""
    sources = random_sources(VOCABULARY_SIZE, LENGTHS)
    alone = [run(folder, [source])[0] for source in sources]
    beside = run(folder, sources)
    return float(np.max([np.abs(a - b).max() for a, b in zip(alone, beside, strict=True)]))  # NaN if one is


@pytest.mark.parametrize("run", [encoded, stepped, aligned])
def test_a_row_is_the_same_beside_longer_ones(
    run: Callable[[Path, Sources], Rows], folder: Path, tmp_path: Path
) -> None:
    assert largest_change(run, folder) < 1e-3
    # Controls: with other values in the graphs, padding wins.
    for masked in (-10_000.0, float(torch.finfo(torch.float16).min)):
        changed = tmp_path / str(masked)
        shutil.copytree(folder, changed)
        for path in changed.glob("*.onnx"):
            _mask(path, masked)
        assert largest_change(run, changed) > 0.1, masked


def _mask(path: Path, masked: float) -> None:
    graph = onnx.load(path, load_external_data=False)
    for node in graph.graph.node:
        for attribute in node.attribute:
            if attribute.name == "mask_filter_value":
                attribute.f = masked
    onnx.save(graph, path)


def test_scores_of_the_alignment_graph_are_float32(folder: Path) -> None:
    """Those of float16 would overflow on a device that computes in it."""
    graph = onnx.shape_inference.infer_shapes(onnx.load(folder / "alignment.onnx", load_external_data=False)).graph
    kinds = {value.name: value.type.tensor_type.elem_type for value in graph.value_info}
    (scores,) = (node for node in graph.node if node.op_type == "MatMul")
    assert [kinds[name] for name in scores.input] == [onnx.TensorProto.FLOAT] * 2
