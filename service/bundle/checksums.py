"""SHA-256 of files, so that a damaged or inconsistent bundle is detected before it is served."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from service.bundle.errors import BundleError
from service.bundle.graph_file import check_graph
from service.bundle.manifest import Manifest


def file_sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file's bytes.

    Raises:
        OSError: the file can't be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def mismatches(directory: Path, checksums: Mapping[str, str]) -> list[str]:
    """Return one line for each file under `directory` that is missing, can't be read or differs from its checksum.

    Anything but a regular file, such as a pipe or a device, counts as missing.
    """
    problems = []
    for name, expected in checksums.items():
        path = directory / name
        try:
            if not path.is_file():
                problems.append(f"{name} is missing")
            elif file_sha256(path) != expected:
                problems.append(f"{name} does not match its checksum")
        except OSError as error:
            problems.append(f"{name} can't be read: {error.strerror}")
    return problems


def check_intact(directory: Path, manifest: Manifest) -> None:
    """Check every file of a bundle against its manifest, and that its graphs refer to nothing else.

    Raises:
        BundleError: files are missing or differ (all of them are listed), or `check_graph` rejects a graph.
    """
    problems = mismatches(directory, manifest.checksums)
    if problems:
        raise BundleError(f"{directory} is damaged: {'; '.join(problems)}. Write it again with 'make export'.")
    for name in manifest.graphs.files:
        check_graph(directory / name, manifest.checksums)
