"""A bundle's weights that are stored beside its graphs (ONNX's external data), in memory once for all its sessions."""

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy import typing as npt

from service.bundle.errors import BundleError
from service.bundle.protobuf import NotReadable, integers, last_part, parts, text

Array = npt.NDArray[Any]

_ALIGNMENT = 64  # bytes; of a file's contents
_GRAPH, _CONSTANT = 7, 5  # of ModelProto, GraphProto
_DIMS, _DTYPE, _NAME, _EXTERNAL = 1, 2, 8, 13  # of TensorProto
_KEY, _VALUE = 1, 2  # of StringStringEntryProto
_DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 10: np.float16}  # of TensorProto.DataType


class Weights:
    """The files of weights in a bundle's folder, each of which is read when a graph first refers to it.

    A process that serves alone reads them: NumPy asks for huge pages for arrays of this size, with which a step of a
    large model, which reads all of its weights, takes 2 to 6 % less time (Linux 6.18; more where the page cache has no
    large folios). Processes that serve the same bundle map them, and share the memory.
    """

    def __init__(self, directory: Path, *, maps: bool) -> None:
        self._directory = directory
        self._maps = maps
        self._files: dict[str, npt.NDArray[np.uint8]] = {}

    def of(self, graph: str) -> dict[str, Array]:
        """Return the stored constants of one of the bundle's graphs, which `check_graph` has accepted, by name.

        Raises:
            BundleError: a constant is not described as the exporter does, or its file can't be read or is too short.
        """
        path = self._directory / graph
        try:
            constants = parts(last_part(path.read_bytes(), _GRAPH) or b"")[_CONSTANT]
            return {
                text(last_part(constant, _NAME)): self._stored(constant)
                for constant in constants
                if last_part(constant, _EXTERNAL) is not None
            }
        except OSError as error:
            raise BundleError(f"{error.filename or path} can't be read: {error.strerror}.") from error
        except (NotReadable, LookupError, ValueError) as error:
            raise BundleError(f"{path} has weights that can't be found ({error!r}). Export it again.") from error

    def _stored(self, constant: bytes) -> Array:
        where = {text(last_part(entry, _KEY)): text(last_part(entry, _VALUE)) for entry in parts(constant)[_EXTERNAL]}
        shape, dtype = integers(constant, _DIMS), np.dtype(_DTYPES[integers(constant, _DTYPE)[-1]])
        begin, num_bytes = int(where["offset"]), math.prod(shape) * dtype.itemsize
        data = self._file(where["location"])
        if not 0 <= begin <= begin + num_bytes <= len(data):
            raise ValueError(f"bytes {begin} to {begin + num_bytes} of {len(data)}")
        return data[begin : begin + num_bytes].view(dtype).reshape(shape)

    def _file(self, name: str) -> npt.NDArray[np.uint8]:
        if self._maps and name not in self._files:
            self._files[name] = np.memmap(self._directory / name, np.uint8, "r")
        if name not in self._files:
            with (self._directory / name).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                memory = np.empty(size + _ALIGNMENT, np.uint8)
                contents = memory[-memory.ctypes.data % _ALIGNMENT :][:size]
                if file.readinto(contents.data) != size:
                    raise ValueError(f"{name} has become shorter")
            self._files[name] = contents
        return self._files[name]
