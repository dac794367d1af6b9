"""Traces the graphs with torch and writes them as ONNX files that depend only on weights and tool versions."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx_ir
import torch
from torch import Tensor, nn
from torch.export import Dim

from export.alignment import AlignmentHeads
from export.architecture.transformer import Transformer
from export.graphs.alignment_graph import AlignmentGraph
from export.graphs.decoder_step_graph import DecoderStepGraph
from export.graphs.dense import padded_head_size
from export.graphs.encoder_graph import EncoderGraph
from export.graphs.weights_file import INLINE_BYTES, WeightsFile
from service.bundle import graph_io

OPSET = 21


def trace_encoder(model: Transformer, path: Path, file: WeightsFile) -> None:
    config = model.config
    batch, length = Dim("B"), Dim("S", max=config.max_source_positions)
    example = (
        torch.full((2, 3), config.eos_id, dtype=torch.int64),
        torch.tensor([3, 2], dtype=torch.int32),
    )
    traced = _trace(
        EncoderGraph(model),
        example,
        ({0: batch, 1: length}, {0: batch}),
        graph_io.encoder_inputs(),
        graph_io.cross_names(config.num_decoder_layers),
    )
    _save(traced, path, file)


def trace_decoder_step(
    model: Transformer,
    suppressed_ids: Sequence[int],
    path: Path,
    file: WeightsFile,
    *,
    renormalizes: bool = False,
) -> None:
    config = model.config.of("decoder")
    num_layers, heads, size = config.num_decoder_layers, config.num_heads, padded_head_size(config.head_size)
    batch, length = Dim("B"), Dim("S")
    dtype = model.projection.weight.dtype
    is_recurrent = config.state_size > 0
    past_dims: list[dict[int, Any]]
    if is_recurrent:
        past = [torch.zeros(2, config.state_size, dtype=dtype) for _ in range(num_layers)]
        past_dims = [{0: batch}] * num_layers
    else:
        past = [torch.zeros(2, heads, 5, size, dtype=dtype) for _ in range(2 * num_layers)]
        past_dims = [{0: batch, 2: Dim("C")}] * (2 * num_layers)
    example = (
        torch.full((2,), config.eos_id, dtype=torch.int64),
        torch.tensor([0, 1], dtype=torch.int32),
        torch.tensor([2], dtype=torch.int32),
        torch.tensor([3, 2], dtype=torch.int32),
        torch.tensor([4], dtype=torch.int64),
        past,
        [torch.zeros(2, heads, 3, size, dtype=dtype) for _ in range(2 * num_layers)],
    )
    row = {0: batch}
    traced = _trace(
        DecoderStepGraph(model, suppressed_ids, renormalizes=renormalizes),
        example,
        (
            row,
            row,
            {},
            row,
            {},
            past_dims,
            [{0: batch, 2: length}] * (2 * num_layers),
        ),
        graph_io.step_inputs(num_layers, is_recurrent=is_recurrent),
        [*graph_io.step_outputs(num_layers, is_recurrent=is_recurrent), *graph_io.SCORE_OUTPUTS],
    )
    _save(traced, path, file)


def trace_alignment(model: Transformer, chosen: AlignmentHeads, path: Path, file: WeightsFile) -> None:
    config = model.config.of("decoder")
    heads, size = config.num_heads, padded_head_size(config.head_size)
    # If tokens are located where they are read, the last one takes an additional position.
    batch, source, target = Dim("B"), Dim("S"), Dim("T", max=config.max_target_positions - chosen.reads)
    names = graph_io.alignment_inputs(chosen.layer)
    num_cross = len(names) - 2
    example = (
        torch.full((2, 4), config.eos_id, dtype=torch.int64),
        torch.tensor([3, 2], dtype=torch.int32),
        [torch.zeros(2, heads, 3, size, dtype=model.projection.weight.dtype) for _ in range(num_cross)],
    )
    traced = _trace(
        AlignmentGraph(model, chosen),
        example,
        ({0: batch, 1: target}, {0: batch}, [{0: batch, 2: source}] * num_cross),
        names,
        [graph_io.ATTENTION],
    )
    _save(traced, path, file)


def _trace(
    module: nn.Module,
    example: tuple[Tensor | list[Tensor], ...],
    dynamic_shapes: tuple[Any, ...],
    input_names: list[str],
    output_names: list[str],
) -> onnx_ir.Model:
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            module.eval(),
            example,
            dynamo=True,
            dynamic_shapes=dynamic_shapes,
            opset_version=OPSET,
            input_names=input_names,
            output_names=output_names,
            verbose=False,
        )
    if program is None:
        raise RuntimeError(f"torch.onnx.export gave no program for {type(module).__name__}.")
    _declare_candidates(program.model)
    _strip(program.model)
    return program.model


def _save(model: onnx_ir.Model, path: Path, file: WeightsFile) -> None:
    """Write a graph, but its weights to `file`: graphs share them, and a protobuf message holds at most 2 GiB."""
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if tensor is not None and tensor.nbytes >= INLINE_BYTES:
            stored = onnx_ir.serde.deserialize_tensor(file.add(value.name or "", tensor.numpy()), str(path.parent))
            stored.name = value.name  # an equal one may be stored under another name
            value.const_value = stored
    onnx_ir.save(model, path)


def _declare_candidates(model: onnx_ir.Model) -> None:
    """Name the width of the candidate outputs K: torch could not express it and wrote 1."""
    for output in model.graph.outputs:
        if output.name in (graph_io.CANDIDATE_IDS, graph_io.CANDIDATE_LOG_PROBS) and output.shape is not None:
            output.shape = onnx_ir.Shape([output.shape[0], "K"])


def _strip(model: onnx_ir.Model) -> None:
    """Remove what identifies machine and run (source paths, stack traces), and inner shapes, where K is still 1."""
    declared = {*model.graph.inputs, *model.graph.outputs, *model.graph.initializers.values()}
    for item in (model, model.graph):
        item.metadata_props.clear()
        item.doc_string = None
    for node in model.graph:
        node.metadata_props.clear()
        node.doc_string = None
        for value in node.outputs:
            value.metadata_props.clear()
            value.doc_string = None
            if value not in declared:
                value.shape = None
                value.type = None
    for value in declared:
        value.metadata_props.clear()
        value.doc_string = None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
