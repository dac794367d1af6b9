"""Functions of whole rows against NumPy, with the same bits on every instruction set."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.quantization.weights import pack
from tests.kernels.compute import NORMS, Compute, Floats, Quantized, quantized

SEEDS = st.integers(0, 2**32)


def assert_same(own: Quantized, expected: Quantized, name: str) -> None:
    np.testing.assert_array_equal(own.levels, expected.levels, name)
    np.testing.assert_array_equal(own.scales, expected.scales, name)


@given(rows=st.integers(1, 4), width=st.integers(1, 200), zero_point=st.sampled_from((0, 128)), seed=SEEDS)
def test_quantize(computes: list[Compute], rows: int, width: int, zero_point: int, seed: int) -> None:
    """Each row by its own largest magnitude; what is beyond its width does not matter."""
    random = np.random.default_rng(seed)
    x = (random.normal(size=(rows, width)) * np.exp(random.normal(0, 8, (rows, 1)))).astype(np.float32)
    if zero_point == 0:
        x = np.abs(x)
    expected = quantized(x, zero_point)
    assert (np.abs(expected.levels - np.float64(zero_point)).max(1) == 255 - zero_point).all()
    for compute in computes:
        assert_same(compute.quantize(x, zero_point), expected, compute.name)


@pytest.mark.parametrize("zero_point", [0, 128])
def test_in_the_middle_of_two_levels_the_even_one_counts(computes: list[Compute], zero_point: int) -> None:
    largest = 255 - zero_point
    x = np.arange(0, largest + 0.5, 0.5, dtype=np.float32)[None]
    for compute in computes:
        own = compute.quantize(x, zero_point)
        assert own.scales.tolist() == [1.0]
        np.testing.assert_array_equal(own.levels, np.rint(x) + zero_point, compute.name)


@pytest.mark.parametrize("zero_point", [0, 128])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 1e-38, 1e-31, 1e-30, 2e-30, 3.4e38])
def test_quantize_odd_values(computes: list[Compute], value: float, zero_point: int) -> None:
    """One such value among ordinary ones, or among zeros, and a row of nothing else."""
    for width, place in itertools.product((1, 15, 16, 17, 33, 64, 90), (0, -1)):
        x = np.zeros((3, width), np.float32)
        x[0] = np.linspace(0.1, 2, width)
        x[:2, place], x[2] = value, value
        expected = quantized(x, zero_point)
        for compute in computes:
            assert_same(compute.quantize(x, zero_point), expected, compute.name)
        if np.isnan(value):
            assert np.isfinite(expected.scales).all()
            assert (expected.levels[:, place] == 0).all()
        if abs(value) < 1e-30:
            assert (expected.levels[1:] == zero_point).all()


def normalized(x: Floats, gain: Floats, bias: Floats, epsilon: float, kind: str) -> Floats:
    wide = x.astype(np.float64)
    if kind == "rms":
        rms: Floats = wide / np.sqrt((wide * wide).mean(1, keepdims=True) + epsilon) * gain + bias
        return rms
    centered = wide - wide.mean(1, keepdims=True)
    if kind == "scalar":
        deviation = wide.std(1, ddof=1, keepdims=True) + epsilon
    else:
        deviation = np.sqrt(wide.var(1, keepdims=True) + epsilon)
    value: Floats = centered / deviation * gain + bias
    return value


@given(rows=st.integers(1, 3), width=st.integers(2, 200), kind=st.sampled_from(NORMS), seed=SEEDS)
def test_norm(computes: list[Compute], rows: int, width: int, kind: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    x = (random.normal(size=(rows, width)) * 3 + random.normal()).astype(np.float32)
    gain, bias = random.normal(size=(2, width)).astype(np.float32)
    results = [compute.norm(x, gain, bias, 1e-5, kind) for compute in computes]
    expected = normalized(x, gain, bias, 1e-5, kind)
    # The mean of a row is rounded, which counts for as much more as the row is close to its mean.
    magnified = np.abs(x).max(1, keepdims=True) / x.std(1, keepdims=True) * np.abs(gain)
    assert (np.abs(results[0][0] - expected) <= 1e-5 + 3e-6 * np.abs(expected) + 5e-7 * magnified).all()
    for compute, (normed, levels) in zip(computes, results, strict=True):
        np.testing.assert_array_equal(normed, results[0][0], compute.name)
        assert_same(levels, quantized(normed, 128), compute.name)


def test_rows_do_not_depend_on_each_other(computes: list[Compute]) -> None:
    x = np.random.default_rng(0).normal(size=(9, 77)).astype(np.float32)
    x[3], x[5], x[7] = 0, np.inf, np.nan
    ones = np.ones(77, np.float32)
    for compute in computes:
        normed, levels = compute.norm(x, ones, ones, 1e-5, "vector")
        plain = compute.quantize(x)
        for row in range(len(x)):
            alone, own_levels = compute.norm(x[row : row + 1], ones, ones, 1e-5, "vector")
            np.testing.assert_array_equal(alone[0], normed[row])
            assert_same(own_levels, levels.rows(row, row + 1), compute.name)
            assert_same(compute.quantize(x[row : row + 1]), plain.rows(row, row + 1), compute.name)


@pytest.mark.parametrize("width", [1, 15, 16, 24, 64, 100])
def test_recur(computes: list[Compute], width: int) -> None:
    rng = np.random.default_rng(width)
    candidate, gate, past = (rng.normal(scale=9.0, size=width).astype(np.float32) for _ in range(3))
    gate[:1], gate[-1:] = 200.0, -200.0
    kept = 1.0 / (1.0 + np.exp(-gate.astype(np.float64)))
    for before in (past, None):
        expected = kept * (0.0 if before is None else before) + (1.0 - kept) * candidate
        results = [compute.recur(candidate, gate, before) for compute in computes]
        for compute, (output, state) in zip(computes, results, strict=True):
            np.testing.assert_allclose(state, expected, rtol=1e-5, atol=1e-5, err_msg=compute.name)
            np.testing.assert_array_equal(output, np.maximum(state, np.float32(0.0)))
            np.testing.assert_array_equal(state, results[0][1], compute.name)


@pytest.mark.parametrize("width", [1, 16, 30, 80, 513])
def test_embed(computes: list[Compute], width: int) -> None:
    """A token is a column of the packed table."""
    random = np.random.default_rng(width)
    tokens = random.integers(-127, 128, (150, width)).astype(np.int8)
    packed, position = pack(tokens), random.normal(size=width).astype(np.float32)
    for token in (0, 1, 63, 64, 127, 128, 149):
        expected = tokens[token].astype(np.float32) * np.float32(0.3) + position
        for compute in computes:
            np.testing.assert_array_equal(compute.embed(packed, token, 0.3, position), expected, compute.name)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, 1e-45])
def test_is_finite(computes: list[Compute], value: float) -> None:
    for size in (1, 15, 16, 100):
        for place in range(size):
            x = np.ones(size, np.float32)
            x[place] = value
            assert {compute.is_finite(x) for compute in computes} == {np.isfinite(np.float32(value))}
