"""Converts one checkpoint: import, write graphs that are verified, write the manifest."""

import dataclasses
import shutil
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from export.bundle_writer import bundle_bytes, check_destination, staged_bundle
from export.changed_checkpoint import NO_CHANGES, Changes, changed
from export.fidelity import ReferenceOutputs, check_fidelity
from export.importers.imported import ImportedCheckpoint
from export.importers.model_card import with_its_limit
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.selection import import_checkpoint
from export.listed_bundle import listed
from export.place import check_name, model_name, shared_pair_of
from export.quantize import write_int8
from export.shortlist import Shortlist
from export.stages import Stages
from export.tools import tool_versions
from export.verification_sentences import lines_of
from export.verify import verify_engine
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import Graphs, ModelShape
from service.engine.runtime.kernels import find_kernels
from service.text.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from torch import Tensor, nn


def convert(
    source: "str | Path | nn.Module | Mapping[str, Tensor]",
    destination: str | Path,
    kind: str | None = None,
    name: str | None = None,
    precision: str = "float32",
    say: Callable[[str], None] = print,
    options: ImportOptions = NOTHING_SAID,
    check: Path | None = None,
    changes: Changes = NO_CHANGES,
    *,
    force: bool = False,
    is_prose: bool = True,
    **said: Any,
) -> Manifest:
    """Write the verified bundle of the checkpoint in `source` to `destination`; report every stage through `say`.

    The model's `name` is by default that of the folder of a `destination` ROOT/NAME/VERSION, else the checkpoint's own.
    `source` is a path, or a module or its state dict in memory, which are not changed. `options` may also be `said` by
    the names of its fields, such as `tokenizer="english.model"`. `kind` and `changes` are for paths.

    `precision` is "int8" or "float32" (for the CPU) or "float16" (for CUDA; only its graphs are verified here, on the
    CPU, not the engine). int8 is also compared on the lines of the file `check`, texts in the first language pair,
    which replace the golden ones if the model reads no English. With `force`, it may replace a bundle. Without
    `is_prose`, servers neither cut nor search texts, nor mend translations.
    """
    destination, options = Path(destination), dataclasses.replace(options, **said)
    check_destination(destination, force=force)
    name = name or model_name(destination)
    if name is not None:
        check_name(destination, name)
    write = partial(write_bundle, name=name, precision=precision, say=say, check=check, force=force)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(torch|onnx|onnxscript)(\..*)?")
        if not isinstance(source, str | Path):
            from export.importers.state_dict.importer import import_in_memory  # needs torch

            load = partial(import_in_memory, source, options)
            return write(lambda: dataclasses.replace(load(), is_prose=is_prose), destination)
        source = Path(source)
        if destination.resolve().is_relative_to(source.resolve()):
            raise BundleError(f"{destination} is inside {source}; choose another --output.")
        with changed(source, changes) as (folder, done):
            return write(
                lambda: dataclasses.replace(import_checkpoint(folder, kind, options), changes=done, is_prose=is_prose),
                destination,
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
    clock = Stages(say)
    if precision != "float16":
        find_kernels()  # the engine, which comes last, needs them
    with staged_bundle(destination, force=force) as directory:
        manifest, shortlist, expected = _write_files(load, name, precision, check, directory, clock)
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
    if line := shared_pair_of(destination, manifest):
        say(f"note: {line}")
    return manifest


def _write_files(
    load: Callable[[], ImportedCheckpoint],
    name: str | None,
    precision: str,
    check: Path | None,
    directory: Path,
    clock: Stages,
) -> tuple[Manifest, Shortlist | None, ReferenceOutputs | None]:
    """Return the manifest, the shortlist that the bundle shall have, and the reference's outputs.

    The model is freed on return: in memory beside the engine, which comes next, it would be gigabytes too many.
    """
    is_int8 = precision == "int8"
    if not is_int8:
        from export.trace import write_traced  # needs torch
    checkpoint = load() if is_int8 else load().in_float32()
    if name is not None:
        checkpoint = dataclasses.replace(checkpoint, name=name)
    clock.done("import", "; ".join((_describe(checkpoint), *checkpoint.notes)))
    for file_name, origin in checkpoint.tokenizer_files.items():
        if isinstance(origin, Path):
            shutil.copyfile(origin, directory / file_name)
        else:
            origin(directory / file_name)
    tokenizer = load_tokenizer(checkpoint.tokenizer, directory)
    manifest_of, expected = partial(_manifest, checkpoint, precision), None
    if is_int8:
        own = [] if check is None else list(lines_of(check, checkpoint, tokenizer))
        manifest = write_int8(checkpoint, tokenizer, directory, manifest_of, own, clock)
    else:
        manifest, expected = write_traced(checkpoint, tokenizer, directory, manifest_of, precision, clock)
    return manifest, checkpoint.shortlist, expected


def _manifest(checkpoint: ImportedCheckpoint, precision: str, shape: ModelShape, graphs: Graphs) -> Manifest:
    """Return a manifest that lacks what only the written graphs show: golden pairs, checksums, verification."""
    return Manifest(
        name=checkpoint.name,
        model=shape,
        tokenizer=checkpoint.tokenizer,
        languages=checkpoint.languages,
        any_to_any=checkpoint.any_to_any,
        is_prose=checkpoint.is_prose,
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
