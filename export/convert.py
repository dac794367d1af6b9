"""Converts one checkpoint: import, trace, check, verify, write."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

from export.alignment_choice import choose_alignment, cross_attention
from export.bundle_writer import bundle_bytes, check_destination, checksums, staged_bundle
from export.changed_checkpoint import NO_CHANGES, Changes, changed
from export.command_group import how_to_install
from export.fidelity import ReferenceOutputs, ask_reference, check_fidelity
from export.graphs.checks import check_alignment, check_decoder_step, check_encoder
from export.graphs.dense import padded_head_size
from export.graphs.execution import AlignmentRun, GraphPair
from export.graphs.tracing import trace_alignment, trace_decoder_step, trace_encoder
from export.graphs.weights_file import WeightsFile
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.model_card import with_its_limit
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.selection import import_checkpoint
from export.listed_bundle import listed
from export.quantize import write_int8
from export.shortlist import Shortlist
from export.stages import Stages
from export.tools import tool_versions
from export.verification_sentences import alignment_sentences, golden_sentences, lines_of, random_sentences
from export.verify import translate, verify, verify_alignment, verify_engine
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import Graphs, ModelShape
from service.text.tokenizers import Tokenizer, load_tokenizer

ALIGNMENT = "alignment.onnx"


def convert(
    source: Path,
    destination: Path,
    kind: str | None = None,
    name: str | None = None,
    precision: str = "float32",
    say: Callable[[str], None] = lambda line: None,
    options: ImportOptions = NOTHING_SAID,
    check: Path | None = None,
    changes: Changes = NO_CHANGES,
    *,
    force: bool = False,
) -> Manifest:
    """Write the verified bundle of the checkpoint in `source` to `destination`; report every stage through `say`.

    `precision` is "int8" or "float32" (for the CPU) or "float16" (for CUDA; only its graphs are verified here, on the
    CPU, not the engine, which needs a GPU for it). int8 is also compared on the lines of the file `check`, if there is
    one: texts in the first language pair. With `force`, it may replace a bundle.

    Raises:
        CheckpointError: the checkpoint can't be converted.
        GraphError, VerificationError: the graphs are wrong; nothing is written.
        BundleError: `destination` holds something else.
    """
    check_destination(destination, force=force)
    if destination.resolve().is_relative_to(source.resolve()):
        raise BundleError(f"{destination} is inside of {source}; choose another --output.")
    with changed(source, changes) as (folder, done):
        return write_bundle(
            lambda: dataclasses.replace(import_checkpoint(folder, kind, options), changes=done),
            destination,
            name=name,
            precision=precision,
            say=say,
            check=check,
            force=force,
        )


def write_bundle(
    load: Callable[[], ImportedCheckpoint],
    destination: Path,
    *,
    name: str | None = None,
    precision: str = "float32",
    say: Callable[[str], None] = lambda line: None,
    check: Path | None = None,
    force: bool = False,
) -> Manifest:
    """Write the bundle of what `load` imports; for the rest see `convert`."""
    clock = Stages(say)
    with staged_bundle(destination, force=force) as directory:
        if precision == "int8":
            manifest, shortlist = _write_fused(load, name, check, directory, clock)
            expected = None
        else:
            manifest, shortlist, expected = _write_graphs(
                lambda: load().in_float32(), name, precision, directory, clock
            )
        if precision == "float32":
            verify_engine(directory, manifest)
            num_golden = len(manifest.golden)
            clock.done("verify", f"the service's engine gives the same tokens for all {num_golden} golden sentences")
        if expected is not None:
            fidelity = check_fidelity(directory, manifest, expected, lambda: load().in_float32())
            clock.done("verify", fidelity.line())
            manifest = dataclasses.replace(
                manifest, verification={**manifest.verification, "fidelity": dataclasses.asdict(fidelity)}
            )
        if shortlist is not None:
            manifest, cost = listed(directory, manifest, shortlist, [golden.text for golden in manifest.golden])
            clock.done("list", cost.line())
        manifest.save(directory)
    clock.done("write", f"{destination} ({bundle_bytes(destination) / 1e6:.1f} MB)")
    return manifest


def _begin(
    load: Callable[[], ImportedCheckpoint], name: str | None, directory: Path, clock: Stages
) -> tuple[ImportedCheckpoint, Tokenizer]:
    """Import the checkpoint and write its tokenizer."""
    checkpoint = load()
    if name is not None:
        checkpoint = dataclasses.replace(checkpoint, name=name)
    clock.done("import", "; ".join((_describe(checkpoint), *checkpoint.notes)))
    for file_name, origin in checkpoint.tokenizer_files.items():
        if isinstance(origin, Path):
            shutil.copyfile(origin, directory / file_name)
        else:
            origin(directory / file_name)
    return checkpoint, load_tokenizer(checkpoint.tokenizer, directory)


def _write_fused(
    load: Callable[[], ImportedCheckpoint], name: str | None, check: Path | None, directory: Path, clock: Stages
) -> tuple[Manifest, Shortlist | None]:
    """Write all files of an int8 bundle but the manifest; return that, and the shortlist that the bundle shall have."""
    checkpoint, tokenizer = _begin(load, name, directory, clock)
    own = [] if check is None else list(lines_of(check, checkpoint, tokenizer))
    manifest = write_int8(
        checkpoint, tokenizer, directory, lambda shape, graphs: _manifest(checkpoint, shape, graphs, "int8"), own, clock
    )
    return manifest, checkpoint.shortlist


def _write_graphs(
    load: Callable[[], ImportedCheckpoint], name: str | None, precision: str, directory: Path, clock: Stages
) -> tuple[Manifest, Shortlist | None, ReferenceOutputs | None]:
    """Write all files but the manifest, verified against torch; return that, the shortlist that the bundle shall have,
    and the reference's outputs.

    The torch model is freed on return: in memory beside the engine, which comes next, it would be gigabytes too many.
    """
    checkpoint, tokenizer = _begin(load, name, directory, clock)
    if precision == "float16" and checkpoint.model.config.relative_bias is not None:
        problem = "ONNX Runtime's attention on CUDA takes no relative bias; convert it with --precision int8 or float32"
        raise CheckpointError(Path(checkpoint.name), [problem])
    sentences = [*golden_sentences(checkpoint, tokenizer), *random_sentences(checkpoint)]
    expected = None
    try:
        expected = ask_reference(checkpoint, sentences) if precision == "float32" else None
    except ModuleNotFoundError as error:
        package = error.name or ""
        clock.done("refer", f"not compared with {package}, which is not installed; {how_to_install(package)}")
    if expected is not None:
        clock.done("refer", f"{expected.name} translated {len(sentences)} sentences")
    with WeightsFile(directory) as file:
        manifest = _trace_graphs(checkpoint, tokenizer, precision, directory, file, clock)
    return manifest, checkpoint.shortlist, expected


def _trace_graphs(
    checkpoint: ImportedCheckpoint,
    tokenizer: Tokenizer,
    precision: str,
    directory: Path,
    file: WeightsFile,
    clock: Stages,
) -> Manifest:
    """Write the graphs and, to `file`, their weights; return the manifest."""
    graphs, shape = Graphs(), model_shape(checkpoint)
    model = checkpoint.model.transformer()
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
    clock.done("verify", f"torch's attention against ONNX Runtime's: largest error {error:.2e}")
    alignment = {**choice.document(), "max_error": error}
    return dataclasses.replace(
        _manifest(checkpoint, shape, graphs, precision),
        golden=tuple(report.golden),
        checksums=checksums(directory),
        verification={**report.document(), "alignment": alignment},
    )


def model_shape(checkpoint: ImportedCheckpoint) -> ModelShape:
    """Return the sizes that the service needs to lay out its buffers."""
    config = checkpoint.model.config
    return ModelShape(
        num_decoder_layers=config.num_decoder_layers,
        num_heads=config.num_heads,
        head_size=padded_head_size(config.head_size),
        vocabulary_size=config.target_vocabulary_size,
        state_size=config.state_size,
    )


def _manifest(checkpoint: ImportedCheckpoint, shape: ModelShape, graphs: Graphs, precision: str) -> Manifest:
    """Return a manifest that lacks what only the written graphs show: golden pairs, checksums, verification."""
    return Manifest(
        name=checkpoint.name,
        model=shape,
        tokenizer=checkpoint.tokenizer,
        languages=checkpoint.languages,
        any_to_any=checkpoint.any_to_any,
        architecture=checkpoint.architecture(),
        licence=checkpoint.licence,
        limits=checkpoint.limits,
        golden=(),
        checksums={},
        checkpoint_sha256=checkpoint.checkpoint_sha256,
        precision=precision,
        suppressed_ids=checkpoint.suppressed_ids,
        renormalizes=checkpoint.renormalizes,
        generation=checkpoint.generation,
        graphs=graphs,
        tools=tool_versions(),
    )


def _describe(checkpoint: ImportedCheckpoint) -> str:
    config = checkpoint.model.config
    millions = checkpoint.model.num_weights / 1e6
    layers = f"{config.num_encoder_layers}+{config.num_decoder_layers} layers"
    shape = f"{checkpoint.name}: {millions:.1f} M parameters, {layers}, d_model {config.d_model}"
    return f"{shape}; licence {with_its_limit(checkpoint.licence)}"
