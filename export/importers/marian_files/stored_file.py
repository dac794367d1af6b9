"""Reads the files of a student's folder: each may be compressed by gzip or Zstandard."""

import gzip
import io
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from export.importers.files import SUFFIXES

_MOST_BYTES = 2**31  # of a file without compression: twice as much as a transformer-big in float32
_CHUNK_BYTES = 2**20


def plain_name(path: Path) -> str:
    """Return a file's name without the suffix of its compression."""
    return path.stem if path.suffix in SUFFIXES[1:] else path.name


def read(path: Path) -> bytes:
    """Return a file's content, decompressed.

    Raises:
        ValueError: it can't be read, is damaged, cut short, or too large.
    """
    try:
        with path.open("rb") as file, _opened(path, file) as content:
            chunks, size = list[bytes](), 0
            while chunk := content.read(_CHUNK_BYTES):
                chunks.append(chunk)
                size += len(chunk)
                if size > _MOST_BYTES:
                    raise ValueError(f"it is larger than {_MOST_BYTES} bytes")
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise ValueError(f"it can't be read: {error}") from error
    return b"".join(chunks)


def _opened(path: Path, file: BinaryIO) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    if path.suffix == ".zst":
        return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, zstandard.ZstdDecompressor().stream_reader(file))))
    return file
