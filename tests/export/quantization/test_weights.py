"""Weights in int8: every value is within half a step, whatever the row's size, and packing loses none."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from export.quantization.weights import LARGEST, pack, quantize_rows, unpack


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


@given(hnp.arrays(np.int8, st.tuples(st.integers(1, 140), st.integers(1, 11)), elements=st.integers(-127, 127)))
def test_what_is_packed_lies_where_the_kernels_read_it(levels: np.ndarray) -> None:
    packed, (num_outputs, num_inputs) = pack(levels), levels.shape
    assert packed.shape == (-(-num_outputs // 64), -(-num_inputs // 4), 64, 4)
    for output, given_input in ((0, 0), (num_outputs - 1, num_inputs - 1), (num_outputs // 2, num_inputs // 2)):
        block, column = divmod(output, 64)
        assert packed[block, given_input // 4, column, given_input % 4] == levels[output, given_input]
    assert np.count_nonzero(packed) == np.count_nonzero(levels)
    np.testing.assert_array_equal(unpack(packed, num_outputs, num_inputs), levels)
