"""Selects the importer for a checkpoint, by name or by the files in its folder."""

from pathlib import Path

from export.importers.foreign import recognise
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.json_file import read_json
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.refused_types import refusal
from export.importers.registry import KINDS, Kind

_CONFIG_NAME = "config.json"
_BY_NAME = {kind.name: kind for kind in KINDS}


def import_checkpoint(
    source: Path, name: str | None = None, options: ImportOptions = NOTHING_SAID
) -> ImportedCheckpoint:
    """Read a checkpoint folder, or a file of some kinds; without the kind's `name`, files tell which it is.

    Raises:
        CheckpointError: it can't be converted; all problems are listed.
    """
    kind = _BY_NAME[name] if name else None
    if not source.is_dir() and not (source.is_file() and kind is not None and kind.is_file):
        raise CheckpointError(source, ["it is not a folder; give the folder that holds the checkpoint's files"])
    if source.is_dir():
        by_layout = next((each for each in KINDS if each.has(source)), None)
        foreign = recognise(source) if by_layout is None else None
        if foreign is not None:
            raise CheckpointError(source, [foreign])
        kind = kind or by_layout or _by_config(source)
    assert kind is not None
    return kind.load()(source, options)


def _by_config(directory: Path) -> Kind:
    if not (directory / _CONFIG_NAME).is_file():
        problem = f"it holds no {_CONFIG_NAME} to tell its kind from; a bare state dict is for --from notebook"
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
        known = ", ".join(sorted(by_type, key=str.casefold))
        unknown = f"model_type is {str(model_type)[:60]!r}; supported are {known}"
        raise CheckpointError(directory, [refusal(document) or unknown])
    return by_type[model_type]
