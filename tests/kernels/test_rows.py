"""Functions of whole rows against NumPy, with the same bits on every instruction set."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.compute import Compute, Floats, Quantization

SEEDS = st.integers(0, 2**32)


@settings(max_examples=60, deadline=None)
@given(rows=st.integers(1, 4), width=st.integers(1, 200), zero_point=st.integers(0, 255), seed=SEEDS)
def test_quantize(computes: list[Compute], rows: int, width: int, zero_point: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    x = (random.integers(-600, 600, (rows, width)) / 2).astype(np.float32)  # many in the middle of two integers
    x.flat[:1] = random.choice(np.array([np.inf, -np.inf, 1e30, -1e30], np.float32))
    expected = np.clip(np.rint(x) + zero_point, 0, 255)
    for compute in computes:
        np.testing.assert_array_equal(compute.quantize(x, Quantization(1.0, zero_point)), expected, compute.name)


def test_nan_is_level_0(computes: list[Compute]) -> None:
    for compute in computes:
        assert np.all(compute.quantize(np.full((1, 20), np.nan, np.float32), Quantization(1.0, 100)) == 0)


def normalized(x: Floats, gain: Floats, bias: Floats, epsilon: float, is_scalar: bool) -> Floats:
    wide = x.astype(np.float64)
    centered = wide - wide.mean(1, keepdims=True)
    if is_scalar:
        deviation = wide.std(1, ddof=1, keepdims=True) + epsilon
    else:
        deviation = np.sqrt(wide.var(1, keepdims=True) + epsilon)
    value: Floats = centered / deviation * gain + bias
    return value


@settings(max_examples=80, deadline=None)
@given(rows=st.integers(1, 3), width=st.integers(2, 200), is_scalar=st.booleans(), seed=SEEDS)
def test_norm(computes: list[Compute], rows: int, width: int, is_scalar: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    x = (random.normal(size=(rows, width)) * 3 + random.normal()).astype(np.float32)
    gain, bias = random.normal(size=(2, width)).astype(np.float32)
    to = Quantization(30.0, 128)
    results = [compute.norm(x, gain, bias, 1e-5, is_scalar, to) for compute in computes]
    expected = normalized(x, gain, bias, 1e-5, is_scalar)
    # The mean of a row is rounded, which counts for as much more as the row is close to its mean.
    magnified = np.abs(x).max(1, keepdims=True) / x.std(1, keepdims=True) * np.abs(gain)
    assert (np.abs(results[0][0] - expected) <= 1e-5 + 3e-6 * np.abs(expected) + 5e-7 * magnified).all()
    for compute, (normed, levels) in zip(computes, results, strict=True):
        np.testing.assert_array_equal(normed, results[0][0], compute.name)
        np.testing.assert_array_equal(levels, compute.quantize(normed, to), compute.name)


def test_rows_do_not_depend_on_each_other(computes: list[Compute]) -> None:
    x = np.random.default_rng(0).normal(size=(9, 77)).astype(np.float32)
    ones, to = np.ones(77, np.float32), Quantization(30.0, 128)
    for compute in computes:
        together = compute.norm(x, ones, ones, 1e-5, False, to)[0]
        alone = [compute.norm(row[None], ones, ones, 1e-5, False, to)[0][0] for row in x]
        np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("width", [1, 16, 80, 513])
def test_embed(computes: list[Compute], width: int) -> None:
    random = np.random.default_rng(width)
    token, position = random.integers(-127, 128, width).astype(np.int8), random.normal(size=width).astype(np.float32)
    for compute in computes:
        expected = token.astype(np.float32) * np.float32(0.3) + position
        np.testing.assert_array_equal(compute.embed(token, 0.3, position), expected, compute.name)


@pytest.mark.parametrize("size", [1, 15, 16, 100])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, 1e-45])
def test_is_finite(computes: list[Compute], size: int, value: float) -> None:
    for compute in computes:
        for place in range(size):
            x = np.ones(size, np.float32)
            x[place] = value
            assert compute.is_finite(x) == np.isfinite(np.float32(value))
