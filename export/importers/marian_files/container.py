"""Reads Marian's files of weights: its binary container, and NumPy archives (`.npz`)."""

import re
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import typing as npt

from export.importers.byte_reader import ByteReader
from export.importers.marian_files.yaml_file import parse_settings
from export.importers.numpy_archive import read_arrays

CONFIG = "special:model.yml"
_TABLES = re.compile(r".*(Wemb|_Wt)")  # of embeddings, and a projection that is stored like one
_MOST_ITEMS, _MOST_DIMS = 100_000, 8
_VERSION = 1
_FLOAT16, _FLOAT32 = 0x0402, 0x0404
_INTGEMM8 = (0x4101, 0x10001)  # Mozilla's fork of Marian, and Marian itself
_REFUSED = {
    0x4102: "weights of intgemm in 16 bits",
    0x12001: "weights packed for one kind of CPU (intgemm8avx2)",
    0x12002: "weights packed for one kind of CPU (intgemm8avx512)",
    0x11001: "weights packed for one kind of CPU (intgemm8ssse3)",
}

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class MarianModel:
    """Settings, and parameters by Marian's names; matrices are (out, in), as in our layers, embeddings (V, d)."""

    settings: Mapping[str, Any]
    parameters: Mapping[str, Floats]


def read_model(data: bytes) -> MarianModel:
    return _read_archive(data) if data.startswith(b"PK") else _read_container(data)


@dataclass(frozen=True, slots=True)
class _Item:
    name: str
    kind: int
    shape: tuple[int, ...]
    data: memoryview

    @property
    def size(self) -> int:
        size = 1
        for dim in self.shape:
            size *= dim
        return size


def _read_container(data: bytes) -> MarianModel:
    parameters: dict[str, Floats] = {}
    settings: Mapping[str, Any] | None = None
    for item in _items(data):
        if item.name == CONFIG:
            settings = _settings(bytes(item.data))
        elif item.name.endswith("QuantMultA"):
            continue  # scales of activations, which the service finds for each row
        elif item.kind == _FLOAT32:
            parameters[item.name] = _oriented(item.name, _numbers(item, np.float32))
        elif item.kind == _FLOAT16:
            parameters[item.name] = _oriented(item.name, _numbers(item, np.float16).astype(np.float32))
        elif item.kind in _INTGEMM8:
            parameters[item.name] = _intgemm8(item)
        else:
            kind = _REFUSED.get(item.kind, f"the unknown type {item.kind:#x}")
            raise ValueError(
                f"{item.name[:100]!r} holds {kind}; supported: float32, float16 and intgemm8: take the model in "
                "one of these, or convert it with marian-conv --gemm-type intgemm8"
            )
    return _checked(settings, parameters)


def _items(data: bytes) -> list[_Item]:
    """Return all items of a container, whose numbers are little-endian and of 64 bits, but shapes, of 32."""
    reader = ByteReader(data)
    version, count = reader.numbers("QQ")
    if version != _VERSION:
        raise ValueError(f"it is not a Marian container: it begins with version {version}, expected {_VERSION}")
    if count > _MOST_ITEMS:
        raise ValueError(f"it claims to hold {count} items; allowed: {_MOST_ITEMS}")
    heads = [reader.numbers("QQQQ") for _ in range(count)]
    names = [reader.name(length) for length, *_ in heads]
    shapes = []
    for name, (_, _, rank, _) in zip(names, heads, strict=True):
        if rank > _MOST_DIMS:
            raise ValueError(f"{name[:100]!r} has {rank} dimensions; allowed: {_MOST_DIMS}")
        shapes.append(reader.numbers(f"{rank}i"))
    (pad,) = reader.numbers("Q")
    reader.take(pad)
    repeated = [name for name, number in Counter(names).items() if number > 1]
    if repeated:
        raise ValueError(f"it has {min(repeated)[:100]!r} more than once")
    items = []
    for name, (_, kind, _, num_bytes), shape in zip(names, heads, shapes, strict=True):
        if any(dim < 1 for dim in shape):
            raise ValueError(f"{name[:100]!r} has the shape {shape}")
        items.append(_Item(name, kind, shape, reader.take(num_bytes)))
    return items


def _numbers(item: _Item, dtype: type[np.generic]) -> npt.NDArray[Any]:
    needed = item.size * np.dtype(dtype).itemsize
    if needed > len(item.data):
        raise ValueError(f"{item.name!r} of shape {item.shape} needs {needed} bytes, it has {len(item.data)}")
    return np.frombuffer(item.data, np.dtype(dtype).newbyteorder("<"), item.size).reshape(item.shape)


def _oriented(name: str, values: npt.NDArray[Any]) -> Floats:
    """Return a parameter as our layers have it: matrices are stored (in, out), embeddings as they are used."""
    if _TABLES.fullmatch(name) or values.ndim != 2 or 1 in values.shape:
        return values
    return values.T


def _intgemm8(item: _Item) -> Floats:
    """Return the values. The levels lie (out, in) whatever the shape says, but embeddings."""
    if len(item.shape) != 2:
        raise ValueError(f"{item.name!r} is of intgemm8 and has the shape {item.shape}, expected a matrix")
    if item.size + 4 > len(item.data):
        raise ValueError(f"{item.name!r} of shape {item.shape} needs {item.size + 4} bytes, it has {len(item.data)}")
    levels = np.frombuffer(item.data, np.int8, item.size)
    (per_unit,) = struct.unpack("<f", item.data[item.size : item.size + 4])
    if not 0.0 < per_unit < np.inf:
        raise ValueError(f"{item.name!r} has {per_unit} levels per unit, expected a number above 0")
    step = np.float32(1.0) / np.float32(per_unit)
    shape = item.shape if _TABLES.fullmatch(item.name) else item.shape[::-1]
    return levels.reshape(shape).astype(np.float32) * step


def _read_archive(data: bytes) -> MarianModel:
    settings: Mapping[str, Any] | None = None
    parameters: dict[str, Floats] = {}
    for name, values in read_arrays(data):
        if name == CONFIG:
            settings = _settings(values.astype(np.uint8).tobytes())
        elif name.startswith("special:"):
            continue
        elif not np.issubdtype(values.dtype, np.floating):
            raise ValueError(f"{name[:100]!r} holds {values.dtype}, expected floating-point numbers")
        else:
            parameters[name] = _oriented(name, values.astype(np.float32, copy=False))
    return _checked(settings, parameters)


def _settings(text: bytes) -> Mapping[str, Any]:
    try:
        return parse_settings(text)
    except ValueError as error:
        raise ValueError(f"{CONFIG}: {error}") from error


def _checked(settings: Mapping[str, Any] | None, parameters: Mapping[str, Floats]) -> MarianModel:
    if settings is None:
        raise ValueError(f"it lacks {CONFIG}, Marian's settings of the model")
    return MarianModel(settings, parameters)
