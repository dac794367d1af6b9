import random

from hypothesis import given
from hypothesis import strategies as st

from export.training.placeholders import reserved_symbols, substitute

SYMBOLS = reserved_symbols(32)
WORDS = st.lists(
    st.sampled_from(["the", "In", "Tom", "Azure", "1999", "3.5", "config.json", "und", "Haus"]), max_size=12
)


def test_shared_items_are_replaced_by_the_same_symbol_on_both_sides() -> None:
    replaced = substitute("Tom paid 42 euros.", "Tom zahlte 42 Euro.", SYMBOLS, random.Random(0))
    assert replaced is not None
    source, target = replaced
    used = [symbol for symbol in SYMBOLS if symbol in source]
    assert used
    assert all(source.count(symbol) == target.count(symbol) == 1 for symbol in used)
    assert source.endswith("euros.")


def test_nothing_shared_gives_nothing() -> None:
    assert substitute("a small house", "ein kleines Haus", SYMBOLS, random.Random(0)) is None
    assert substitute("Tom saw Tom.", "Tom sah Tom.", SYMBOLS, random.Random(0)) is None, "it stands twice"


@given(WORDS, WORDS, st.integers(0, 1000))
def test_symbols_always_stand_once_on_each_side(source: list[str], target: list[str], seed: int) -> None:
    replaced = substitute(" ".join(source), " ".join(target), SYMBOLS, random.Random(seed))
    if replaced is None:
        return
    for symbol in SYMBOLS:
        assert replaced[0].count(symbol) == replaced[1].count(symbol) <= 1
    assert any(symbol in replaced[0] for symbol in SYMBOLS)
