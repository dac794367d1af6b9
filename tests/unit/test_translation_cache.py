import sys
import tracemalloc
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from service.bundle.manifest import LanguagePair
from service.translation import DecodingOptions, FinishReason, Hypothesis, Translation
from service.translation_cache import CacheKey, TranslationCache

KEY = CacheKey("f", LanguagePair("en", "de"), DecodingOptions(1, 1.0, 1, 20), "a text")


def translation(text: str) -> Translation:
    return Translation(text, (Hypothesis(text, None, 3),), FinishReason.STOP, 4)


def test_what_was_put_is_found_under_the_very_same_key() -> None:
    cache = TranslationCache(10_000)
    cache.put(KEY, translation("ein Text"))
    assert cache.get(KEY) == translation("ein Text")
    others = [
        replace(KEY, fingerprint="g"),
        replace(KEY, pair=LanguagePair("en", "fr")),
        replace(KEY, options=replace(KEY.options, beam_size=2)),
        replace(KEY, text="a text "),
    ]
    assert [cache.get(other) for other in others] == [None] * 4


def test_the_least_recently_used_goes_first() -> None:
    cache = TranslationCache(2_400)
    keys = [replace(KEY, text=f"text {number}") for number in range(4)]
    for key in keys[:3]:
        cache.put(key, translation("x"))
    assert cache.get(keys[0]) is not None
    cache.put(keys[3], translation("x"))
    assert [cache.get(key) is not None for key in keys] == [True, False, True, True]


def test_nothing_is_kept_without_room() -> None:
    for max_bytes in (0, 500):
        cache = TranslationCache(max_bytes)
        cache.put(KEY, translation("x"))
        assert cache.get(KEY) is None
        assert cache.num_bytes == 0


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 30), st.text(max_size=2_000)), max_size=60), st.integers(0, 20_000))
def test_the_bound_holds_whatever_is_put(puts: list[tuple[int, str]], max_bytes: int) -> None:
    cache = TranslationCache(max_bytes)
    for number, text in puts:
        cache.put(replace(KEY, text=str(number)), translation(text))
        assert cache.num_bytes <= max_bytes
        kept = cache.get(replace(KEY, text=str(number)))
        assert kept == translation(text) or sys.getsizeof(text) > max_bytes // 4 or max_bytes < 2_000


def test_its_own_count_is_near_what_python_counts() -> None:
    """So that the memory an operator grants is the memory that is used, within a third."""
    cache = TranslationCache(100_000_000)
    tracemalloc.start()
    try:
        for number in range(2_000):
            key = CacheKey("f", KEY.pair, KEY.options, f"the text with the number {number}")
            cache.put(key, translation(f"der Text mit der Nummer {number}"))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.67 < cache.num_bytes / used < 1.5
