"""What training changes in its pairs: noise, items and placeholders."""

import random
import re
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.training.items import make_item, put_item
from export.training.noise import (
    add_leading_mark,
    add_symbol_pair,
    join_pairs,
    noisy_copy,
)
from export.training.placeholders import reserved_symbols, substitute
from export.training.recipe import NoiseRecipe

SYMBOLS = reserved_symbols(32)
KINDS = [item.name for item in fields(NoiseRecipe)]
WORD = st.text(st.characters(categories=["L", "N"], max_codepoint=0x2FF), min_size=1) | st.sampled_from(
    ["Straße", "3.50"]
)
WORDS = st.lists(WORD | st.sampled_from(SYMBOLS), min_size=1, max_size=8)
TEXTS = st.builds(lambda words, end: " ".join(words) + end, WORDS, st.sampled_from(["", ".", "!", "?", "..."]))


def another() -> tuple[str, str]:
    return "Come in.", "Komm herein."


def symbols_of(text: str) -> list[str]:
    return [character for character in text if character in SYMBOLS]


@pytest.mark.parametrize(
    ("kind", "allowed"),
    [
        ("no_final_punctuation", {("the Street is big", "Die Straße ist groß")}),
        ("lower_case", {("the street is big", "die straße ist groß")}),
        ("upper_case", {("THE STREET IS BIG", "DIE STRASSE IST GROSS")}),
        ("title_case", {("The Street Is Big", "Die Straße ist groß")}),
    ],
)
def test_case_and_punctuation(kind: str, allowed: set[tuple[str, str]]) -> None:
    source, target = "the Street is big.", "Die Straße ist groß."
    copies = {noisy_copy(kind, source, target, SYMBOLS, random.Random(seed), another) for seed in range(30)}
    if kind != "no_final_punctuation":
        allowed = allowed | {(f"{first}.", f"{second}.") for first, second in allowed}  # with and without it
    assert copies == allowed


def test_both_sides_get_the_same_mark() -> None:
    marks = set()
    for seed in range(200):
        marked = add_leading_mark("A title", "Ein Titel", SYMBOLS, random.Random(seed))
        assert marked is not None
        mark = marked[0].removesuffix(" A title")
        assert marked[1] == f"{mark} Ein Titel"
        marks.add(re.sub(r"\d+", "1", mark if mark not in SYMBOLS else "symbol"))
    assert marks == {"#", "##", "###", "-", ">", "1.", "symbol"}
    assert add_leading_mark("- a", "- b", SYMBOLS, random.Random(0)) is None


def test_symbols_stand_around_the_same_word_like_tags() -> None:
    paired = add_symbol_pair("My name is Anna.", "Ich heiße Anna.", SYMBOLS, random.Random(0))
    assert paired is not None
    opening, closing = symbols_of(paired[0])
    assert paired == (f"My name is {opening}Anna{closing}.", f"Ich heiße {opening}Anna{closing}.")
    whole = add_symbol_pair("a house", "ein Haus", SYMBOLS, random.Random(0))
    assert whole is not None
    assert whole[1] == f"{whole[1][0]}ein Haus{whole[1][-1]}"
    assert add_symbol_pair("a house", "ein Haus", SYMBOLS[:1], random.Random(0)) is None


def test_pairs_are_joined_behind_a_sentence() -> None:
    joined = {join_pairs("Hello.", "Hallo!", random.Random(seed), another) for seed in range(20)}
    assert joined == {
        ("Hello. Come in.", "Hallo! Komm herein."),
        ("Hello. Come in. Come in.", "Hallo! Komm herein. Komm herein."),
    }
    assert noisy_copy("joined", "A title", "Ein Titel.", SYMBOLS, random.Random(0), another) is None


@given(st.sampled_from(KINDS), TEXTS, TEXTS, st.integers(0, 1000))
def test_reserved_symbols_stay_as_they_are(kind: str, source: str, target: str, seed: int) -> None:
    copy = noisy_copy(kind, source, target, SYMBOLS, random.Random(seed), another)
    assert copy == noisy_copy(kind, source, target, SYMBOLS, random.Random(seed), another)
    if copy is None:
        return
    assert copy[0] != source
    for before, after in zip((source, target), copy, strict=True):
        old = symbols_of(before)
        added = [symbol for symbol in symbols_of(after) if symbol not in old]
        assert [symbol for symbol in symbols_of(after) if symbol in old] == old
        assert len(added) == len(set(added)) <= 2
    assert set(symbols_of(copy[0])) - set(symbols_of(source)) == set(symbols_of(copy[1])) - set(symbols_of(target))


ITEM = re.compile(r"\d|/|_|\.json|[a-z][A-Z]")


def test_items_are_of_many_kinds() -> None:
    items = [make_item(random.Random(seed)) for seed in range(400)]
    assert all((ITEM.search(item) and " " not in item.strip()) or re.fullmatch(r"[+\d -]+", item) for item in items)
    forms = {re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", re.sub(r"\d+", "1", item))) for item in items}
    assert {"1", "1-1-1", "1.1.1.1", "a1.1.1", "A-1-1", "a_a", "/a/a", "1:1"} <= forms


def test_an_item_takes_the_place_of_a_number_that_both_sides_share() -> None:
    for seed in range(50):
        source, target = put_item("Room 12 is free.", "Zimmer 12 ist frei.", random.Random(seed))
        item = source.removeprefix("Room ").removesuffix(" is free.")
        assert target == f"Zimmer {item} ist frei."
        assert item != "12"


def test_without_a_number_the_item_stands_beside_both_sides() -> None:
    forms = set()
    for seed in range(50):
        source, target = put_item("Open the file.", "Öffne die Datei.", random.Random(seed))
        item = make_item(random.Random(seed))
        assert source.replace("Open the file", "") == target.replace("Öffne die Datei", "")
        forms.add(source.replace(item, "1"))
    assert forms == {"1: Open the file.", "Open the file (1).", "Open the file: 1.", "Open the file 1."}


SHARED_WORDS = st.lists(
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


@given(SHARED_WORDS, SHARED_WORDS, st.integers(0, 1000))
def test_symbols_always_stand_once_on_each_side(source: list[str], target: list[str], seed: int) -> None:
    replaced = substitute(" ".join(source), " ".join(target), SYMBOLS, random.Random(seed))
    if replaced is None:
        return
    for symbol in SYMBOLS:
        assert replaced[0].count(symbol) == replaced[1].count(symbol) <= 1
    assert any(symbol in replaced[0] for symbol in SYMBOLS)
