"""Random operations on a `KVCache`, of any kind and on any device, compared with the expected contents of its rows."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from numpy import typing as npt

from service.engine.runtime.kv_cache import CacheShape, KVCache
from tests.unit.engine.runtime.device_access import get, put

SHAPE = CacheShape(
    num_layers=2,
    num_heads=2,
    head_size=8,
    max_slots=6,
    kv_capacity=19,
    max_source_tokens=40,
    max_encode_tokens=100,
    dtype=np.dtype(np.float32),
)
PARTS = SHAPE.num_parts


def keys_values(number: int, width: int, shape: CacheShape = SHAPE) -> list[npt.NDArray[Any]]:
    """Return fake encoder outputs of a source, (H, width, D) per part.

    The numbers identify source, part, head and position, and are all exact in float16.
    """
    size = (shape.num_heads, width, shape.head_size)
    pattern = np.indices(size).sum(axis=0) % 8 + 8 * np.arange(width)[None, :, None]
    return [(pattern + 320 * (number % 5) + part).astype(shape.dtype) for part in range(shape.num_parts)]


def lists(number: int, shape: CacheShape) -> list[npt.NDArray[np.bool_]]:
    """Return the fake list of a source, (W,), that identifies it, if there are any."""
    return [number >> np.arange(shape.listed_width) & 1 > 0] if shape.listed_width else []


def encode(cache: KVCache, numbers: Sequence[int], width: int) -> None:
    """Copy encoder outputs to where the cache expects them."""
    width, shape = cache.encoder_width(width), cache.shape
    each = [[*keys_values(number, width, shape), *lists(number, shape)] for number in numbers]
    for part, buffer in enumerate(cache.encoder_outputs(len(numbers), width)):
        put(buffer, np.stack([parts[part] for parts in each]))


def join(cache: KVCache, row: int, number: int, length: int, width: int) -> None:
    """Add a source as the row `row`, encoded beside another one."""
    encode(cache, [0, number], width)
    assert cache.store_sources([[], [row]], [width, length], num_live=row) == [True, True]


def write_token(cache: KVCache, row: int, position: int, number: float) -> None:
    """Write one more token into all parts of a row, as a step does."""
    for buffer in cache.past(row + 1):
        contents = get(buffer)
        contents[row, :, position] = number
        put(buffer, contents)


def tokens(cache: KVCache, row: int, count: int) -> npt.NDArray[Any]:
    """Return the first `count` tokens of a row, as (parts, H, count, D)."""
    return np.stack([get(buffer)[row, :, :count] for buffer in cache.past(row + 1)])


def source(cache: KVCache, row: int) -> npt.NDArray[Any]:
    """Return the source of a row, as (parts, H, S, D)."""
    return np.stack([get(buffer)[row] for buffer in cache.cross(row + 1)])


def cache_test(new_cache: Callable[[], KVCache], num_examples: int) -> Any:
    """Return a test case of random operations on caches from `new_cache`, each of `SHAPE` except for dtype, states and
    lists.

    A state is that of the last token.
    """

    class CacheMachine(RuleBasedStateMachine):
        """Rows compared with their expected sources and tokens, through moves, copies and changes of layout."""

        def __init__(self) -> None:
            super().__init__()
            self.rows: list[tuple[int, int, list[int]]] = []  # source number, source length, tokens
            self.num_made = 0

        @initialize()
        def start(self) -> None:
            self.cache = new_cache()

        @precondition(lambda self: len(self.rows) < SHAPE.max_slots)
        @rule(length=st.integers(1, SHAPE.max_source_tokens), extra=st.integers(0, 5), beams=st.integers(1, 3))
        def join(self, length: int, extra: int, beams: int) -> None:
            self.num_made += 1
            width = min(length + extra, SHAPE.max_source_tokens)
            rows = list(range(len(self.rows), min(len(self.rows) + beams, SHAPE.max_slots)))
            encode(self.cache, [0, self.num_made], width)
            assert self.cache.store_sources([[], rows], [width, length], num_live=len(self.rows)) == [True, True]
            self.rows += [(self.num_made, length, []) for _ in rows]

        @precondition(lambda self: self.rows)
        @rule()
        def step(self) -> None:
            self.cache.prepare_step(max(length for _, length, _ in self.rows), len(self.rows))
            for part, buffer in enumerate(self.cache.past(len(self.rows))):
                contents = get(buffer)
                for row, (_, _, row_tokens) in enumerate(self.rows):
                    if len(row_tokens) < SHAPE.kv_capacity:
                        written = contents[row] if self.cache.shape.state_size else contents[row, :, len(row_tokens)]
                        written[...] = (self.num_made + row) % 500 + part
                put(buffer, contents)
            for row, (_, _, row_tokens) in enumerate(self.rows):
                if len(row_tokens) < SHAPE.kv_capacity:
                    row_tokens.append((self.num_made + row) % 500)
            self.num_made += 1

        @precondition(lambda self: self.rows)
        @rule(data=st.data(), count=st.integers(1, 3))
        def leave(self, data: st.DataObject, count: int) -> None:
            for _ in range(min(count, len(self.rows))):
                row = data.draw(st.integers(0, len(self.rows) - 1))
                last = len(self.rows) - 1
                if row != last:
                    self.cache.move(last, row, len(self.rows[last][2]))
                    self.rows[row] = self.rows[last]
                self.rows.pop()

        @precondition(lambda self: len(self.rows) > 1)
        @rule(data=st.data())
        def copy(self, data: st.DataObject) -> None:
            shuffled = data.draw(st.permutations(range(len(self.rows))))
            half = len(shuffled) // 2
            sources, targets = shuffled[:half], shuffled[half : 2 * half]
            self.cache.reorder(sources, targets, [len(self.rows[row][2]) for row in sources])
            for row, target in zip(sources, targets, strict=True):
                self.rows[target] = (*self.rows[target][:2], list(self.rows[row][2]))

        @precondition(lambda self: self.rows)
        @rule()
        def fail_last(self) -> None:
            """Fail the last row's sequence, with NaN in its memory."""
            row = len(self.rows) - 1
            self.cache.prepare_step(max(length for _, length, _ in self.rows), len(self.rows))
            for buffer in (*self.cache.past(row + 1), *self.cache.cross(row + 1)):
                contents = get(buffer)
                contents[row] = np.nan
                put(buffer, contents)
            self.cache.clear([row])
            self.rows.pop()

        @rule()
        def start_over(self) -> None:
            self.cache.clear_all()
            self.rows.clear()

        def teardown(self) -> None:
            self.check()

        @rule()
        def check(self) -> None:
            """Check the rows' contents. Not an invariant: preparing a step would perform deferred work."""
            if not self.rows:
                return
            self.cache.prepare_step(max(length for _, length, _ in self.rows), len(self.rows))
            past = [get(buffer) for buffer in self.cache.past(len(self.rows))]
            cross = [get(buffer) for buffer in self.cache.cross(len(self.rows))]
            for row, (number, length, row_tokens) in enumerate(self.rows):
                expected = keys_values(number, length, self.cache.shape)
                for part in range(PARTS):
                    np.testing.assert_array_equal(cross[part][row, :, :length], expected[part])
                np.testing.assert_array_equal([held[row] for held in cross[PARTS:]], lists(number, self.cache.shape))
                for part, own in enumerate(past):
                    if self.cache.shape.state_size:
                        assert (own[row] == row_tokens[-1] + part).all() if row_tokens else True, f"state of row {row}"
                        continue
                    held = own[row, :, : len(row_tokens)]
                    assert (held == np.array(row_tokens)[None, :, None] + part).all(), f"tokens of row {row}"
            assert all(np.isfinite(array).all() for array in (*past, *cross))

    test = CacheMachine.TestCase
    test.settings = settings(max_examples=num_examples, stateful_step_count=40, derandomize=True, deadline=None)
    return test
