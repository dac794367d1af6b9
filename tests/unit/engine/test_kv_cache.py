import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from numpy import typing as npt

from service.engine.kv_cache import KVCache, source_buckets

LAYERS, HEADS, HEAD_SIZE, SLOTS, CAPACITY, MAX_SOURCE = 2, 2, 4, 6, 8, 40


def new_cache() -> KVCache:
    return KVCache(LAYERS, HEADS, HEAD_SIZE, SLOTS, CAPACITY, MAX_SOURCE)


def encoded(*numbers: int, width: int) -> list[npt.NDArray[np.float32]]:
    """Encoder outputs (B, H, width, D) in which every number tells its source, part, head and position apart."""
    shape = (HEADS, width, HEAD_SIZE)
    pattern = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return [
        np.stack([1000.0 * number + 200 * part + pattern for number in numbers]).astype(np.float32)
        for part in range(2 * LAYERS)
    ]


def test_buckets_grow_by_at_most_a_half_and_end_where_the_longest_source_fits() -> None:
    assert source_buckets(8) == [8]
    assert source_buckets(40) == [8, 16, 24, 32, 48]
    assert source_buckets(128) == [8, 16, 24, 32, 48, 64, 96, 128]
    assert source_buckets(129)[-1] == 192
    assert all(bucket % 8 == 0 for bucket in source_buckets(4096))


def test_rows_can_be_bound_as_they_lie() -> None:
    cache = new_cache()
    cache.reserve_source(20, 0)
    for part in range(2 * LAYERS):
        assert cache.self_arenas[part, :3].flags.c_contiguous
        assert cache.cross_views[part, :3].flags.c_contiguous
    assert cache.cross_views.base is not None, "a copy would not be what is bound"
    assert cache.cross_views.shape == (2 * LAYERS, SLOTS, HEADS, 24, HEAD_SIZE)


def test_the_bucket_grows_at_once_and_shrinks_after_a_while() -> None:
    cache = new_cache()
    cache.reserve_source(10, num_live=0)
    cache.write_cross([0], encoded(1, width=10), 0, 10)
    cache.reserve_source(30, num_live=1)
    assert cache.source_bucket == 32
    cache.write_cross([1], encoded(2, width=30), 0, 30)
    steps = 0
    while cache.source_bucket == 32:
        cache.fit_source(30 if steps == 5 else 10, num_live=2 if steps <= 5 else 1)
        steps += 1
        assert steps < 100
    assert cache.source_bucket == 16
    assert steps > 12, "a long source that comes and goes must not cost a copy each time"
    np.testing.assert_array_equal(cache.cross_views[0, 0, :, :10], encoded(1, width=10)[0][0])


def test_an_empty_cache_takes_the_smallest_bucket_at_once() -> None:
    cache = new_cache()
    cache.reserve_source(40, num_live=0)
    cache.reserve_source(3, num_live=0)
    assert cache.source_bucket == 8


def test_what_lies_beyond_a_source_is_finite_even_after_a_failure() -> None:
    cache = new_cache()
    cache.reserve_source(40, num_live=0)
    cache.write_cross([0, 1], [np.full((1, HEADS, 40, HEAD_SIZE), np.nan)] * 2 * LAYERS, 0, 40)
    cache.self_arenas[:, :2] = np.nan
    cache.clear([0, 1])
    assert np.isfinite(cache._cross_flat).all()
    assert np.isfinite(cache.self_arenas).all()


def test_a_write_zeroes_the_rest_of_its_row() -> None:
    cache = new_cache()
    cache.reserve_source(16, num_live=0)
    cache.cross_views[:] = np.nan
    cache.write_cross([2], encoded(1, width=12), 0, 5)
    assert (cache.cross_views[:, 2, :, 5:] == 0).all()


def test_growing_takes_nothing_over_from_what_lay_there() -> None:
    cache = new_cache()
    cache.reserve_source(8, num_live=0)
    cache.write_cross([0], encoded(1, width=8), 0, 8)
    cache._cross_flat[:, HEADS * 8 * HEAD_SIZE :] = np.nan  # all but row 0
    cache.reserve_source(40, num_live=1)
    assert np.isfinite(cache.cross_views[:, :1]).all()


def test_reorder_copies_live_tokens_only() -> None:
    cache = new_cache()
    cache.self_arenas[:, 0], cache.self_arenas[:, 1] = 1.0, 2.0
    cache.reorder([0], [1], [3])
    assert (cache.self_arenas[:, 1, :, :3] == 1).all()
    assert (cache.self_arenas[:, 1, :, 3:] == 2).all()


def test_a_longer_live_source_than_the_bucket_is_noticed() -> None:
    with pytest.raises(AssertionError, match="longer"):
        new_cache().fit_source(20, 1)


class CacheMachine(RuleBasedStateMachine):
    """Rows against the sources and tokens that they should hold, through moves, copies and changes of layout."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[int, int, list[int]]] = []  # source number, source length, tokens
        self.num_made = 0

    @initialize()
    def start(self) -> None:
        self.cache = new_cache()

    @precondition(lambda self: len(self.rows) < SLOTS)
    @rule(length=st.integers(1, MAX_SOURCE), extra=st.integers(0, 5))
    def join(self, length: int, extra: int) -> None:
        self.num_made += 1
        width = min(length + extra, MAX_SOURCE)
        self.cache.reserve_source(width, len(self.rows))
        self.cache.write_cross([len(self.rows)], encoded(0, self.num_made, width=width), 1, length)
        self.rows.append((self.num_made, length, []))

    @precondition(lambda self: self.rows)
    @rule()
    def step(self) -> None:
        self.cache.fit_source(max(length for _, length, _ in self.rows), len(self.rows))
        for row, (_, _, tokens) in enumerate(self.rows):
            if len(tokens) < CAPACITY:
                self.num_made += 1
                self.cache.self_arenas[:, row, :, len(tokens)] = self.num_made
                tokens.append(self.num_made)

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        row = data.draw(st.integers(0, len(self.rows) - 1))
        last = len(self.rows) - 1
        if row != last:
            self.cache.move(last, row, len(self.rows[last][2]))
            self.rows[row] = self.rows[last]
        self.rows.pop()

    @precondition(lambda self: len(self.rows) > 1)
    @rule(data=st.data())
    def copy(self, data: st.DataObject) -> None:
        source, target = data.draw(st.permutations(range(len(self.rows))))[:2]
        tokens = self.rows[source][2]
        self.cache.reorder([source], [target], [len(tokens)])
        self.rows[target] = (*self.rows[target][:2], list(tokens))

    @invariant()
    def rows_hold_what_they_should(self) -> None:
        for row, (number, length, tokens) in enumerate(self.rows):
            expected = encoded(number, width=length)
            for part in range(2 * LAYERS):
                live = self.cache.cross_views[part, row, :, :length]
                pattern = live - expected[part][0].flat[0]
                assert (np.diff(pattern, axis=1) == HEAD_SIZE).all(), "positions are out of order"
                assert live[0, 0, 0] == expected[part][0].flat[0], "another source's row"
                assert (self.cache.self_arenas[part, row, :, : len(tokens), 0] == np.array(tokens)).all()
        assert np.isfinite(self.cache.cross_views).all()


TestCacheMachine = CacheMachine.TestCase
TestCacheMachine.settings = settings(max_examples=25, stateful_step_count=40, derandomize=True, deadline=None)
