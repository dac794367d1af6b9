"""Derives the range that 8 bits cover from an activation's observed values; pure."""

from dataclasses import dataclass, field

import numpy as np
from numpy import typing as npt

Values = npt.NDArray[np.float32]

NUM_BINS = 4096
LEVELS = 255  # steps between the lowest and the highest of 256 values
PERCENTILES = (99.9, 99.99, 99.999)
METHODS = ("largest", *(f"percentile {value:g}" for value in PERCENTILES), "squared error")
_SHRINKAGES = np.linspace(1.0, 0.3, 71)


@dataclass(frozen=True, slots=True)
class Range:
    """The range that 8 bits cover; `low` <= 0 <= `high`, as zero (padding, ReLU) must be exact."""

    low: float
    high: float

    def scale(self) -> np.float32:
        """Return the width of one of the 255 steps; positive."""
        return np.float32(max(self.high - self.low, 1e-8) / LEVELS)

    def zero_point(self) -> np.uint8:
        """Return the integer that represents 0."""
        return np.uint8(np.clip(np.rint(-self.low / self.scale()), 0, LEVELS))


@dataclass(slots=True)
class Histogram:
    """A histogram of an activation's values. First call `widen` on all values, then `count` on all of them."""

    low: float = 0.0
    high: float = 0.0
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(NUM_BINS, np.int64))

    def widen(self, values: Values) -> None:
        """Extend the range to cover values of any shape."""
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))

    def count(self, values: Values) -> None:
        """Count values, all within the range that `widen` saw."""
        self.counts += np.histogram(values, bins=NUM_BINS, range=self._limits())[0]

    def range(self, method: str) -> Range:
        """Return the range by one of `METHODS`.

        "largest" covers every value. A percentile leaves out the same share at both ends. "squared error" shrinks the
        range as long as finer steps gain more than clipping loses.
        """
        if method == "largest":
            return Range(self.low, self.high)
        if method == "squared error":
            return self._of_least_squared_error()
        return self._percentile(float(method.removeprefix("percentile ")))

    def _percentile(self, percentile: float) -> Range:
        share = np.cumsum(self.counts) / max(int(self.counts.sum()), 1)
        left_out = (1.0 - percentile / 100.0) / 2.0
        edges = np.linspace(*self._limits(), NUM_BINS + 1)
        low = float(edges[np.searchsorted(share, left_out, side="right")])
        high = float(edges[min(int(np.searchsorted(share, 1.0 - left_out)) + 1, NUM_BINS)])
        return Range(min(low, 0.0), max(high, 0.0))

    def _of_least_squared_error(self) -> Range:
        edges = np.linspace(*self._limits(), NUM_BINS + 1)
        centers = (edges[1:] + edges[:-1]) / 2.0
        ranges = [Range(self.low * shrinkage, self.high * shrinkage) for shrinkage in _SHRINKAGES]
        return min(ranges, key=lambda each: float(self.counts @ (_rounded(centers, each) - centers) ** 2))

    def _limits(self) -> tuple[float, float]:
        return self.low, max(self.high, self.low + 1e-6)


def _rounded(values: npt.NDArray[np.float64], covered: Range) -> npt.NDArray[np.float64]:
    scale, zero_point = float(covered.scale()), int(covered.zero_point())
    levels = np.clip(np.rint(values / scale) + zero_point, 0, LEVELS)
    restored: npt.NDArray[np.float64] = (levels - zero_point) * scale
    return restored
