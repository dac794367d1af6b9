"""Pure arithmetic on measurements: rates, best and median, percentiles."""

import math
import statistics
from collections.abc import Sequence
from typing import Any


def rates(num_tokens: Sequence[int], seconds: Sequence[float]) -> dict[str, Any]:
    """Return best and median tokens per second over rounds, each with its own tokens and seconds."""
    if not seconds or len(num_tokens) != len(seconds):
        raise ValueError(f"{len(num_tokens)} counts and {len(seconds)} times; expected as many, at least one.")
    each = [tokens / elapsed for tokens, elapsed in zip(num_tokens, seconds, strict=True)]
    return {
        "tokens_per_second_best": max(each),
        "tokens_per_second_median": statistics.median(each),
        "rounds": len(each),
    }


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` (0 to 1) of all values do not exceed; NaN without values."""
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share is {share}; allowed: 0 to 1.")
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)] if values else math.nan
