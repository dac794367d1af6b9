"""A repository of models in a folder, such as a mounted volume."""

import os
from collections.abc import Iterator
from pathlib import Path

from service.bundle.manifest import MANIFEST_NAME
from service.bundle.regular_file import open_regular

_CHUNK_BYTES = 1 << 20


class Folder:
    """Files by their names relative to a folder. Errors are the system's, `OSError`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __str__(self) -> str:
        return str(self._root)

    def manifests(self) -> list[str]:
        return [path.relative_to(self._root).as_posix() for path in self._root.glob(f"*/*/{MANIFEST_NAME}")]

    def size(self, name: str) -> int | None:
        """Return a file's number of bytes; `None` if there is no such file."""
        try:
            with open_regular(self._root / name) as file:
                return os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return None

    def read(self, name: str, start: int) -> Iterator[bytes]:
        """Yield a file's bytes from `start` on."""
        with open_regular(self._root / name) as file:
            file.seek(start)
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
