"""Reads NumPy's archives (`.npz`) of numbers: NumPy itself reserves whatever memory a head asks for."""

import math
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import typing as npt

from export.importers import stored_file

_SUFFIX = ".npy"
_MAGIC = re.compile(rb"\x93NUMPY[\x01-\x03]\x00")
_SIZE_BYTES = {1: 2, 2: 4, 3: 4}  # of a head's size, by version
_MOST_HEAD_BYTES = 2**16
_MOST_DIMS = 8
_HEAD = re.compile(
    r"\s*\{\s*'descr'\s*:\s*'([<>|=]?)([a-zA-Z])([0-9]{1,2})'\s*,\s*'fortran_order'\s*:\s*(True|False)\s*,"
    r"\s*'shape'\s*:\s*\(((?:\s*[0-9]{1,18}L?\s*,)*(?:\s*[0-9]{1,18}L?)?)\s*\)\s*,?\s*\}\s*"
)
_KINDS = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8)}  # and numbers of bytes


def read_arrays(data: bytes) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    with stored_file.opened_zip(data) as archive:
        members = archive.infolist()
        for member in members:  # all heads, before anything is unpacked
            with archive.open(member) as file:
                _head(member, file.read(_MOST_HEAD_BYTES))
        for member in members:
            content = stored_file.unpacked(archive, member)
            begin, dtype, order, shape = _head(member, content)
            yield (
                member.filename.removesuffix(_SUFFIX),
                np.frombuffer(content, dtype, offset=begin).reshape(shape, order=order),
            )


def _head(member: zipfile.ZipInfo, start: bytes | bytearray) -> tuple[int, np.dtype[Any], Any, tuple[int, ...]]:
    """Return where the numbers begin in a member, their type, NumPy's name of their order, and their shape."""
    name = repr(member.filename[:100])
    if not _MAGIC.match(start):
        raise ValueError(f"it is not an archive of NumPy arrays: {name} is none")
    begin = 8 + _SIZE_BYTES[start[6]]
    end = begin + int.from_bytes(start[8:begin], "little")
    head = _HEAD.fullmatch(start[begin:end].decode("latin-1"))
    if head is None or end > len(start):
        raise ValueError(f"{name} has a head that is not NumPy's, of one kind of numbers and a shape")
    sign, kind, size, is_fortran, dims = head.groups()
    if int(size) not in _KINDS.get(kind, ()):
        raise ValueError(f"{name} holds {kind}{size}, expected numbers of {', '.join(_KINDS)}")
    shape = tuple(int(dim.strip(" L")) for dim in dims.split(",") if dim.strip())
    if len(shape) > _MOST_DIMS:
        raise ValueError(f"{name} has {len(shape)} dimensions; allowed: {_MOST_DIMS}")
    needed = math.prod(shape) * int(size)
    if end + needed != member.file_size:
        raise ValueError(f"{name} of shape {shape} needs {needed} bytes, it has {member.file_size - end}")
    return end, np.dtype(f"{sign}{kind}{size}"), "F" if is_fortran == "True" else "C", shape
