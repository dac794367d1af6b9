"""Reads `.safetensors` files as arrays that are mapped from the file: a model of gigabytes is in memory once, or not.

The library's own reader for numpy has no bfloat16 and copies; it checks the file here. Does not import torch.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import safetensors
from numpy import typing as npt

from export.architecture.stored import Array

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
    """Return all arrays by name; what is written to one is not written to the file.

    Raises:
        ValueError: the file is damaged, or has numbers of another type.
    """
    try:
        with safetensors.safe_open(path, "numpy") as file:  # checks header, types, and that the ranges fill the file
            names = set(file.keys())
    except (OSError, safetensors.SafetensorError) as error:
        raise ValueError(f"{path.name} is damaged or not a file of weights ({error})") from error
    with path.open("rb") as binary:
        size = int.from_bytes(binary.read(_HEADER_SIZE_BYTES), "little")
        header = json.loads(binary.read(size))
    begin = _HEADER_SIZE_BYTES + size
    content = np.memmap(path, np.uint8, "c")
    arrays = {}
    for name in sorted(names):
        dtype, shape, (first, last) = (header[name][key] for key in ("dtype", "shape", "data_offsets"))
        if dtype not in _DTYPES:
            raise ValueError(f"{path.name}: {name} has numbers of type {dtype}; supported are {', '.join(_DTYPES)}")
        arrays[name] = content[begin + first : begin + last].view(np.ndarray).view(_DTYPES[dtype]).reshape(shape)
    return arrays
