from dataclasses import replace

import numpy as np

from service.engine.runtime.device_cache import DeviceCache
from service.engine.runtime.kv_cache import CacheShape
from service.engine.runtime.session import SessionConfig
from tests.unit.engine.runtime.cache_machine import SHAPE, cache_test, encode, keys_values, source
from tests.unit.engine.runtime.device_access import get, put

CUDA = SessionConfig("cuda")
HALF_SHAPE = replace(SHAPE, dtype=np.dtype(np.float16))


def test_sources_that_encoded_to_no_numbers_are_told_apart() -> None:
    cache = DeviceCache(HALF_SHAPE, CUDA)
    for bad in (np.nan, np.inf, -np.inf):
        for part, buffer in enumerate(cache.encoder_outputs(3, 16)):
            contents = np.full(buffer.shape, 6e4)
            if part == HALF_SHAPE.num_parts - 1:
                contents[1, -1, 11, -1] = bad
            put(buffer, contents)
        assert cache.store_sources([[0], [1], [2]], [12, 12, 3], num_live=0) == [True, False, True]


def test_a_base_models_rows_can_all_be_reordered_at_once() -> None:
    shape = CacheShape(6, 8, 64, 64, 160, 128, 2048, np.dtype(np.float16))
    cache = DeviceCache(shape, CUDA)
    encode(cache, range(64), 32)
    assert all(cache.store_sources([[row] for row in range(64)], [32] * 64, num_live=0))
    for buffer in cache.past(64):
        put(buffer, np.arange(64)[:, None, None, None])
    cache.reorder(range(32), range(32, 64), [100] * 32)
    for buffer in cache.past(64):
        held = get(buffer)[:, :, :100]
        assert (held == np.tile(np.arange(32), 2)[:, None, None, None]).all()
    np.testing.assert_array_equal(source(cache, 63)[:, :, :32], keys_values(63, 32, shape))


TestDeviceCache = cache_test(lambda: DeviceCache(HALF_SHAPE, CUDA), num_examples=10)
TestLists = cache_test(lambda: DeviceCache(replace(HALF_SHAPE, listed_width=16), CUDA), num_examples=5)
