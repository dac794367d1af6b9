"""Reads `.safetensors` files as arrays mapped from the file, so a model of gigabytes is in memory once at most; writes
them.

The library's functions for numpy lack bfloat16 and copy; its reader checks files here. Does not import torch.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import safetensors
from numpy import typing as npt

from export.architecture.stored import Array
from export.importers.stored_file import reason
from service.bundle.regular_file import check_regular

_HEADER_SIZE_BYTES = 8
_DTYPES: Mapping[str, npt.DTypeLike] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}


def read_safetensors(path: Path) -> dict[str, Array]:
    """Return all arrays by name; what is written to one is not written to the file."""
    try:
        check_regular(path)
        with safetensors.safe_open(path, "numpy") as file:  # checks header, types, and that the ranges fill the file
            names = set(file.keys())
    except (OSError, safetensors.SafetensorError) as error:
        raise ValueError(
            f"{path.name} is damaged, truncated or not a file of weights ({reason(error)}); download it again"
        ) from error
    with path.open("rb") as binary:
        size = int.from_bytes(binary.read(_HEADER_SIZE_BYTES), "little")
        header = json.loads(binary.read(size))
    begin = _HEADER_SIZE_BYTES + size
    content = np.memmap(path, np.uint8, "c")
    arrays = {}
    for name in sorted(names):
        dtype, shape, (first, last) = (header[name][key] for key in ("dtype", "shape", "data_offsets"))
        if dtype not in _DTYPES:
            raise ValueError(f"{path.name}: {name} has numbers of type {dtype}; supported: {', '.join(_DTYPES)}")
        arrays[name] = content[begin + first : begin + last].view(np.ndarray).view(_DTYPES[dtype]).reshape(shape)
    return arrays


def write_safetensors(arrays: Mapping[str, Array], path: Path) -> None:
    """Write arrays as transformers does, one by one."""
    types = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": types[array.dtype], "shape": array.shape, "data_offsets": [begin, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % _HEADER_SIZE_BYTES)
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(_HEADER_SIZE_BYTES, "little") + encoded)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
