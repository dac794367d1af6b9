"""Runs the float32 graphs on calibration sentences and records the inputs of every dense layer."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx_ir
from numpy import typing as npt

from export.graphs.execution import AlignmentRun, GraphPair
from export.quantization.dense_nodes import dense_nodes
from export.quantization.ranges import Histogram
from service.bundle.manifest import Manifest

BATCH_SIZE = 16
Row = tuple[Sequence[int], Sequence[int]]  # source ids, and the decoder's input: start id, forced prefix, output


def observe(directory: Path, manifest: Manifest, rows: Sequence[Row]) -> dict[str, dict[str, Histogram]]:
    """Return histograms of every dense layer's input, by graph file and value name, over all live tokens of `rows`."""
    histograms: dict[str, dict[str, Histogram]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in manifest.graphs.plain:
            model = onnx_ir.load(directory / name)
            histograms[name] = {value.name or "": Histogram() for value in _expose_inputs(model)}
            onnx_ir.save(model, Path(folder) / name)
        graphs = manifest.graphs
        pair = GraphPair(Path(folder) / graphs.encoder, Path(folder) / graphs.decoder_step, manifest.model)
        alignment = AlignmentRun(Path(folder) / graphs.alignment, pair) if graphs.alignment else None
        for take in (Histogram.widen, Histogram.count):
            for batch in _batches(rows):
                for graph, value, values in _observed(pair, manifest, batch, histograms):
                    take(histograms[graph][value], values)
                if alignment is not None:
                    for value, values in _observed_aligning(alignment, manifest, batch, histograms):
                        take(histograms[graphs.alignment][value], values)
    return histograms


def _expose_inputs(model: onnx_ir.Model) -> list[onnx_ir.Value]:
    """Make every dense layer's input an output of the graph."""
    values = list(dict.fromkeys(dense.x for dense in dense_nodes(model.graph)))
    for value in values:
        value.type = onnx_ir.TensorType(onnx_ir.DataType.FLOAT)
        model.graph.outputs.append(value)
    return values


def _batches(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield batches of rows of similar lengths."""
    ordered = sorted(rows, key=lambda row: (len(row[0]), len(row[1])))
    for start in range(0, len(ordered), BATCH_SIZE):
        yield ordered[start : start + BATCH_SIZE]


def _observed(
    pair: GraphPair, manifest: Manifest, batch: list[Row], histograms: dict[str, dict[str, Histogram]]
) -> Iterator[tuple[str, str, npt.NDArray[np.float32]]]:
    """Yield (graph file, name, values of live tokens only) for the encoder run and every decoder step of a batch."""
    sources, fed = [source for source, _ in batch], [ids for _, ids in batch]
    lengths = np.array([len(source) for source in sources])
    is_live = (np.arange(lengths.max()) < lengths[:, None]).ravel()  # (B S,)
    encoder, decoder_step = manifest.graphs.encoder, manifest.graphs.decoder_step
    names = list(histograms[encoder])
    for name, values in zip(names, pair.fetch_encoded(sources, manifest.tokenizer.pad_id, names), strict=True):
        yield encoder, name, values[is_live]
    num_steps = max(map(len, fed))
    state = pair.start(sources, manifest.tokenizer.pad_id, num_steps)
    names = list(histograms[decoder_step])
    for step in range(num_steps):
        is_running = np.array([step < len(ids) for ids in fed])
        tokens = np.array([ids[step] if step < len(ids) else manifest.tokenizer.pad_id for ids in fed])
        for name, values in zip(names, state.fetch(tokens, names), strict=True):
            yield decoder_step, name, values[is_running]


def _observed_aligning(
    alignment: AlignmentRun, manifest: Manifest, batch: list[Row], histograms: dict[str, dict[str, Histogram]]
) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    """Yield (name, values of live tokens only) for the alignment run of a batch; rows without output are skipped."""
    read = [(source, ids[1:]) for source, ids in batch if len(ids) > 1]
    if not read:
        return
    sources, targets = zip(*read, strict=True)
    lengths = np.array([len(target) for target in targets])
    names = list(histograms[manifest.graphs.alignment])
    for name, values in zip(names, alignment.fetch(sources, targets, manifest.tokenizer.pad_id, names), strict=True):
        width = len(values) // len(targets)  # one more than the longest target if the graph also reads the last token
        yield name, values[(np.arange(width) < lengths[:, None]).ravel()]
