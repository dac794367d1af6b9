"""Says what a checkpoint is, whether it would be converted and to what, or what is missing; converts nothing."""

import dataclasses
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from export.changed_checkpoint import NO_CHANGES, Changes, changed
from export.fidelity import REFERENCE_BYTES, REFERENCE_LIBRARIES
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.model_card import licence_of, with_its_limit
from export.importers.options import ImportOptions
from export.importers.selection import import_checkpoint, select_kind
from service.domain.errors import counted, listed

# As measured with models of 9 to 615 M weights, in bytes (docs/benchmarks.md and docs/models.md have the figures).
_LIBRARIES = 0.4e9
_INT8_BUNDLE, _INT8_MEMORY = 1.05, 2  # per weight; the memory in addition to the weights as stored
_FLOAT32_BUNDLE, _FLOAT32_MEMORY = 4.1, 4 * 2.7


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Lines for a terminal, and whether the checkpoint would be converted."""

    lines: tuple[str, ...]
    is_convertible: bool


def diagnose(
    source: Path, kind: str | None, options: ImportOptions, changes: Changes, given: str, name: str | None
) -> Diagnosis:
    """Import a checkpoint as `convert` would, and describe it or its problems.

    `given` is what its user called it, and `name` that of the model, if it is not the checkpoint's own.
    """
    try:
        with changed(source, changes) as (folder, _):
            found = select_kind(folder, kind, options).name
            checkpoint = import_checkpoint(folder, kind, options)
            if name is not None:
                checkpoint = dataclasses.replace(checkpoint, name=name)
            further = ", and the options given here" if options.given() or changes != NO_CHANGES else ""
            command = _line("converts", f"{_command(given, checkpoint.name)}{further}")
            return Diagnosis((*_described(checkpoint, found), command), is_convertible=True)
    except CheckpointError as error:
        return Diagnosis(tuple(_refused(source, error)), is_convertible=False)


def _described(checkpoint: ImportedCheckpoint, kind: str) -> Iterator[str]:
    config = checkpoint.model.config
    num_weights, arrays = checkpoint.model.num_weights, list(checkpoint.model.weights.values())
    num_bytes = sum(each.nbytes for each in arrays)
    dtypes = dict.fromkeys(each.dtype.name for each in arrays)
    yield _line("kind", kind)
    yield _line(
        "model",
        f"{checkpoint.name}: {checkpoint.family}, {num_weights / 1e6:.1f} M parameters, "
        f"{config.num_encoder_layers}+{config.num_decoder_layers} layers, d_model {config.d_model}",
    )
    yield _line("weights", f"{_size(num_bytes)} in {', '.join(dtypes)}")
    if checkpoint.languages:
        pairs = [f"{pair.source_language_code}-{pair.target_language_code}" for pair in checkpoint.languages]
        yield _line("languages", listed(pairs))
    if checkpoint.any_to_any:
        codes = [each.code for each in checkpoint.any_to_any]
        yield _line("languages", f"{len(codes)}, each into each other: {listed(codes)}")
    yield _line("tokenizer", f"{checkpoint.tokenizer.kind}: {', '.join(checkpoint.tokenizer_files)}")
    yield _line("licence", with_its_limit(checkpoint.licence))
    for note in checkpoint.notes:
        yield _line("note", note)
    memory: float = num_weights * _INT8_MEMORY
    if checkpoint.open_reference is not None:
        memory = num_weights * REFERENCE_BYTES + REFERENCE_LIBRARIES - _LIBRARIES
    yield _line("int8", _costs(num_weights * _INT8_BUNDLE, num_bytes + memory))
    yield _line("float32", _costs(num_weights * _FLOAT32_BUNDLE, num_weights * _FLOAT32_MEMORY))


def _command(given: str, name: str) -> str:
    output = shlex.quote(f"models/{name}/1")
    return f"with: python -m export convert {shlex.quote(given)} --precision int8 --output {output}"


def _refused(source: Path, error: CheckpointError) -> Iterator[str]:
    if source.is_dir():
        files = [path for path in source.iterdir() if path.is_file()]
        yield _line("folder", f"{counted(len(files), 'file')}, {_size(sum(path.stat().st_size for path in files))}")
        yield _line("licence", with_its_limit(licence_of(source)))
    for problem in error.problems:
        yield _line("refused", " ".join(problem.split()))


def _costs(bundle: float, memory: float) -> str:
    memory += _LIBRARIES
    return f"a bundle of about {_size(bundle)}; the conversion takes about {memory / 1e9:.1f} GB of memory"


def _line(heading: str, text: str) -> str:
    return f"{heading:<13} {text}"


def _size(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes >= 1e9 else f"{num_bytes / 1e6:.1f} MB"
