"""Traces one checkpoint with torch, in float32 or float16, and verifies the graphs against the model."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from export.alignment_choice import choose_alignment, cross_attention
from export.architecture.transformer import Transformer
from export.bundle_writer import checksums
from export.fidelity import ReferenceOutputs, ask_if_installed, verified_reading
from export.graphs.checks import check_alignment, check_decoder_step, check_encoder
from export.graphs.dense import padded_head_size
from export.graphs.execution import AlignmentRun, GraphPair
from export.graphs.tracing import trace_alignment, trace_decoder_step, trace_encoder
from export.graphs.weights_file import WeightsFile
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.stages import Stages
from export.verification_sentences import alignment_sentences, golden_sentences, random_sentences
from export.verify import translate, verify, verify_alignment
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import Graphs, ModelShape
from service.text.tokenizers import Tokenizer

ALIGNMENT = "alignment.onnx"


def write_traced(
    checkpoint: ImportedCheckpoint,
    tokenizer: Tokenizer,
    directory: Path,
    manifest_of: Callable[[ModelShape, Graphs], Manifest],
    precision: str,
    clock: Stages,
) -> tuple[Manifest, ReferenceOutputs | None]:
    """Write graphs and weights to `directory`; return the unsaved manifest, and what the reference translates."""
    if precision == "float16" and checkpoint.model.config.relative_bias is not None:
        problem = "ONNX Runtime's attention on CUDA takes no relative bias; convert it with --precision int8 or float32"
        raise CheckpointError(Path(checkpoint.name), [problem])
    sentences = [*golden_sentences(checkpoint, tokenizer), *random_sentences(checkpoint)]
    expected, verified = None, dict[str, Any]()
    if precision == "float32":
        expected = ask_if_installed(checkpoint, sentences, clock)
    else:
        verified = verified_reading(checkpoint, sentences, clock)
    with WeightsFile(directory) as file:
        manifest = _trace(checkpoint, tokenizer, precision, directory, manifest_of, file, clock)
    return dataclasses.replace(manifest, verification={**manifest.verification, **verified}), expected


def _trace(
    checkpoint: ImportedCheckpoint,
    tokenizer: Tokenizer,
    precision: str,
    directory: Path,
    manifest_of: Callable[[ModelShape, Graphs], Manifest],
    file: WeightsFile,
    clock: Stages,
) -> Manifest:
    graphs, shape = Graphs(), model_shape(checkpoint)
    model = Transformer.of(checkpoint.model)
    model = model.half() if precision == "float16" else model
    trace_encoder(model, directory / graphs.encoder, file)
    check_encoder(directory / graphs.encoder, shape, precision)
    clock.done("trace", graphs.encoder)
    trace_decoder_step(
        model, checkpoint.suppressed_ids, directory / graphs.decoder_step, file, renormalizes=checkpoint.renormalizes
    )
    check_decoder_step(directory / graphs.decoder_step, shape, precision)
    clock.done("trace", graphs.decoder_step)
    pair = GraphPair(directory / graphs.encoder, directory / graphs.decoder_step, shape)
    report = verify(checkpoint, pair, tokenizer, precision)
    for line in report.lines():
        clock.done("verify", line)
    translated = list(translate(checkpoint, pair, list(alignment_sentences(checkpoint, tokenizer))))
    by_layer = cross_attention(model.config, checkpoint.model.weights, translated)
    choice = choose_alignment(checkpoint, tokenizer, translated, by_layer)
    clock.done("choose", choice.line())
    graphs = dataclasses.replace(graphs, alignment=ALIGNMENT, alignment_layer=choice.heads.layer)
    trace_alignment(model, choice.heads, directory / ALIGNMENT, file)
    check_alignment(directory / ALIGNMENT, shape, choice.heads.layer, precision)
    clock.done("trace", ALIGNMENT)
    run = AlignmentRun(directory / ALIGNMENT, pair)
    error = verify_alignment(checkpoint, run, choice.heads, translated, by_layer, precision)
    clock.done("verify", f"the model's attention against the graph's: largest error {error:.2e}")
    alignment = {**choice.document(), "max_error": error}
    return dataclasses.replace(
        manifest_of(shape, graphs),
        golden=tuple(report.golden),
        checksums=checksums(directory),
        verification={**report.document(), "alignment": alignment},
    )


def model_shape(checkpoint: ImportedCheckpoint) -> ModelShape:
    config = checkpoint.model.config.of("decoder")
    return ModelShape(
        num_decoder_layers=config.num_decoder_layers,
        num_heads=config.num_heads,
        head_size=padded_head_size(config.head_size),
        vocabulary_size=config.target_vocabulary_size,
        state_size=config.state_size,
    )
