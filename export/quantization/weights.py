"""Weights in 8 bits: symmetric, one scale per output, in the blocks that the kernels read; pure."""

import numpy as np
from numpy import typing as npt

LARGEST = 127  # level of 8 bits with a sign; -128 is unused: the range is symmetric
BLOCK_COLUMNS, GROUP_INPUTS = 64, 4  # `kernels/src/compute/compute.h`
_NOTHING = 1e-30  # smaller values have no scale that float32 can represent precisely enough


def quantize_rows(
    weight: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Quantize (rows, columns) to int8 with one scale per row (rows,); an all-zero row gets zeros and scale 1."""
    largest = np.abs(weight).max(axis=1)
    scales = np.where(largest > _NOTHING, largest / LARGEST, 1.0).astype(np.float32)
    scaled = weight * (1.0 / scales)[:, None]
    quantized = np.clip(np.rint(scaled, out=scaled), -LARGEST, LARGEST, out=scaled).astype(np.int8)
    return quantized, scales


def pack(levels: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return (outputs, inputs) as (blocks, groups, 64, 4): 64 outputs, four inputs side by side, padded by zeros."""
    num_outputs, num_inputs = levels.shape
    num_blocks, num_groups = -(-num_outputs // BLOCK_COLUMNS), -(-num_inputs // GROUP_INPUTS)
    padded = np.zeros((num_blocks * BLOCK_COLUMNS, num_groups * GROUP_INPUTS), np.int8)
    padded[:num_outputs, :num_inputs] = levels
    # Groups are moved as a whole, as numbers of 32 bits: that is several times faster.
    groups = padded.view(np.int32).reshape(num_blocks, BLOCK_COLUMNS, num_groups)
    packed = np.ascontiguousarray(groups.transpose(0, 2, 1))
    return packed.view(np.int8).reshape(num_blocks, num_groups, BLOCK_COLUMNS, GROUP_INPUTS)


def unpack(packed: npt.NDArray[np.int8], num_outputs: int, num_inputs: int) -> npt.NDArray[np.int8]:
    """Return the (outputs, inputs) of which `pack` made (blocks, groups, 64, 4)."""
    levels = packed.transpose(0, 2, 1, 3).reshape(packed.shape[0] * BLOCK_COLUMNS, -1)
    return np.ascontiguousarray(levels[:num_outputs, :num_inputs])
