"""Selects the importer for a checkpoint, by name or by the files in its folder."""

from collections.abc import Callable
from pathlib import Path

from export.importers.foreign import recognise
from export.importers.hf_m2m100 import import_m2m100
from export.importers.hf_marian import import_marian
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.json_file import read_json
from export.importers.native import import_native
from export.importers.native_folder import CONFIG_NAME
from export.importers.notebook.importer import import_notebook
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.students.importer import import_student, is_student

IMPORTERS: dict[str, Callable[[Path, ImportOptions], ImportedCheckpoint]] = {
    "native": import_native,
    "marian": import_marian,
    "m2m100": import_m2m100,
    "notebook": import_notebook,
    "student": import_student,
}
TAKING_A_FILE = ("notebook",)
_BY_MODEL_TYPE = {"marian": "marian", "m2m_100": "m2m100"}  # transformers' names


def import_checkpoint(
    directory: Path, kind: str | None = None, options: ImportOptions = NOTHING_SAID
) -> ImportedCheckpoint:
    """Read a checkpoint folder, or a file of some kinds; without `kind`, the importer is selected by a folder's files.

    Raises:
        CheckpointError: it can't be converted; all problems are listed.
    """
    if not directory.is_dir() and not (directory.is_file() and kind in TAKING_A_FILE):
        raise CheckpointError(directory, ["it is not a folder; give the folder that holds the checkpoint's files"])
    if directory.is_dir() and is_student(directory):
        return IMPORTERS[kind or "student"](directory, options)
    foreign = recognise(directory) if directory.is_dir() else None
    if foreign is not None:
        raise CheckpointError(directory, [foreign])
    return IMPORTERS[kind or _detect(directory)](directory, options)


def _detect(directory: Path) -> str:
    if not (directory / CONFIG_NAME).is_file():
        problem = f"it holds no {CONFIG_NAME} to tell its kind from; a bare state dict is for --from notebook"
        raise CheckpointError(directory, [problem])
    try:
        model_type = read_json(directory / CONFIG_NAME).get("model_type")
    except ValueError as error:
        raise CheckpointError(directory, [f"{CONFIG_NAME}: {error}"]) from error
    if model_type is None:
        return "native"
    if not isinstance(model_type, str) or model_type not in _BY_MODEL_TYPE:
        known = ", ".join(sorted(_BY_MODEL_TYPE))
        raise CheckpointError(directory, [f"model_type is {str(model_type)[:60]!r}; supported are {known}"])
    return _BY_MODEL_TYPE[model_type]
