"""Percentiles by the nearest rank."""

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` (0 to 1) of all values do not exceed; NaN without values."""
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share is {share}; allowed is 0 to 1.")
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)] if values else math.nan
