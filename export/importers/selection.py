"""Selects the importer for a checkpoint, by name or by the files in its folder."""

from pathlib import Path

from export.importers.files import find
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.json_file import read_json
from export.importers.mistaken import foreign_folder, mistaken_folder, mistaken_path, refused_type, unknown_settings
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.registry import KINDS, Kind, by_suffix

_CONFIG_NAME = "config.json"
_SENTENCE_TRANSFORMERS = "modules.json"
_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "*.spm", "*.model", "vocab.json")
_BY_NAME = {kind.name: kind for kind in KINDS}


def import_checkpoint(
    source: Path, name: str | None = None, options: ImportOptions = NOTHING_SAID
) -> ImportedCheckpoint:
    """Read a checkpoint folder, or a file of some kinds; without the kind's `name`, files tell which it is."""
    return select_kind(source, name, options).load()(source, options)


def select_kind(source: Path, name: str | None = None, options: ImportOptions = NOTHING_SAID) -> Kind:
    """Return the kind of a checkpoint: as it is named, or by its suffix, its files, or what `config.json` says."""
    name = name or ("pytorch" if options.like else None)
    named = _BY_NAME[name] if name else None
    if not source.is_dir():
        kind = named or by_suffix(source)
        if not source.is_file() or kind is None or not kind.is_file:
            raise CheckpointError(source, [mistaken_path(source)])
        return kind
    by_files = _by_files(source)
    if named is not None:
        return _agreed(source, named) if named.model_types else named
    return by_suffix(source) or by_files or _by_config(source)


def _by_files(directory: Path) -> Kind | None:
    """Return the kind whose files a folder holds, if there is one; refuse what is no checkpoint or another tool's."""
    mistake = mistaken_folder(directory)
    if mistake is not None:
        raise CheckpointError(directory, [mistake])
    kind = next((each for each in KINDS if each.has(directory)), None)
    foreign = foreign_folder(directory) if kind is None else None
    if foreign is not None:
        raise CheckpointError(directory, [foreign])
    return kind


def _agreed(directory: Path, kind: Kind) -> Kind:
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
        problem = f"it has no {_CONFIG_NAME}, so its kind is unknown; for a bare state dict give --from pytorch"
        if tokenizer := find(directory, _TOKENIZERS):
            problem += f"; it holds a tokenizer ({tokenizer[0].name}): add {_CONFIG_NAME} and weights of its model"
        raise CheckpointError(directory, [problem])
    try:
        document = read_json(directory / _CONFIG_NAME)
    except ValueError as error:
        raise CheckpointError(directory, [f"{_CONFIG_NAME}: {error}"]) from error
    model_type = document.get("model_type")
    if model_type is None:
        if not {"source_vocabulary_size", "d_model"} & document.keys():
            raise CheckpointError(directory, [f"{_CONFIG_NAME}: {unknown_settings(document)}"])
        return _BY_NAME["native"]
    by_type = {each: kind for kind in KINDS for each in kind.model_types}
    if not isinstance(model_type, str) or model_type not in by_type:
        if (directory / _SENTENCE_TRANSFORMERS).is_file():
            what = "it makes embeddings of sentences (sentence-transformers), not translations"
            raise CheckpointError(directory, [f"{what}; give a translation model"])
        known = ", ".join(sorted(by_type, key=str.casefold))
        unknown = f"model_type is {str(model_type)[:60]!r}; supported: {known}"
        raise CheckpointError(directory, [refused_type(document) or unknown])
    return by_type[model_type]
