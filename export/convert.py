"""Converts one checkpoint: import, trace, check, verify, write."""

import copy
import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from export.alignment_choice import choose_alignment
from export.bundle_writer import bundle_bytes, check_destination, checksums, staged_bundle
from export.fidelity import ReferenceOutputs, ask_reference, check_fidelity
from export.graphs.checks import check_alignment, check_decoder_step, check_encoder
from export.graphs.dense import padded_head_size
from export.graphs.execution import AlignmentRun, GraphPair
from export.graphs.tracing import trace_alignment, trace_decoder_step, trace_encoder
from export.importers.imported import ImportedCheckpoint
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.selection import import_checkpoint
from export.stages import Stages
from export.tools import tool_versions
from export.verification_sentences import alignment_sentences, golden_sentences, random_sentences
from export.verify import VerificationReport, translate, verify, verify_alignment, verify_engine
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import Graphs, ModelShape
from service.text.tokenizers import load_tokenizer

ALIGNMENT = "alignment.onnx"


def convert(
    source: Path,
    destination: Path,
    kind: str | None = None,
    name: str | None = None,
    precision: str = "float32",
    say: Callable[[str], None] = lambda line: None,
    options: ImportOptions = NOTHING_SAID,
) -> Manifest:
    """Write the verified bundle of the checkpoint in `source` to `destination`; report every stage through `say`.

    `precision` is "float32" (for the CPU) or "float16" (for CUDA; only its graphs are verified here, on the CPU, not
    the engine, which needs a GPU for it).

    Raises:
        CheckpointError: the checkpoint can't be converted.
        GraphError, VerificationError: the graphs are wrong; nothing is written.
        BundleError: `destination` holds something else.
    """
    clock = Stages(say)
    check_destination(destination)

    def load() -> ImportedCheckpoint:
        return import_checkpoint(source, kind, options)

    with staged_bundle(destination) as directory:
        manifest, expected = _write_graphs(load, name, precision, directory, clock)
        if precision == "float32":
            verify_engine(directory, manifest)
            num_golden = len(manifest.golden)
            clock.done("verify", f"the service's engine gives the same tokens for all {num_golden} golden sentences")
        if expected is not None:
            fidelity = check_fidelity(directory, manifest, expected, load)
            clock.done("verify", fidelity.line())
            manifest = dataclasses.replace(
                manifest, verification={**manifest.verification, "fidelity": dataclasses.asdict(fidelity)}
            )
        manifest.save(directory)
    clock.done("write", f"{destination} ({bundle_bytes(destination) / 1e6:.1f} MB)")
    return manifest


def _write_graphs(
    load: Callable[[], ImportedCheckpoint], name: str | None, precision: str, directory: Path, clock: Stages
) -> tuple[Manifest, ReferenceOutputs | None]:
    """Write all files but the manifest, verified against torch; return the manifest and the reference's outputs.

    The torch model is freed on return: in memory beside the engine, which comes next, it would be gigabytes too many.
    """
    checkpoint = load()
    if name is not None:
        checkpoint = dataclasses.replace(checkpoint, name=name)
    clock.done("import", _describe(checkpoint))
    for file_name, origin in checkpoint.tokenizer_files.items():
        if isinstance(origin, Path):
            shutil.copyfile(origin, directory / file_name)
        else:
            origin(directory / file_name)
    tokenizer = load_tokenizer(checkpoint.tokenizer, directory)
    sentences = [*golden_sentences(checkpoint, tokenizer), *random_sentences(checkpoint)]
    expected = ask_reference(checkpoint, sentences) if precision == "float32" else None
    if expected is not None:
        clock.done("refer", f"{expected.name} translated {len(sentences)} sentences")
    graphs, shape = Graphs(), model_shape(checkpoint)
    model = copy.deepcopy(checkpoint.model).half() if precision == "float16" else checkpoint.model
    trace_encoder(model, directory / graphs.encoder)
    check_encoder(directory / graphs.encoder, shape, precision)
    clock.done("trace", graphs.encoder)
    trace_decoder_step(
        model, checkpoint.suppressed_ids, directory / graphs.decoder_step, renormalizes=checkpoint.renormalizes
    )
    check_decoder_step(directory / graphs.decoder_step, shape, precision)
    clock.done("trace", graphs.decoder_step)
    pair = GraphPair(directory / graphs.encoder, directory / graphs.decoder_step, shape)
    report = verify(checkpoint, pair, tokenizer, precision)
    for line in report.lines():
        clock.done("verify", line)
    translated = list(translate(checkpoint, pair, list(alignment_sentences(checkpoint, tokenizer))))
    choice = choose_alignment(checkpoint, tokenizer, translated)
    clock.done("choose", choice.line())
    graphs = dataclasses.replace(graphs, alignment=ALIGNMENT, alignment_layer=choice.heads.layer)
    trace_alignment(model, choice.heads, directory / ALIGNMENT)
    check_alignment(directory / ALIGNMENT, shape, choice.heads.layer, precision)
    clock.done("trace", ALIGNMENT)
    run = AlignmentRun(directory / ALIGNMENT, pair)
    error = verify_alignment(checkpoint, run, choice.heads, translated, precision)
    clock.done("verify", f"torch's attention against ONNX Runtime's: largest error {error:.2e}")
    alignment = {**choice.document(), "max_error": error}
    return _manifest(checkpoint, shape, graphs, report, alignment, checksums(directory), precision), expected


def model_shape(checkpoint: ImportedCheckpoint) -> ModelShape:
    """Return the sizes that the service needs to lay out its buffers."""
    config = checkpoint.model.config
    return ModelShape(
        num_decoder_layers=config.num_decoder_layers,
        num_heads=config.num_heads,
        head_size=padded_head_size(config.head_size),
        vocabulary_size=config.target_vocabulary_size,
    )


def _manifest(
    checkpoint: ImportedCheckpoint,
    shape: ModelShape,
    graphs: Graphs,
    report: VerificationReport,
    alignment: dict[str, Any],
    sums: dict[str, str],
    precision: str,
) -> Manifest:
    return Manifest(
        name=checkpoint.name,
        model=shape,
        tokenizer=checkpoint.tokenizer,
        languages=checkpoint.languages,
        any_to_any=checkpoint.any_to_any,
        architecture=checkpoint.architecture(),
        licence=checkpoint.licence,
        limits=checkpoint.limits,
        golden=tuple(report.golden),
        checksums=sums,
        checkpoint_sha256=checkpoint.checkpoint_sha256,
        precision=precision,
        suppressed_ids=checkpoint.suppressed_ids,
        renormalizes=checkpoint.renormalizes,
        generation=checkpoint.generation,
        graphs=graphs,
        tools=tool_versions(),
        verification={**report.document(), "alignment": alignment},
    )


def _describe(checkpoint: ImportedCheckpoint) -> str:
    config = checkpoint.model.config
    millions = sum(parameter.numel() for parameter in checkpoint.model.parameters()) / 1e6
    layers = f"{config.num_encoder_layers}+{config.num_decoder_layers} layers"
    return f"{checkpoint.name}: {millions:.1f} M parameters, {layers}, d_model {config.d_model}"
