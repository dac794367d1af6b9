"""Weights in int8: every value is within half a step, whatever the row's size."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from export.quantization.weights import LARGEST, quantize_rows


@settings(derandomize=True, deadline=None, max_examples=200)
@given(hnp.arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 9)), elements=st.floats(-1e3, 1e3, width=32)))
def test_error_is_at_most_half_a_step_of_the_row(weight: np.ndarray) -> None:
    quantized, scales = quantize_rows(weight)
    assert quantized.dtype == np.int8
    assert np.abs(quantized.astype(int)).max() <= LARGEST
    error = np.abs(quantized * scales[:, None].astype(np.float64) - weight)
    assert (error <= 0.5001 * scales[:, None] + 1e-30).all()


def test_a_row_of_zeros_stays_zero() -> None:
    quantized, scales = quantize_rows(np.zeros((2, 3), np.float32))
    assert not quantized.any()
    assert (scales == 1).all()
