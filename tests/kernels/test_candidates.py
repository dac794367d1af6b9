"""The log of a sum and the largest of many values against NumPy, with the same bits on every instruction set."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.compute import Compute, Floats

SIZES = [1, 5, 16, 17, 63, 64, 65, 1000, 8192, 32001, 250_000]


def values(count: int, seed: int, is_coarse: bool = False) -> Floats:
    """Return logits, some of them minus infinity, many of them equal if coarse."""
    random = np.random.default_rng(seed)
    x = (random.normal(size=count) * 5).astype(np.float32)
    if is_coarse:
        x = np.rint(x)
    x[random.random(count) < 0.1] = -np.inf
    x[random.integers(count)] = 1
    return x


@pytest.mark.parametrize("size", SIZES)
def test_log_sum(computes: list[Compute], size: int) -> None:
    x = values(size, size)
    results = [compute.log_sum(x) for compute in computes]
    assert results[0][0] == x.max()
    np.testing.assert_allclose(results[0][1], np.exp(x.astype(np.float64) - x.max()).sum(), rtol=1e-6)
    assert all(result == results[0] for result in results)


def test_exp(computes: list[Compute]) -> None:
    """Many equal values and one that is larger: their sum has the digits of exp(x)."""
    for x in np.linspace(-100, 0, 201).astype(np.float32):
        both = np.append(np.full(1 << 12, x), np.float32(0)).astype(np.float32)
        exact = np.exp(np.float64(x)) * (1 << 12) + 1
        results = [compute.log_sum(both)[1] for compute in computes]
        np.testing.assert_allclose(results[0], exact, rtol=1e-6)
        assert all(result == results[0] for result in results)


@settings(max_examples=40, deadline=None)
@given(
    size=st.sampled_from(SIZES[:-1]),
    split=st.floats(0, 1),
    wanted=st.integers(1, 64),
    is_coarse=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_top(computes: list[Compute], size: int, split: float, wanted: int, is_coarse: bool, seed: int) -> None:
    x = values(size, seed, is_coarse)
    expected = np.argsort(-x, kind="stable")[:wanted]
    for compute in computes:
        indices, found = compute.top(x, wanted, int(split * size))
        np.testing.assert_array_equal(indices, expected, compute.name)
        np.testing.assert_array_equal(found, x[expected], compute.name)


@pytest.mark.parametrize("x", [np.arange(1000), -np.arange(1000), np.full(100, -np.inf)])
def test_top_of_sorted_and_of_equal_values(computes: list[Compute], x: np.ndarray) -> None:
    for compute in computes:
        np.testing.assert_array_equal(compute.top(x.astype(np.float32), 64)[0], np.argsort(-x, kind="stable")[:64])
