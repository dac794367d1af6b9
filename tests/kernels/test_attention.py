"""Attention of queries to cached tokens against NumPy, with the same bits on every instruction set."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.kernels.compute import Compute, Indices
from tests.references.bfloat16 import NAN, Bits, from_bits, rounded

HEAD_SIZES = [1, 3, 8, 16, 24, 64, 80, 130]
NUM_TOKENS = st.one_of(st.sampled_from((1, 2, 15, 16, 17, 31, 32, 33, 48)), st.integers(1, 70))


class Tokens:
    """Keys and values (T, H, D) of random tokens, and caches that hold them."""

    def __init__(self, num_tokens: int, num_heads: int, head_size: int, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.keys = self.random.normal(size=(num_tokens, num_heads, head_size)).astype(np.float32)
        self.values = self.random.normal(size=self.keys.shape).astype(np.float32)
        self.query = self.random.normal(size=(num_heads, head_size)).astype(np.float32)

    def cached(self, compute: Compute, slots: Indices, num_rows: int) -> Bits:
        """Return a cache with each token in its slot and NaN everywhere else."""
        tokens, heads, head_size = self.keys.shape
        padded = -(-head_size // 16) * 16
        cache = np.full((num_rows, -(-tokens // 16), heads, 2, 16 * padded), NAN)
        for token, slot in enumerate(slots):
            compute.append(self.keys[token], self.values[token], token, cache[slot])
        return cache

    def attended(
        self, scale: float, bias: NDArray[np.float32] | float = 0.0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return softmax(scale q k + bias) v (H, D) in float64, and the softmax (H, T)."""
        scores = np.einsum("hd,thd->ht", self.query.astype(np.float64), rounded(self.keys)) * scale + bias
        weights = np.exp(scores - scores.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        return np.einsum("ht,thd->hd", weights, rounded(self.values).astype(np.float64)), weights


@given(
    head_size=st.sampled_from(HEAD_SIZES), num_tokens=NUM_TOKENS, num_rows=st.integers(1, 5),
    is_mixed=st.booleans(), is_biased=st.booleans(), seed=st.integers(0, 2**32),
)  # fmt: skip
@example(head_size=24, num_tokens=2500, num_rows=1, is_mixed=False, is_biased=False, seed=0)
@example(head_size=130, num_tokens=100, num_rows=3, is_mixed=True, is_biased=True, seed=1)
def test_attend(
    computes: list[Compute],
    head_size: int,
    num_tokens: int,
    num_rows: int,
    is_mixed: bool,
    is_biased: bool,
    seed: int,
) -> None:
    """Wherever the tokens are."""
    tokens = Tokens(num_tokens, 3, head_size, seed)
    scale = 1.5 / head_size**0.5
    slots = tokens.random.integers(0, num_rows, num_tokens).astype(np.int32)
    if not is_mixed:  # the usual case: a few long runs
        slots.sort()
    bias = (3 * tokens.random.normal(size=(3, num_tokens))).astype(np.float32) if is_biased else None
    results = []
    for compute in computes:
        together = tokens.cached(compute, np.zeros(num_tokens, np.int32), 1)
        results.append(compute.attend(tokens.query[None], scale, together, num_tokens, None, bias))
        spread = tokens.cached(compute, slots, num_rows)
        results.append(compute.attend(tokens.query[None], scale, spread, num_tokens, slots[None], bias))
    for own, expected in zip(results[0], tokens.attended(scale, 0.0 if bias is None else bias), strict=True):
        np.testing.assert_allclose(own[0], expected, rtol=1e-5, atol=3e-6)
    for heads, weights in results[1:]:
        np.testing.assert_array_equal(heads, results[0][0])
        np.testing.assert_array_equal(weights, results[0][1])


@given(
    head_size=st.sampled_from(HEAD_SIZES), num_tokens=NUM_TOKENS, num_queries=st.integers(2, 9),
    num_rows=st.integers(1, 5), is_biased=st.booleans(), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_queries_together(
    computes: list[Compute],
    head_size: int,
    num_tokens: int,
    num_queries: int,
    num_rows: int,
    is_biased: bool,
    seed: int,
) -> None:
    """Queries of the same tokens get what each one gets alone; those of a beam differ in where the last tokens are."""
    tokens = Tokens(num_tokens, 3, head_size, seed)
    queries = tokens.random.normal(size=(num_queries, 3, head_size)).astype(np.float32)
    bias = tokens.random.normal(size=(3, num_tokens + num_queries - 1)).astype(np.float32) if is_biased else None
    history = np.sort(tokens.random.integers(0, num_rows, num_tokens)).astype(np.int32)[None].repeat(num_queries, 0)
    differ = tokens.random.integers(0, num_tokens + 1)
    history[:, differ:] = tokens.random.integers(0, num_rows, (num_queries, num_tokens - differ))
    for compute in computes:
        cache = tokens.cached(compute, np.zeros(num_tokens, np.int32), num_rows)
        cache[1:] = cache[0]
        for where in (None, history):
            together = compute.attend(queries, 0.3, cache, num_tokens, where, bias)
            for number, query in enumerate(queries):
                first = num_queries - 1 - number
                own = None if bias is None else np.ascontiguousarray(bias[:, first : first + num_tokens])
                slots = None if where is None else where[number : number + 1]
                alone = compute.attend(query[None], 0.3, cache, num_tokens, slots, own)
                for got, expected in zip(together, alone, strict=True):
                    np.testing.assert_array_equal(got[number], expected[0])


def test_one_token_takes_all(computes: list[Compute]) -> None:
    """Scores far below the largest have no weight at all, and large ones do not overflow."""
    tokens = Tokens(40, 1, 16, seed=1)
    tokens.keys[:] = 0
    tokens.keys[23] = 1
    tokens.query[:] = 50
    for compute in computes:
        cache = tokens.cached(compute, np.zeros(40, np.int32), 1)
        heads, _ = compute.attend(tokens.query[None], 1.0, cache, 40, None)
        np.testing.assert_array_equal(heads[0], rounded(tokens.values[23]))


def test_append_fills_the_padding(computes: list[Compute]) -> None:
    for compute in computes:
        layer = np.full((2, 2, 2, 16 * 32), NAN)
        keys, values = np.arange(96, dtype=np.float32).reshape(2, 2, 24)
        compute.append(keys, values, 18, layer)
        stored = from_bits(layer)
        own_keys, own_values = stored[1, :, 0].reshape(2, 32, 16), stored[1, :, 1].reshape(2, 16, 32)
        np.testing.assert_array_equal(own_keys[:, :24, 2], keys)
        np.testing.assert_array_equal(own_values[:, 2, :24], values)
        assert np.all(own_keys[:, 24:, 2] == 0)
        assert np.all(own_values[:, 2, 24:] == 0)
        assert np.isnan(stored).sum() == layer.size - 2 * 2 * 32
