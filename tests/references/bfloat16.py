"""The upper half of a float32, as uint16: NumPy has no such dtype."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint16]

NAN = np.uint16(0x7FC0)


def to_bits(values: NDArray[Any]) -> Bits:
    """Round finite numbers to the nearest, to even if in the middle."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)).astype(np.uint16)


def from_bits(bits: Bits) -> NDArray[np.float32]:
    """Return the numbers."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rounded(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return finite numbers as they are after having been stored."""
    return from_bits(to_bits(values))
