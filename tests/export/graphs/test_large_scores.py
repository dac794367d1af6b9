"""Padding gets no attention, however far below zero the scores of a row's own tokens are."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy import typing as npt
from onnx import numpy_helper

from export.graphs.execution import AlignmentRun, GraphPair
from service.bundle import graph_io
from service.bundle.manifest import Manifest
from tests.export.conftest import Converted
from tests.export.tiny_models import random_sources

GAIN = 100.0  # of queries and of keys: scores are beyond 100,000
LENGTHS = [2, 3, 4, 3, 2, 30]

Sources = Sequence[tuple[int, ...]]
Rows = list[npt.NDArray[np.floating[Any]]]


@pytest.fixture(scope="module", params=["native", "halves"])
def folder(
    request: pytest.FixtureRequest, conversions: Callable[[str], Converted], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a bundle, in float32 or float16, with larger weights."""
    folder = Path(shutil.copytree(conversions(request.param)[1], tmp_path_factory.mktemp("graphs") / "bundle"))
    for path in folder.glob("*.onnx"):
        model = onnx.load(path)
        for tensor in model.graph.initializer:
            values = numpy_helper.to_array(tensor).copy()
            if tensor.name.endswith(("query.weight", "key.weight")):
                values *= values.dtype.type(GAIN)
            elif tensor.name.endswith("packed.weight"):
                values[: len(values) * 2 // 3] *= values.dtype.type(GAIN)  # queries and keys
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        onnx.save(model, path)
    return folder


def encoded(folder: Path, sources: Sources) -> Rows:
    """Return the first layer's keys of each source (H, S, D)."""
    (keys,) = _pair(folder).fetch_encoded(sources, 1, graph_io.cross_names(1)[:1])
    return [row[:, : len(source)] for row, source in zip(keys, sources, strict=True)]


def stepped(folder: Path, sources: Sources) -> Rows:
    """Return the log-probabilities (V,) of each source's fourth token."""
    pair, suppressed = _pair(folder), list(Manifest.load(folder).suppressed_ids)
    state = pair.start(sources, 1, 3)
    for token in (2, 20, 30):
        ids, log_probs = state.candidates(np.full(len(sources), token), pair.shape.vocabulary_size)
    return list(np.delete(np.take_along_axis(log_probs, ids.argsort(axis=1), axis=1), suppressed, axis=1))


def aligned(folder: Path, sources: Sources) -> Rows:
    """Return the attention (T, S) of each source's translation; those of later sources are longer."""
    targets = [range(20, 22 + number) for number in range(len(sources))]
    run = AlignmentRun(folder / "alignment.onnx", _pair(folder), num_threads=1)
    return [each[:2] for each in run.attention(sources, targets, 1)]


def _pair(folder: Path) -> GraphPair:
    shape = Manifest.load(folder).model
    return GraphPair(folder / "encoder.onnx", folder / "decoder_step.onnx", shape, num_threads=1)


def largest_change(run: Callable[[Path, Sources], Rows], folder: Path) -> float:
    """Return how much a row changes beside longer ones."""
    sources = random_sources(120, LENGTHS)
    alone = [run(folder, [source])[0] for source in sources]
    beside = run(folder, sources)
    return float(np.max([np.abs(a - b).max() for a, b in zip(alone, beside, strict=True)]))  # NaN if one is


@pytest.mark.parametrize("run", [encoded, stepped, aligned])
def test_a_row_is_the_same_beside_longer_ones(
    run: Callable[[Path, Sources], Rows], folder: Path, tmp_path: Path
) -> None:
    assert largest_change(run, folder) < 1e-3
    # Controls: with other values in the graphs, padding wins.
    for masked in (-10_000.0, float(np.finfo(np.float16).min)):
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
