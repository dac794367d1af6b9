"""The files of a model: in a folder, or in a zip as Argos Translate's packages are. Nothing is unpacked by its name."""

import mmap
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from export.importers import stored_file
from service.bundle.regular_file import open_regular

MODEL_NAME = "model.bin"
INNER = "model/"  # where packages have the model
METADATA_NAME = "metadata.json"


class ModelFiles:
    """Files by their names; those of the folder `model` begin with "model/"."""

    def __init__(self, path: Path, names: Mapping[str, zipfile.ZipInfo | None]) -> None:
        self.path, self._entries = path, dict(names)

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    @property
    def base(self) -> str:
        return INNER if f"{INNER}{MODEL_NAME}" in self._entries else ""

    @property
    def names(self) -> list[str]:
        return sorted(self._entries)

    def first(self, *names: str) -> str | None:
        return next((name for name in names if name in self._entries), None)

    def read(self, name: str) -> bytes:
        return bytes(self._read(name, stored_file.MAX_BYTES))

    def read_model(self) -> memoryview:
        """Return the content of `model.bin`, which is mapped if it is a file itself."""
        name = f"{self.base}{MODEL_NAME}"
        if name not in self._entries:
            raise ValueError("it is missing")
        if self._entries[name] is not None:
            return memoryview(self._read(name, stored_file.MAX_WEIGHTS_BYTES))
        try:
            with open_regular(self.path / name) as file:
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        except OSError as error:
            raise ValueError(f"it can't be read: {stored_file.reason(error)}") from error

    def _read(self, name: str, most: int) -> bytes | bytearray:
        if name not in self._entries:
            raise ValueError("it is missing")
        entry = self._entries[name]
        if entry is None:
            return stored_file.read(self.path / name, most)
        if entry.file_size > most:
            raise ValueError(f"it has {entry.file_size} bytes; allowed: {most}")
        with stored_file.opened_zip(self.path) as archive:
            return stored_file.unpacked(archive, entry)


def open_files(path: Path) -> ModelFiles:
    return _of_folder(path) if path.is_dir() else _of_archive(path)


def _of_folder(path: Path) -> ModelFiles:
    inner = path / INNER
    found = [each.name for each in path.iterdir() if each.is_file()]
    if inner.is_dir():
        found += [f"{INNER}{each.name}" for each in inner.iterdir() if each.is_file()]
    return ModelFiles(path, dict.fromkeys(found))


def _of_archive(path: Path) -> ModelFiles:
    with stored_file.opened_zip(path) as archive:
        entries = archive.infolist()
    tops = {PurePosixPath(each.filename).parts[0] for each in entries if each.filename.endswith(f"/{METADATA_NAME}")}
    tops = {top for top in tops if any(each.filename == f"{top}/{METADATA_NAME}" for each in entries)}
    if len(tops) != 1:
        raise ValueError(f"it has {len(tops)} folders with a {METADATA_NAME}; a package of Argos Translate has one")
    prefix = f"{tops.pop()}/"
    return ModelFiles(path, {each.filename.removeprefix(prefix): each for each in entries if not each.is_dir()})
