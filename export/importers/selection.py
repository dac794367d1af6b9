"""Picks the importer for a checkpoint, by name or by what lies in its folder."""

from collections.abc import Callable
from pathlib import Path

from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.native import import_native
from export.importers.native_folder import CONFIG_NAME
from export.importers.notebook.importer import import_notebook
from export.importers.options import NOTHING_SAID, ImportOptions

IMPORTERS: dict[str, Callable[[Path, ImportOptions], ImportedCheckpoint]] = {
    "native": import_native,
    "notebook": import_notebook,
}
TAKING_A_FILE = ("notebook",)


def import_checkpoint(
    directory: Path, kind: str | None = None, options: ImportOptions = NOTHING_SAID
) -> ImportedCheckpoint:
    """Read a checkpoint folder, or a file of some kinds; without a `kind` a folder's files tell who takes it.

    Raises:
        CheckpointError: it can't be converted; all problems are listed.
    """
    if not directory.is_dir() and not (directory.is_file() and kind in TAKING_A_FILE):
        raise CheckpointError(directory, ["it is not a folder; give the folder that holds the checkpoint's files"])
    return IMPORTERS[kind or _detect(directory)](directory, options)


def _detect(directory: Path) -> str:
    if not (directory / CONFIG_NAME).is_file():
        names = ", ".join(sorted(IMPORTERS))
        raise CheckpointError(directory, [f"it holds no {CONFIG_NAME} to tell its kind from; say --from ({names})"])
    return "native"
