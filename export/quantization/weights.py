"""Weights in 8 bits: symmetric, one scale per output channel; pure."""

import numpy as np
from numpy import typing as npt

LARGEST = 127  # -128 is unused: the range is symmetric
_NOTHING = 1e-30  # smaller values have no scale that float32 can represent precisely enough


def quantize_rows(
    weight: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Quantize (rows, columns) to int8 with one scale per row (rows,); an all-zero row gets zeros and scale 1."""
    largest = np.abs(weight).max(axis=1)
    scales = np.where(largest > _NOTHING, largest / LARGEST, 1.0).astype(np.float32)
    quantized = np.clip(np.rint(weight / scales[:, None]), -LARGEST, LARGEST).astype(np.int8)
    return quantized, scales
