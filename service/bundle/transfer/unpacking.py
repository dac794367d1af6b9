"""A layer of an image to files: bundles only, and nothing that would leave their folders."""

import gzip
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from service.bundle.errors import BundleError, one_line
from service.bundle.fields import is_name
from service.bundle.transfer.placing import is_model, is_version

_CHUNK_BYTES = 1 << 20
_MOST_MEMBERS = 10_000
_MOST_TIMES = 20  # a compressed layer's bytes; weights shrink little
_FREE_BYTES = 64 << 20  # but files that are small anyway may shrink more
_MOST_HEADER_BYTES = 16 << 20  # of all members together: tarfile has them in memory
_GZIP = b"\x1f\x8b"


def unpack(layer: Path, folder: Path, name: str) -> None:
    """Write the files of a layer, tar or tar with gzip, to `folder`; `name` is the layer's in errors."""
    most = _MOST_TIMES * layer.stat().st_size + _FREE_BYTES
    total = number = 0
    try:
        with (
            _opened(layer) as file,
            tarfile.open(fileobj=cast(BinaryIO, bounded := _Bounded(file)), mode="r:") as archive,
        ):
            while (member := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # each would keep a copy of all global headers
                path = folder / _checked(member, name)
                total += member.size
                number += 1
                if total > most or number > _MOST_MEMBERS:
                    raise BundleError(
                        f"{name} unpacks to more than {most} bytes or {_MOST_MEMBERS} files: no layer of bundles does."
                    )
                (path if member.isdir() else path.parent).mkdir(parents=True, exist_ok=True)
                if not member.isdir():
                    bounded.left += member.size
                    _write(archive, member, path)
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, RecursionError) as error:
        raise BundleError(
            f"{name} is neither tar nor tar with gzip: {one_line(error)}. Push the image as 'python -m export package' "
            "writes it."
        ) from error
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise BundleError(f"{name} has {error.filename} twice.") from error


def _opened(layer: Path) -> BinaryIO:
    with layer.open("rb") as file:
        is_gzip = file.read(len(_GZIP)) == _GZIP
    return cast(BinaryIO, gzip.open(layer)) if is_gzip else layer.open("rb")


def _checked(member: tarfile.TarInfo, name: str) -> PurePosixPath:
    """Return where a member goes, relative to the folder."""
    path = PurePosixPath(member.name)
    parts = path.parts
    is_inside = ".." not in parts and "\\" not in member.name and all(map(is_name, parts))
    is_bundle = all(map(is_model, parts[:1])) and all(map(is_version, parts[1:2]))
    is_plain = member.isdir() or (member.isreg() and not member.issparse() and len(parts) > 2)
    if member.size < 0:
        raise ValueError(f"a file has {member.size} bytes")
    if not (is_inside and is_bundle and is_plain):
        raise BundleError(
            f"{name} has {member.name[:200]!r}; allowed are plain files <model>/<version>/<file>, as 'python -m export "
            "package' writes them."
        )
    return path


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    content = archive.extractfile(member)
    assert content is not None  # it is a file
    with content, path.open("xb") as file:
        shutil.copyfileobj(content, file, _CHUNK_BYTES)


class _Bounded:
    """A file of which only `left` bytes may be read: tarfile would read headers of any size and number into memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.tell, self.seek = file.tell, file.seek
        self.left = _MOST_HEADER_BYTES

    def read(self, size: int) -> bytes:
        if not 0 <= size <= self.left:  # all of the file, if it is negative
            raise ValueError(f"its headers have more than {_MOST_HEADER_BYTES} bytes")
        data = self._file.read(size)
        self.left -= len(data)
        return data
