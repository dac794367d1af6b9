"""Products of integers are exact, and what is done with their results rounds once per operation."""

import itertools
from math import erf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.compute import ACTIVATIONS, Compute, DenseLayer, Quantized

ROWS, INPUTS, OUTPUTS = st.integers(1, 40), st.integers(1, 150), st.integers(1, 200)


def layer_and_rows(rows: int, inputs: int, outputs: int, seed: int) -> tuple[DenseLayer, Quantized]:
    random = np.random.default_rng(seed)
    layer = DenseLayer(
        random.integers(-127, 128, (outputs, inputs)).astype(np.int8),
        random.uniform(1e-4, 1e-2, outputs).astype(np.float32),
        random.normal(size=outputs).astype(np.float32),
        int(random.choice((0, 128))),
    )
    return layer, random_rows(random, rows, inputs)


def random_rows(random: np.random.Generator, rows: int, inputs: int) -> Quantized:
    """Return rows of any levels, whose scales are very different."""
    scales = np.exp(random.normal(0, 4, rows)).astype(np.float32)
    scales[random.random(rows) < 0.2] = 0
    return Quantized(random.integers(0, 256, (rows, inputs)).astype(np.uint8), scales)


def with_ones(levels: np.ndarray) -> Quantized:
    """Return rows of scale 1."""
    return Quantized(levels.astype(np.uint8), np.ones(len(levels), np.float32))


@given(rows=ROWS, inputs=INPUTS, outputs=OUTPUTS, seed=st.integers(0, 2**32), activation=st.sampled_from(ACTIVATIONS))
def test_dense(computes: list[Compute], rows: int, inputs: int, outputs: int, seed: int, activation: str) -> None:
    layer, x = layer_and_rows(rows, inputs, outputs, seed)
    random = np.random.default_rng(seed)
    residual, values = random.normal(size=(rows, outputs)).astype(np.float32), layer.values(x)
    ids = random.integers(0, outputs, 20).astype(np.int32)
    activated = [compute.dense(layer, x, activation=activation) for compute in computes]
    if activation in ("relu", "identity"):
        np.testing.assert_array_equal(activated[0], np.maximum(values, 0) if activation == "relu" else values)
    for compute, own in zip(computes, activated, strict=True):
        np.testing.assert_array_equal(own, activated[0])
        np.testing.assert_array_equal(compute.dense(layer, x), values, compute.name)
        np.testing.assert_array_equal(compute.dense(layer, x, residual), residual + values, compute.name)
        multiplied = compute.dense(layer, x, residual, into="multiply")
        np.testing.assert_array_equal(multiplied, residual * values, compute.name)
        np.testing.assert_array_equal(compute.dense_columns(layer, x.rows(0, 1), ids), values[0, ids], compute.name)


@settings(max_examples=20, deadline=None)
@given(rows=ROWS, inputs=INPUTS, outputs=OUTPUTS, seed=st.integers(0, 2**32), activation=st.sampled_from(ACTIVATIONS))
def test_rows_do_not_depend_on_each_other(
    computes: list[Compute], rows: int, inputs: int, outputs: int, seed: int, activation: str
) -> None:
    layer, x = layer_and_rows(rows, inputs, outputs, seed)
    for compute in computes:
        together = (
            compute.dense(layer, x),
            compute.dense(layer, x, activation=activation),
            compute.dense_arg_max(layer, x)[1],
        )
        for row in range(rows):
            one = x.rows(row, row + 1)
            alone = (
                compute.dense(layer, one),
                compute.dense(layer, one, activation=activation),
                compute.dense_arg_max(layer, one)[1],
            )
            for own, other in zip(alone, together, strict=True):
                np.testing.assert_array_equal(own[0], other[row], compute.name)


@pytest.mark.parametrize("zero_point", [0, 128])
@pytest.mark.parametrize("weight", [-127, 127])
def test_the_largest_products_do_not_saturate(computes: list[Compute], weight: int, zero_point: int) -> None:
    ones = np.ones(64, np.float32)
    layer = DenseLayer(np.full((64, 512), weight, np.int8), ones, 0 * ones, zero_point)
    for level in (0, 1, 127, 128, 254, 255):
        x = with_ones(np.full((7, 512), level))
        for compute in computes:
            assert np.all(compute.dense(layer, x) == (level - zero_point) * weight * 512), compute.name


