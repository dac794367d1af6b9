"""Reads files of untrusted checkpoints: regular ones, of bounded size, also unpacked.

All compressed data is unpacked here: gzip, Zstandard, and zips, which packages, NumPy's archives and torch's files are.
"""

import gzip
import io
import os
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from export.importers.files import SUFFIXES
from service.bundle.regular_file import open_regular

MAX_BYTES = 64 * 1024 * 1024  # of a file that holds no weights: NLLB's tokenizer.json has 17 MB
MAX_WEIGHTS_BYTES = 2**33
# Of what is compressed, times its size: weights shrink little, vocabularies to a tenth.
_MOST_TIMES = 100
_FREE_BYTES = 2**20  # but files that are small anyway may shrink more
_MOST_MEMBERS = 100_000  # of a zip; torch's files have one for each tensor
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others are unpacked without a bound on memory
_CHUNK_BYTES = 2**20
_ENCRYPTED = 1  # of a member's flags
_DAMAGED = (OSError, EOFError, zlib.error, zstandard.ZstdError, struct.error)
_DAMAGED_ZIP = (*_DAMAGED, RuntimeError, NotImplementedError, zipfile.BadZipFile)


def plain_name(path: Path) -> str:
    return path.stem if path.suffix in SUFFIXES[1:] else path.name


def read(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return a file's content of at most `most` bytes, decompressed if its name says that it is compressed."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if path.suffix not in SUFFIXES[1:]:
                _check_size(size, most)
                return file.read(size)
            with _unpacked(path, file) as content:
                return _bounded(content, min(most, _most_unpacked(size)))
    except FileNotFoundError:
        raise ValueError("it is missing") from None
    except _DAMAGED as error:
        raise ValueError(f"it can't be read: {reason(error)}") from error


@contextmanager
def opened_zip(file: Path | bytes) -> Iterator[zipfile.ZipFile]:
    """Open a zip, whose members may then be read as a whole."""
    try:
        with io.BytesIO(file) if isinstance(file, bytes) else open_regular(file) as content:
            size = content.seek(0, os.SEEK_END)
            with zipfile.ZipFile(content) as archive:
                _check_members(archive.infolist(), size)
                yield archive
    except _DAMAGED_ZIP as error:
        raise ValueError(f"it is not a zip file, or it is damaged: {reason(error)}") from error


def unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytearray:
    """Return the content of a member of a zip that `opened_zip` has opened, within its block."""
    content, size = bytearray(member.file_size), 0
    with archive.open(member) as file:
        while chunk := file.read(_CHUNK_BYTES):
            content[size : size + len(chunk)] = chunk
            size += len(chunk)
    if size < len(content):
        raise ValueError(f"{member.filename[:100]!r} is cut short: it has {size} bytes of {len(content)}")
    return content


def reason(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())[:200].rstrip(".") or type(error).__name__


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    if len(members) > _MOST_MEMBERS:
        raise ValueError(f"it has {len(members)} files; allowed: {_MOST_MEMBERS}")
    for member in members:
        if member.compress_type not in _COMPRESSIONS or member.flag_bits & _ENCRYPTED:
            how = "encrypted" if member.flag_bits & _ENCRYPTED else f"compressed by method {member.compress_type}"
            raise ValueError(f"{member.filename[:100]!r} is {how}; allowed: plain and deflated files")
    name, number = next(iter(Counter(member.filename for member in members).most_common(1)), ("", 0))
    if number > 1:
        raise ValueError(f"it has {name[:100]!r} more than once")
    _check_size(sum(member.file_size for member in members), min(MAX_WEIGHTS_BYTES, _most_unpacked(size)))


def _most_unpacked(size: int) -> int:
    return _MOST_TIMES * size + _FREE_BYTES


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise ValueError(f"it has {size} bytes; allowed: {most}")


def _unpacked(path: Path, file: BinaryIO) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, zstandard.ZstdDecompressor().stream_reader(file))))


def _bounded(content: BinaryIO, most: int) -> bytes:
    unpacked = io.BytesIO()
    while chunk := content.read(_CHUNK_BYTES):
        if unpacked.write(chunk) and unpacked.tell() > most:
            raise ValueError(f"it unpacks to more than {most} bytes")
    return unpacked.getvalue()
