"""The one file of a bundle's weights, written tensor by tensor; its graphs refer to ranges of it."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import onnx
from numpy import typing as npt

WEIGHTS = "weights.bin"
ALIGNMENT = 64  # bytes; the kernels read weights in their place
INLINE_BYTES = 256  # smaller constants are in the graphs
_LARGE_BYTES = 1024**3


class WeightsFile:
    """Writes constants and describes them as ONNX initializers; equal ones of one shape are stored once."""

    def __init__(self, directory: Path, *, appends: bool = False) -> None:
        self._file = (directory / WEIGHTS).open("ab" if appends else "wb")
        self._tensors: dict[bytes, onnx.TensorProto] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, name: str, array: npt.NDArray[Any]) -> onnx.TensorProto:
        data = np.ascontiguousarray(array)
        key = hashlib.sha256(f"{data.dtype.str} {data.shape}".encode())
        key.update(data.data.cast("B") if data.size else b"")
        if (known := self._tensors.get(key.digest())) is None:
            if data.nbytes < INLINE_BYTES:
                known = inline(name, data)
            else:
                known = self.add_parts(name, data.dtype, data.shape, [data])
            self._tensors[key.digest()] = known
        return known

    def add_parts(
        self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...], parts: Iterable[npt.NDArray[Any]]
    ) -> onnx.TensorProto:
        """Store an array that comes in parts along its first dimension, so that it need not be in memory whole."""
        self._file.write(bytes(-self._file.tell() % ALIGNMENT))
        begin = self._file.tell()
        for part in parts:
            self._file.write(np.ascontiguousarray(part).data)
        tensor = _described(name, np.dtype(dtype), shape)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        length = self._file.tell() - begin
        self._file.flush()  # a graph is run before the next one's weights are written
        for key, value in (("location", WEIGHTS), ("offset", str(begin)), ("length", str(length))):
            tensor.external_data.add(key=key, value=value)
        return tensor


def has_large_weights(directory: Path) -> bool:
    """Return whether a bundle's weights are gigabytes, which fit into memory once but not many times."""
    path = directory / WEIGHTS
    return path.exists() and path.stat().st_size > _LARGE_BYTES


def inline(name: str, array: npt.NDArray[Any]) -> onnx.TensorProto:
    tensor = _described(name, array.dtype, array.shape)
    tensor.raw_data = array.tobytes()
    return tensor


def _described(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> onnx.TensorProto:
    return onnx.TensorProto(name=name, dims=shape, data_type=onnx.helper.np_dtype_to_tensor_dtype(dtype))
