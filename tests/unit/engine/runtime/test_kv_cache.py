"""Both caches, on the CPU: the host's arrays, and a device's memory in blocks, with the CPU as the device."""

from dataclasses import replace

import numpy as np
import pytest

from service.engine.runtime.device_cache import DeviceCache
from service.engine.runtime.host_cache import HostCache
from service.engine.runtime.kv_cache import CacheShape, KVCache, SourceBucket, source_buckets
from service.engine.runtime.session import Binding, GraphSession, SessionConfig
from tests.unit.engine.runtime.cache_machine import (
    PARTS,
    SHAPE,
    cache_test,
    encode,
    join,
    keys_values,
    source,
    tokens,
    write_token,
)
from tests.unit.engine.runtime.device_access import get, put

CPU = SessionConfig("cpu", intra_op_threads=1)
HALF_SHAPE = replace(SHAPE, dtype=np.dtype(np.float16))
RECURRENT = replace(SHAPE, state_size=24)
LISTED = replace(SHAPE, listed_width=16)


def device_cache(shape: CacheShape = SHAPE) -> DeviceCache:
    return DeviceCache(shape, CPU)


@pytest.fixture(params=["host", "device"])
def cache(request: pytest.FixtureRequest) -> KVCache:
    return HostCache(SHAPE) if request.param == "host" else device_cache()


def test_buckets_grow_by_at_most_a_half_and_end_where_the_longest_source_fits() -> None:
    assert source_buckets(8) == [8]
    assert source_buckets(40) == [8, 16, 24, 32, 48]
    assert source_buckets(128) == [8, 16, 24, 32, 48, 64, 96, 128]
    assert source_buckets(129)[-1] == 192
    assert all(bucket % 8 == 0 for bucket in source_buckets(4096))


def test_a_list_takes_a_byte_for_each_token() -> None:
    assert LISTED.bytes_per_slot == SHAPE.bytes_per_slot + 16


def test_the_bucket_grows_at_once_and_shrinks_after_a_while() -> None:
    bucket = SourceBucket(40)
    bucket.length = bucket.after_join(10, num_live=0)
    assert bucket.length == 16
    bucket.length = bucket.after_join(30, num_live=1)
    assert bucket.length == 32
    steps = 0
    while bucket.length == 32:
        bucket.length = bucket.for_step(30 if steps == 5 else 10)
        steps += 1
        assert steps < 100
    assert bucket.length == 16
    assert steps > 20, "a long source that comes and goes must not cost a copy each time"
    assert bucket.after_join(3, num_live=1) == 16
    assert bucket.after_join(3, num_live=0) == 8, "with nothing to copy the smallest fits at once"


def test_a_longer_live_source_than_the_bucket_is_noticed(cache: KVCache) -> None:
    with pytest.raises(AssertionError, match="longer"):
        cache.prepare_step(20, 1)


def test_sources_survive_growing_and_shrinking(cache: KVCache) -> None:
    join(cache, 0, number=1, length=10, width=10)
    join(cache, 1, number=2, length=30, width=30)
    assert cache.source_bucket == 32
    np.testing.assert_array_equal(source(cache, 0)[:, :, :10], keys_values(1, 10))
    np.testing.assert_array_equal(source(cache, 1)[:, :, :30], keys_values(2, 30))
    for _ in range(40):
        cache.prepare_step(10, num_live=1)
    assert cache.source_bucket == 16
    np.testing.assert_array_equal(source(cache, 0)[:, :, :10], keys_values(1, 10))


def test_sources_that_encoded_to_no_numbers_are_told_apart(cache: KVCache) -> None:
    for bad in (np.nan, np.inf, -np.inf):
        width = cache.encoder_width(12)
        buffers = cache.encoder_outputs(3, width)
        for part, buffer in enumerate(buffers):
            contents = np.full(buffer.shape, 6e4)  # large, and their sum is larger
            if part == PARTS - 1:
                contents[1, -1, 11, -1] = bad
            put(buffer, contents)
        assert cache.store_sources([[0], [1], [2]], [12, 12, 3], num_live=0) == [True, False, True]


def test_a_sum_that_overflows_is_no_failure() -> None:
    half, single = device_cache(HALF_SHAPE), HostCache(SHAPE)
    for cache, large in ((half, 6e4), (single, 3e38)):
        for buffer in cache.encoder_outputs(2, 16):
            put(buffer, large)
        assert cache.store_sources([[0], [1]], [16, 16], num_live=0) == [True, True]


