"""A bundle's weights that are stored beside its graphs (ONNX's external data), in memory once for all its sessions."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy import typing as npt

from service.bundle.errors import BundleError
from service.bundle.protobuf import LENGTH, NotReadable, fields, integers, last_part, parts, text

Array = npt.NDArray[Any]

_ALIGNMENT = 64  # bytes; of a file's contents
_GRAPH, _CONSTANT = 7, 5  # of ModelProto, GraphProto
_DIMS, _DTYPE, _NAME, _EXTERNAL = 1, 2, 8, 13  # of TensorProto
_KEY, _VALUE = 1, 2  # of StringStringEntryProto
_DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 10: np.float16}  # of TensorProto.DataType


class Weights:
    """The files of weights in a bundle's folder, which are read when a graph refers to them.

    Equal parts of a file are in memory once, whichever graphs refer to them. They are read, not mapped, so that writing
    to a file, or shortening it, changes nothing of what is served. A whole file is one piece of memory: NumPy asks for
    huge pages for it, which makes a step of a large model 2 to 6 % faster (Linux 6.18; more without large folios in the
    page cache).
    """

    def __init__(self, directory: Path, *, apart: bool = False) -> None:
        """With `apart`, each constant has its own memory, freed after its last use: for sessions that repack most."""
        self._directory = directory
        self._apart = apart
        self._files: dict[str, npt.NDArray[np.uint8]] = {}
        self._in_use: WeakValueDictionary[tuple[str, int, npt.DTypeLike, tuple[int, ...]], Array] = (
            WeakValueDictionary()
        )

    def of(self, graph: str) -> dict[str, Array]:
        """Return the stored constants of one of the bundle's graphs, which `check_graph` has accepted, by name."""
        path = self._directory / graph
        try:
            data = path.read_bytes()
            return {
                text(last_part(constant, _NAME)): self._stored(constant)
                for constant in _constants(data)
                if last_part(constant, _EXTERNAL) is not None
            }
        except (NotReadable, OSError, LookupError, ValueError) as error:
            raise BundleError(f"{path} has weights that can't be read ({error!r}). Export it again.") from error

    def _stored(self, constant: bytes) -> Array:
        where = {text(last_part(entry, _KEY)): text(last_part(entry, _VALUE)) for entry in parts(constant)[_EXTERNAL]}
        shape, dtype = tuple(integers(constant, _DIMS)), np.dtype(_DTYPES[integers(constant, _DTYPE)[-1]])
        name, begin, num_bytes = where["location"], int(where["offset"]), math.prod(shape) * dtype.itemsize
        size = (self._directory / name).stat().st_size
        if int(where["length"]) != num_bytes or not 0 <= begin <= begin + num_bytes <= size:
            raise ValueError(f"{num_bytes} bytes at {begin} ({where['length']} said) of {size} in {name}")
        key = name, begin, dtype, shape
        found = self._in_use.get(key)
        if found is None:
            found = self._in_use[key] = self._bytes(name, begin, num_bytes).view(dtype).reshape(shape)
        return found

    def _bytes(self, name: str, begin: int, num_bytes: int) -> npt.NDArray[np.uint8]:
        path = self._directory / name
        if self._apart:
            return _contents(path, begin, num_bytes)
        if name not in self._files:
            self._files[name] = _contents(path, 0, path.stat().st_size)
        return self._files[name][begin : begin + num_bytes]


def _constants(data: bytes) -> Iterator[bytes]:
    """Yield the constants of a model, one at a time: in a bundle that was made before they are stored in the graph."""
    for number, kind, begin, stop in fields(data, 0, len(data)):
        if (number, kind) == (_GRAPH, LENGTH):
            for own, own_kind, own_begin, own_stop in fields(data, begin, stop):
                if (own, own_kind) == (_CONSTANT, LENGTH):
                    yield data[own_begin:own_stop]


def _contents(path: Path, begin: int, num_bytes: int) -> npt.NDArray[np.uint8]:
    """Return a part of a file in memory of its own, at a multiple of 64 bytes."""
    memory = np.empty(num_bytes + _ALIGNMENT, np.uint8)
    contents = memory[-memory.ctypes.data % _ALIGNMENT :][:num_bytes]
    with path.open("rb") as file:
        file.seek(begin)
        if file.readinto(contents.data) != num_bytes:
            raise ValueError(f"{path.name} has become shorter")
    return contents
