"""Numbers survive in whatever way a language writes them; everything else is found."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.number_comparison import Comparison, compare
from service.text.numbers import MASK, Languages, find_numbers, in_place_of, localized
from service.text.spans import masked
from service.translation.number_correction import substitutes
from tests.patience import patient

GERMAN = Languages("en", "de")

SURVIVING = [
    ("There are 2339 books.", "Es gibt 2339 Bücher."),
    ("2,339 books", "2.339 Bücher"),
    ("2,339 books", "2339 Bücher"),
    ("2339 books", "2 339 Bücher"),
    ("1,234,567.89 euros", "1.234.567,89 Euro"),
    ("10.50 euros", "10,50 Euro"),
    ("5.00 euros", "5 Euro"),
    ("He has 3 dogs and 2 cats.", "Er hat drei Hunde und zwei Katzen."),
    ("He came 1st.", "Er wurde Erster."),
    ("Set 3 of ten", "Satz 3 von 10"),
    ("at 3:30 pm", "um 15.30 Uhr"),
    ("at 3 pm", "um 15 Uhr"),
    ("at 12:05 a.m.", "um 0:05 Uhr"),
    ("at 2:30 p.m.", "um halb drei"),
    ("at 10:00", "um 10 Uhr"),
    ("at 05:30", "um 5.30 Uhr"),
    ("On Dec 24, 2017", "Am 24.12.2017"),
    ("On 12/24/2017", "Am 24. Dezember 2017"),
    ("the 19th century", "das XIX. Jahrhundert"),
    ("World War II", "der 2. Weltkrieg"),
    ("1914-18", "1914–18"),
    ("won 2:1", "gewann 2–1"),
    ("On 3 May 2017", "Am 3.5.2017"),
    ("On Dec 24", "Am 24.12."),
    ("1914/18", "1914–18"),
    ("½ of it", "1/2 davon"),
    ("twenty-five of 100", "25 von 100"),
    ("the 1990s", "die 1990er"),
    ("a 30-year-old", "ein 30-Jähriger"),
    ("٣٤ كتاب", "34 Bücher"),
    ("$1.5 million", "1,5 Millionen Dollar"),
    ("It is -5 °C.", "Es sind -5 °C."),
    ("It is -5 °C.", "Es sind minus 5 °C."),
    ("from 10-20", "von 10 - 20"),
    ("no number", "keine Zahl"),
    ("1 of 10", "von 10 einer"),
    ("14 from 50", "von 50 sind 14"),
    ("p < 0.001", "p < 0,001"),
]

CHANGED = [
    ("from 12 to 15", "von 15 bis 12", ["12", "15"], ["15", "12"], "von 15 bis 12"),
    ("1 of 10 passed", "10 von 1 bestanden", ["1", "10"], ["10", "1"], "10 von 1 bestanden"),
    ("1,234,567.89 euros", "1.234,567,89 Euro", ["1,234,567.89"], ["1.234,567,89"], "1.234.567,89 Euro"),
    ("2339 books", "239 Bücher", ["2339"], ["239"], "2339 Bücher"),
    ("in 2017", "im Jahr 20171", ["2017"], ["20171"], "im Jahr 2017"),
    ("399,397 people", "399.97 Menschen", ["399,397"], ["399", "97"], "399.397 Menschen"),
    ("4,000 people", "4 Menschen", ["4,000"], ["4"], "4.000 Menschen"),
    ("1.5 m", "15 m", ["1.5"], ["15"], "1.5 m"),
    ("Call 8206061051", "Rufen Sie 820606-1051 an", ["8206061051"], ["820606", "1051"], "Rufen Sie 8206061051 an"),
    ("10 to 20", "11 bis 21", ["10", "20"], ["11", "21"], "10 bis 20"),
    ("to 1, for an hour", "eine Stunde", ["1"], [], None),
    ("It is -5 °C.", "Es sind 5 °C.", ["-5"], ["5"], "Es sind -5 °C."),
    ("5 miles", "8 Kilometer", ["5"], ["8"], None),
    ("2017", "2017 2017", [], ["2017"], None),
    ("33 books", "Bücher", ["33"], [], None),
    ("3/4 of it", "3.4 davon", ["3/4"], ["3", "4"], "3/4 davon"),
    ("16:9", "16.9", ["16:9"], ["16", "9"], "16:9"),
    ("5 of 1", "1,5", ["5", "1"], ["1", "5"], "1,5"),
    ("7 of 8", "acht von acht", ["7"], [], None),
    ("p < 0.001", "p < 0001", ["0.001"], ["0001"], "p < 0.001"),
]


@pytest.mark.parametrize(("source", "translation"), SURVIVING)
def test_what_survives(source: str, translation: str) -> None:
    assert compare(source, translation, GERMAN) == Comparison()


@pytest.mark.parametrize(("source", "translation", "lost", "extra", "corrected"), CHANGED)
def test_what_is_changed(
    source: str, translation: str, lost: list[str], extra: list[str], corrected: str | None
) -> None:
    found = compare(source, translation, GERMAN)
    assert [number.text for number in found.lost] == lost
    assert [translation[start:end] for start, end in found.extra] == extra
    pairs = substitutes(found, translation)
    for number, (start, end) in reversed(pairs):
        wrong = translation[start:end]
        translation = f"{translation[:start]}{in_place_of(number, wrong, GERMAN)}{translation[end:]}"
    assert (translation if pairs else None) == corrected


def test_languages_with_other_scales_and_without_tables() -> None:
    assert compare("2.5 million", "25 लाख", Languages("en", "hi")) == Comparison()
    assert compare("2.5 million", "25 Millionen", GERMAN) != Comparison()
    assert compare("100 million people", "1亿人", Languages("en", "zh")) == Comparison()
    unknown = Languages("xx", "yy")
    assert compare("forty of 2017", "40 of 2017", unknown) == Comparison()
    assert compare("in 2017", "in 2016", unknown).lost


@pytest.mark.parametrize(
    ("text", "languages", "expected"),
    [
        ("1,234.5", GERMAN, "1.234,5"),
        ("1,234", Languages("en", "fr"), "1\u00a0234"),
        ("1.234", Languages("de", "en"), "1,234"),
        ("1 234", Languages("de", "en"), "1 234"),
        ("3.14", GERMAN, "3.14"),  # as well a version or a section
        ("1,234", Languages("en", "xx"), "1,234"),
        ("2017", GERMAN, "2017"),
    ],
)
def test_separators_of_the_target(text: str, languages: Languages, expected: str) -> None:
    assert localized(text, languages) == expected


def test_masked_parts_are_not_compared() -> None:
    text = "12 of 345"
    assert [number.text for number in find_numbers(masked(text, [(6, 9)], MASK))] == ["12"]
    assert len(masked(text, [(0, 2), (6, 9)], MASK)) == len(text)


@given(st.text(st.sampled_from("012 ,.:/’-a\u00a0٣\nh½²"), max_size=60))
def test_a_text_has_its_own_numbers(text: str) -> None:
    assert compare(text, text, GERMAN) == Comparison()
    assert all(text[number.start : number.end] == number.text for number in find_numbers(text))


@given(st.integers(10, 10**12), st.integers(10, 10**12))
def test_another_number_is_found(number: int, other: int) -> None:
    found = compare(f"About {number} books", f"Etwa {other} Bücher", GERMAN)
    assert (found == Comparison()) is (number == other)


@pytest.mark.parametrize("most", [100, 10**6])
def test_many_numbers_take_linear_time(most: int) -> None:
    chance = random.Random(1)
    source = " - ".join(str(chance.randrange(most)) for _ in range(2_000))
    translation = " a ".join(str(chance.randrange(most)) for _ in range(1_000))
    began = time.process_time()
    found = compare(source, translation, GERMAN)
    assert len(found.lost) > 900
    assert substitutes(found, translation) == []
    assert time.process_time() - began < patient(0.5)