def test_what_lies_beyond_a_source_is_finite_even_after_a_failure(cache: KVCache) -> None:
    width = cache.encoder_width(40)
    for buffer in cache.encoder_outputs(2, width):
        put(buffer, np.nan)
    assert cache.store_sources([[0], [1]], [40, 40], num_live=0) == [False, False]
    for buffer in cache.past(2):
        put(buffer, np.nan)
    cache.clear([0, 1])
    cache.prepare_step(40, 0)
    assert all((get(buffer) == 0).all() for buffer in (*cache.past(6), *cache.cross(6)))


def test_a_write_and_a_longer_layout_take_nothing_over_from_what_lay_there(cache: KVCache) -> None:
    join(cache, 0, number=1, length=40, width=40)
    for buffer in cache.cross(SHAPE.max_slots):
        put(buffer, np.nan)
    cache.prepare_step(40, num_live=0)
    join(cache, 0, number=1, length=5, width=8)
    join(cache, 1, number=2, length=40, width=40)
    held = source(cache, 0)
    np.testing.assert_array_equal(held[:, :, :5], keys_values(1, 5))
    assert (held[:, :, 8:] == 0).all()
    assert np.isfinite(held).all()
    for buffer in cache.cross(SHAPE.max_slots):
        contents = get(buffer)
        contents[2:] = np.nan
        put(buffer, contents)
    join(cache, 2, number=3, length=5, width=8)
    assert cache.source_bucket == 48
    assert (source(cache, 2)[:, :, 8:] == 0).all()


def test_a_row_that_was_moved_a_moment_ago_can_be_cleared_or_copied_from(cache: KVCache) -> None:
    for row in range(4):
        join(cache, row, number=row + 1, length=8, width=8)
        write_token(cache, row, 0, 10.0 * (row + 1))
    cache.move(3, 0, 1)
    cache.reorder([0], [1], [1])
    assert (tokens(cache, 1, 1) == 40).all()
    cache.move(2, 1, 1)
    cache.clear([1])
    cache.prepare_step(8, 2)
    assert (tokens(cache, 0, 1) == 40).all()
    assert (tokens(cache, 1, 1) == 0).all()
    cache.move(1, 0, 1)
    cache.clear_all()
    cache.prepare_step(8, 1)
    join(cache, 1, number=5, length=3, width=3)
    cache.prepare_step(8, 2)
    assert (source(cache, 0) == 0).all()


def test_the_devices_memory_holds_the_widest_encoder_runs() -> None:
    shape = replace(SHAPE, max_encode_tokens=24)
    for num_sources, longest in ((6, 4), (3, 8), (1, 40), (2, 12)):
        cache = DeviceCache(shape, CPU)
        encode(cache, range(num_sources), longest)
        rows = [[row] for row in range(num_sources)]
        assert all(cache.store_sources(rows, [longest] * num_sources, num_live=0))
        for row in range(num_sources):
            np.testing.assert_array_equal(source(cache, row)[:, :, :longest], keys_values(row, longest))


def test_a_change_on_the_device_is_one_run_however_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = device_cache()
    encode(cache, range(6), 8)
    cache.store_sources([[row] for row in range(6)], [8] * 6, num_live=0)
    runs: list[Binding] = []
    run = GraphSession.run

    def counted(session: GraphSession, binding: Binding) -> None:
        runs.append(binding)
        run(session, binding)

    monkeypatch.setattr(GraphSession, "run", counted)
    cache.reorder([0, 2, 4], [1, 3, 5], [4, 9, 2])
    assert len(runs) == 1
    for source_row, target_row in ((5, 0), (4, 1), (3, 2)):
        cache.move(source_row, target_row, 4)
    cache.prepare_step(8, 3)
    assert len(runs) == 3, "one for each of the two caches"
    cache.prepare_step(8, 3)
    assert len(runs) == 3


TestHostCache = cache_test(lambda: HostCache(SHAPE), num_examples=15)
TestDeviceCache = cache_test(device_cache, num_examples=15)
TestDeviceCacheInHalfPrecision = cache_test(lambda: device_cache(HALF_SHAPE), num_examples=5)
TestStatesOnTheHost = cache_test(lambda: HostCache(RECURRENT), num_examples=5)
TestStatesOnADevice = cache_test(lambda: device_cache(RECURRENT), num_examples=8)
TestListsOnTheHost = cache_test(lambda: HostCache(LISTED), num_examples=8)
TestListsOnADevice = cache_test(lambda: device_cache(LISTED), num_examples=8)