@pytest.mark.parametrize(("zero_point", "level"), [(128, 192), (128, 64), (128, 255), (0, 128), (0, 255)])
def test_four_products_at_the_limit_of_16_bits(computes: list[Compute], zero_point: int, level: int) -> None:
    """AVX2 adds products of two groups of four inputs where they fit: inputs 0, 1, 4 and 5 make one sum of 16 bits."""
    limits = ((64, 64, 64, 63), (64, 64, 64, 64), (127, 127, 1, 0), (127, 127, 127, 127))
    for weights, sign in itertools.product(limits, (-1, 1)):
        every = np.zeros((64, 16), np.int8)
        every[7, [0, 1, 4, 5]] = [sign * weight for weight in weights]
        layer = DenseLayer(every, np.ones(64, np.float32), np.zeros(64, np.float32), zero_point)
        x = with_ones(np.full((5, 16), level))
        for compute in computes:
            np.testing.assert_array_equal(compute.dense(layer, x), layer.values(x), compute.name)


@pytest.mark.parametrize(
    ("rows", "inputs", "outputs"), [(70, 1030, 70), (150, 64, 65), (9, 2052, 130), (3, 4099, 64), (2, 65_000, 64)]
)
def test_wide_layers_and_many_rows(computes: list[Compute], rows: int, inputs: int, outputs: int) -> None:
    """With weights and inputs as trained models have them, most of which are small."""
    random = np.random.default_rng(rows)
    layer, _ = layer_and_rows(1, 1, outputs, rows)
    layer.weights = np.clip(np.rint(random.normal(0, 42, (outputs, inputs))), -127, 127).astype(np.int8)
    for spread in (10, 28, 100):
        levels = np.clip(np.rint(random.normal(layer.zero_point, spread, (rows, inputs))), 0, 255)
        x = Quantized(levels.astype(np.uint8), random_rows(random, rows, 1).scales)
        for compute in computes:
            np.testing.assert_array_equal(compute.dense(layer, x), layer.values(x), compute.name)


@given(rows=ROWS, inputs=INPUTS, outputs=OUTPUTS, seed=st.integers(0, 2**32), is_coarse=st.booleans())
def test_dense_arg_max(
    computes: list[Compute], rows: int, inputs: int, outputs: int, seed: int, is_coarse: bool
) -> None:
    layer, x = layer_and_rows(rows, inputs, outputs, seed)
    random = np.random.default_rng(seed)
    if is_coarse:  # many ties
        layer.scales[:], layer.weights[:], layer.biases[:] = 1, random.integers(0, 2, layer.weights.shape), -1e5
        x = with_ones(x.levels % 2)
    layer.biases[random.random(outputs) < 0.2] = -np.inf
    expected = layer.values(x)
    for compute in computes:
        best, value = compute.dense_arg_max(layer, x)
        np.testing.assert_array_equal(best, expected.argmax(1), compute.name)
        np.testing.assert_array_equal(value, expected.max(1), compute.name)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "silu"])
def test_activations(computes: list[Compute], activation: str) -> None:
    """Compare with float64, through a layer that has all values as its biases."""
    x = np.linspace(-12, 12, 4801).astype(np.float32)
    values = x.astype(np.float64)
    if activation == "gelu":
        expected = 0.5 * values * (1 + np.vectorize(erf)(values / 2**0.5))
    elif activation == "gelu_tanh":
        expected = 0.5 * values * (1 + np.tanh((2 / np.pi) ** 0.5 * (values + 0.044715 * values**3)))
    else:
        expected = values / (1 + np.exp(-values))
    layer = DenseLayer(np.zeros((len(x), 1), np.int8), np.zeros_like(x), x, 0)
    for compute in computes:
        values = compute.dense(layer, with_ones(np.zeros((1, 1))), activation=activation)[0]
        np.testing.assert_allclose(values, expected, rtol=2e-6, atol=2e-6, err_msg=compute.name)


def test_a_row_that_is_not_finite_spoils_no_other(computes: list[Compute]) -> None:
    """Its own best column is any that exists; what is forbidden is not chosen."""
    layer, x = layer_and_rows(9, 50, 70, 3)
    layer.biases[:65] = -np.inf
    x.scales[4] = np.inf
    expected = layer.values(x.rows(0, 4))
    for compute in computes:
        best, value = compute.dense_arg_max(layer, x)
        np.testing.assert_array_equal(best[:4], expected.argmax(1), compute.name)
        np.testing.assert_array_equal(value[:4], expected.max(1), compute.name)
        assert best[4] == 0 or 65 <= best[4] < 70
