"""Amounts are found, and written as in the target's language."""

import time
from itertools import pairwise

import pytest

from service.text.amounts import find_amounts
from service.text.numbers import Languages
from tests.patience import patient

GERMAN = Languages("en", "de")

AMOUNTS = [
    ("It weighs 5 kg, not 5g or 2.5 lb.", "5 kg|5g|2,5 lb"),
    ("Add 1,500 ml at -10 °C or 180°C for 20 min.", "1.500 ml|-10 °C|180°C|20 min"),
    ("100 km/h, 50 mg/dl, 6 l/100 km, 75 m², 25 Mbit/s", "100 km/h|50 mg/dl|6 l/100 km|75 m²|25 Mbit/s"),
    ("2-8 °C, 120 x 80 cm, a 5-kg bag, 1/2 kg, 3e-5 mol", "2-8 °C|120 x 80 cm|5-kg|1/2 kg|3e-5 mol"),
    ("USD 20, 1,250.00 EUR, $50,000 USD and 3 million CHF", "USD 20|1.250,00 EUR|$50.000 USD|CHF"),
    ("$1.5bn, €40k, £2m, $80K-$100K", "$1,5bn|€40k|£2m|$80K|$100K"),
    ("from 9 am to 5 p.m., at 12:05 AM or 12 pm.", "9:00|17:00|0:05|12:00"),
    ("9-5 pm, 6.30-10am, 11am–1pm, 13 pm, 9:75 am", "9:00–17:00|6:30–10:00|11:00–13:00|13 pm|9:75 am"),
    ("At 10:15 p.m. we eat, till 10:15 p.m.", "22:15|22:15"),
    ("10 000 km and 0.5\u00a0l", "10 000 km|0,5\u00a0l"),
]

NONE = [
    "At 9 I am here, am I? 5 am I, 3 in the morning, 2017 in May",
    "the 1990s, 747s, v1.2 GB2, 10.0.0.1:80, A4, 4x4, 5'3",
    "$5, €9, 20 dollars, 12 %, 2 bar stools, 3 Pts, ISO 9001",
]


@pytest.mark.parametrize(("text", "expected"), AMOUNTS)
def test_amounts(text: str, expected: str) -> None:
    found = find_amounts(text, GERMAN)
    assert "|".join(target for _, _, target in found) == expected
    assert all(end <= start for (_, end, _), (start, _, _) in pairwise(found))


@pytest.mark.parametrize("text", NONE)
def test_what_is_none(text: str) -> None:
    assert find_amounts(text, GERMAN) == []


@pytest.mark.parametrize(
    ("text", "languages", "expected"),
    [
        ("Kapitel 9 am Ende, 2.5 kg", Languages("de", "en"), ["2.5 kg"]),
        ("at 3:30 pm, 2.5 kg", Languages("en", "hi"), ["2.5 kg"]),
        ("En 2010 ha ganado 1.500,5 kg", Languages("es", "en"), ["1,500.5 kg"]),
        ("2,5 kg", Languages("xx", "de"), ["2,5 kg"]),
    ],
)
def test_languages(text: str, languages: Languages, expected: list[str]) -> None:
    assert [target for _, _, target in find_amounts(text, languages)] == expected


@pytest.mark.parametrize(
    "part", ["1", "1 ", "1,", "1 000 ", "1-", "1 x ", "-", "USD ", "$1", "1:30 ", "1 am-", "1 k", "1/1"]
)
def test_hostile_texts_take_linear_time(part: str) -> None:
    text = (part * 20_000)[:20_000]
    began = time.process_time()
    find_amounts(text, GERMAN)
    assert time.process_time() - began < patient(1.0)
