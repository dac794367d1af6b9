import tracemalloc
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from service.bundle.manifest_parts import LanguagePair
from service.domain.options import DecodingOptions
from service.domain.translation import FinishReason
from service.engine.sequence import DecodedHypothesis
from service.translation.cache import CacheKey, Decoded, TranslationCache

KEY = CacheKey("f", LanguagePair("en", "de"), DecodingOptions(1, 1.0, 1, 20), "a text")


def decoded(*token_ids: int) -> Decoded:
    return (DecodedHypothesis(token_ids, -0.5, FinishReason.STOP),)


def test_what_was_put_is_found_under_the_very_same_key() -> None:
    cache = TranslationCache(10_000)
    cache.put(KEY, decoded(5, 6, 7))
    assert cache.get(KEY) == decoded(5, 6, 7)
    others = [
        replace(KEY, fingerprint="g"),
        replace(KEY, pair=LanguagePair("en", "fr")),
        replace(KEY, options=replace(KEY.options, beam_size=2)),
        replace(KEY, text="a text "),
        replace(KEY, output_prefix_ids=(5,)),
    ]
    assert [cache.get(other) for other in others] == [None] * 5


def test_the_least_recently_used_goes_first() -> None:
    cache = TranslationCache(2_800)
    keys = [replace(KEY, text=f"text {number}") for number in range(4)]
    for key in keys[:3]:
        cache.put(key, decoded(5))
    assert cache.get(keys[0]) is not None
    cache.put(keys[3], decoded(5))
    assert [cache.get(key) is not None for key in keys] == [True, False, True, True]


def test_nothing_is_kept_without_room() -> None:
    for max_bytes in (0, 500):
        cache = TranslationCache(max_bytes)
        cache.put(KEY, decoded(5))
        assert cache.get(KEY) is None
        assert cache.num_bytes == 0


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 200)), max_size=60), st.integers(0, 20_000))
def test_the_bound_holds_whatever_is_put(puts: list[tuple[int, int]], max_bytes: int) -> None:
    cache = TranslationCache(max_bytes)
    for number, num_tokens in puts:
        cache.put(replace(KEY, text=str(number)), decoded(*range(num_tokens)))
        assert cache.num_bytes <= max_bytes
        kept = cache.get(replace(KEY, text=str(number)))
        assert kept == decoded(*range(num_tokens)) or num_tokens * 36 > max_bytes // 4 or max_bytes < 2_000


def test_its_own_count_is_near_what_python_counts() -> None:
    """The memory granted by an operator is the memory used, within a third."""
    cache = TranslationCache(100_000_000)
    tracemalloc.start()
    try:
        for number in range(2_000):
            key = CacheKey("f", KEY.pair, KEY.options, f"the text with the number {number}")
            cache.put(key, decoded(*range(1_000 * number, 1_000 * number + 12)))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.67 < cache.num_bytes / used < 1.5
