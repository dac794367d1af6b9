"""Ranges of activations: zero stays exact, and each method works as described."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from export.quantization.ranges import LEVELS, METHODS, Histogram, Range

values = hnp.arrays(np.float32, st.integers(1, 200), elements=st.floats(-1e4, 1e4, width=32))


def histogram(*batches: np.ndarray) -> Histogram:
    made = Histogram()
    for batch in batches:
        made.widen(batch)
    for batch in batches:
        made.count(batch)
    return made


def rounded(given: np.ndarray, covered: Range) -> np.ndarray:
    """Apply QuantizeLinear and DequantizeLinear, as ONNX defines them."""
    scale, zero_point = float(covered.scale()), int(covered.zero_point())
    restored: np.ndarray = (np.clip(np.rint(given / scale) + zero_point, 0, LEVELS) - zero_point) * scale
    return restored


@settings(derandomize=True, deadline=None, max_examples=200)
@given(values, st.sampled_from(METHODS))
def test_zero_is_exact_and_the_range_lies_within_what_was_seen(batch: np.ndarray, method: str) -> None:
    covered = histogram(batch).range(method)
    assert rounded(np.zeros(1), covered) == 0.0
    width = max(float(batch.max()), 0.0) - min(float(batch.min()), 0.0)
    assert min(float(batch.min()), 0.0) - 1e-3 * width - 1e-5 <= covered.low <= 0.0
    assert 0.0 <= covered.high <= max(float(batch.max()), 0.0) + 1e-3 * width + 1e-5


@settings(derandomize=True, deadline=None, max_examples=200)
@given(values)
def test_the_largest_range_rounds_every_value_by_half_a_step_at_most(batch: np.ndarray) -> None:
    covered = histogram(batch).range("largest")
    step = float(covered.scale())
    assert (
        np.abs(rounded(batch, covered) - batch).max() <= 1.01 * step + 1e-6
    )  # half of it for the zero point's rounding


def test_a_percentile_leaves_outliers_out_and_least_squares_beats_the_largest_range() -> None:
    rng = np.random.default_rng(1)
    batch = rng.normal(size=50_000).astype(np.float32)
    batch[:3] = 40.0
    made = histogram(batch[:100], batch[100:])
    assert made.range("largest").high == pytest.approx(40.0)
    assert made.range("percentile 99.9").high < 5.0
    errors = {m: float(((rounded(batch, made.range(m)) - batch) ** 2).mean()) for m in ("largest", "squared error")}
    assert errors["squared error"] < errors["largest"]


def test_counts_add_up_over_batches() -> None:
    first, second = np.array([1.0, -2.0], np.float32), np.array([[3.0], [0.5]], np.float32)
    made = histogram(first, second)
    assert (made.low, made.high) == (-2.0, 3.0)
    assert made.counts.sum() == 4


def test_values_that_are_all_zero_have_a_range() -> None:
    covered = histogram(np.zeros(8, np.float32)).range("squared error")
    assert covered.scale() > 0
