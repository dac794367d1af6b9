"""Selects the importer for a checkpoint, by name or by the files in its folder."""

from pathlib import Path

from export.importers.files import find
from export.importers.foreign import recognise
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.json_file import read_json
from export.importers.mistaken import mistaken_folder, mistaken_path
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.refused_types import refusal
from export.importers.registry import KINDS, Kind, by_suffix

_CONFIG_NAME = "config.json"
_SENTENCE_TRANSFORMERS = "modules.json"
_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "*.spm", "*.model", "vocab.json")
_BY_NAME = {kind.name: kind for kind in KINDS}


def import_checkpoint(
    source: Path, name: str | None = None, options: ImportOptions = NOTHING_SAID
) -> ImportedCheckpoint:
    """Read a checkpoint folder, or a file of some kinds; without the kind's `name`, files tell which it is."""
    return select_kind(source, name).load()(source, options)


def select_kind(source: Path, name: str | None = None) -> Kind:
    """Return the kind of a checkpoint, whose `name` may be given."""
    kind = _BY_NAME[name] if name else by_suffix(source)
    if not source.is_dir() and not (source.is_file() and kind is not None and kind.is_file):
        raise CheckpointError(source, [mistaken_path(source)])
    if source.is_dir():
        mistake = mistaken_folder(source)
        if mistake is not None:
            raise CheckpointError(source, [mistake])
        by_layout = next((each for each in KINDS if each.has(source)), None)
        foreign = recognise(source) if by_layout is None else None
        if foreign is not None:
            raise CheckpointError(source, [foreign])
        kind = _agreed(source, kind) if kind and kind.model_types else kind or by_layout or _by_config(source)
    assert kind is not None
    return kind


def _agreed(directory: Path, kind: Kind) -> Kind:
    """Return the kind that was named, unless the folder says that it is of another one."""
    try:
        model_type = read_json(directory / _CONFIG_NAME).get("model_type")
    except ValueError:
        return kind  # the importer lists this among other problems
    if model_type in (None, *kind.model_types):
        return kind
    raise CheckpointError(
        directory, [f"--from {kind.name}: {_CONFIG_NAME} says that it is {str(model_type)[:60]!r}; leave out --from"]
    )


def _by_config(directory: Path) -> Kind:
    if not (directory / _CONFIG_NAME).is_file():
        problem = f"it holds no {_CONFIG_NAME} to tell its kind from; a bare state dict is for --from notebook"
        if tokenizer := find(directory, _TOKENIZERS):
            problem += f"; it holds a tokenizer ({tokenizer[0].name}): add {_CONFIG_NAME} and weights of its model"
        raise CheckpointError(directory, [problem])
    try:
        document = read_json(directory / _CONFIG_NAME)
    except ValueError as error:
        raise CheckpointError(directory, [f"{_CONFIG_NAME}: {error}"]) from error
    model_type = document.get("model_type")
    if model_type is None:
        return _BY_NAME["native"]
    by_type = {each: kind for kind in KINDS for each in kind.model_types}
    if not isinstance(model_type, str) or model_type not in by_type:
        if (directory / _SENTENCE_TRANSFORMERS).is_file():
            what = "it makes embeddings of sentences (sentence-transformers), no translations"
            raise CheckpointError(directory, [f"{what}; give a translation model"])
        known = ", ".join(sorted(by_type, key=str.casefold))
        unknown = f"model_type is {str(model_type)[:60]!r}; supported are {known}"
        raise CheckpointError(directory, [refusal(document) or unknown])
    return by_type[model_type]
