"""What IndicTrans2 reads and writes is what IndicProcessor makes of the same texts.

`processor.jsonl` was written by IndicTransToolkit 1.1.1 with indic-nlp-library 0.92, sacremoses 0.2.0 and urduhack (as
indic-nlp-library-itt 0.1.1 has it): texts in all 26 languages, with the signs that each has rules for.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.text.indic.languages import BLOCKS, conversion, is_known
from service.text.indic.rewriting import Rule, letters, rewritten, spans_in, traced
from service.text.indic.writing import SYMBOLS, reading, settled, written

CASES: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "processor.jsonl").read_text("utf-8").splitlines()
]
READ = [(case["language"], case["text"], case["read"]) for case in CASES if "read" in case]
WRITTEN = [(case["language"], case["output"], case["written"]) for case in CASES if "written" in case]
LANGUAGES = sorted({case["language"] for case in CASES})
SIGNS = " .,:;!?()[]{}<>'\"`…%$/\\-#@&*_|।॥۔؟،0123456789०१\u200c\u200d"


def some_texts(count: int) -> Iterator[tuple[str, str]]:
    """Yield parts of the texts with signs put between their characters, and a language for each."""
    rng = random.Random(3)
    for number in range(count):
        code, text, _ = READ[number % len(READ)]
        characters = [f"{letter}{rng.choice(SIGNS)}" if rng.random() < 0.3 else letter for letter in text]
        yield code, "".join(characters)


def test_texts_are_read_and_outputs_written_as_by_the_processor() -> None:
    assert [len(LANGUAGES), len(READ) > 70, len(WRITTEN) > 150] == [26, True, True]
    assert [rewritten(text, reading(code)) for code, text, _ in READ] == [expected for *_, expected in READ]
    assert [written(output, code) for code, output, _ in WRITTEN] == [expected for *_, expected in WRITTEN]
    assert all(map(is_known, LANGUAGES))
    assert not is_known("bod_Tibt")


def test_numbers_keep_their_marks_and_visargas_are_not_lost() -> None:
    """The library's copy in indic-nlp-library-itt 0.1.1 reads "5:" as a backslash, 1 and a visarga."""
    assert rewritten("वह 5:30 बजे, दु:ख", reading("hin_Deva")) == "वह 5:30 बजे , दुःख"
    assert rewritten("\u0958लम", reading("hin_Deva")) == "\u0915\u093cलम"


def test_symbols_are_recognised_as_models_write_them() -> None:
    for output in ("< ID1 > है", "[ID 1] है", "<आईडी 1> है", "< id1 ] है", "[ आई . डी . 1 ] है"):
        assert written(output, "hin_Deva") == f"{SYMBOLS[0]} है"
    assert written("[ 1 ] < 2 >", "hin_Deva") == "[1] <2>"


def test_what_is_settled_stays() -> None:
    """A text's beginning, of any number of its characters, is the beginning of the whole text once it is settled."""
    for code, output, whole in WRITTEN:
        told = [written(settled(output[:end]), code) for end in range(len(output) + 1)]
        assert all(map(whole.startswith, told)), (code, output)
        assert len(told[-1]) > len(whole) / 3 or len(output.split()) < 5


def test_a_traced_text_says_where_each_character_comes_from() -> None:
    for code, text in some_texts(300):
        read, origins = traced(text, reading(code))
        assert read == rewritten(text, reading(code))
        assert len(origins) == len(read)
        assert origins == sorted(origins)
        assert all(0 <= start <= end <= len(text) for start, end in origins)
        same = [(letter, text[slice(*origin)]) for letter, origin in zip(read, origins, strict=True)]
        assert all(letter == old for letter, old in same if letter.isascii() and letter.isalpha())


def test_traced_rules_that_lengthen_shorten_and_move() -> None:
    rules = (Rule("…", "..."), Rule('",', ',"'), letters({"ab": "c"}), Rule("(d)", r" \1 "))
    read, origins = traced('ab"d",…', rules)
    assert read == 'c" d ,"...'
    assert origins == [(0, 2), (2, 3), (3, 3), (3, 4), (4, 4), (4, 5), (5, 6), (6, 7), (7, 7), (7, 7)]
    assert spans_in(origins, [(0, 2), (2, 4), (4, 7), (7, 10)], 7) == [(0, 3), (3, 4), (4, 6), (6, 7)]


def test_conversions_reverse_each_other_where_scripts_have_the_same_letters() -> None:
    for script in BLOCKS.keys() - {"Deva"}:
        text = "".join(chr(BLOCKS[script] + place) for place in range(0x70) if place not in (0x64, 0x65))
        there = rewritten(text, [conversion(script, "Deva")])
        assert all("\u0900" <= letter <= "\u097f" for letter in there)
        if script != "Taml":
            assert rewritten(there, [conversion("Deva", script)]) == text


@pytest.mark.timeout(10)
@pytest.mark.parametrize("code", ["eng_Latn", "hin_Deva", "urd_Arab"])
@pytest.mark.parametrize("part", [" ", "(", "1 , ", "a.", "...", "' ", "- ", "\u0905:", " )", " :", "<"])
def test_long_texts_take_time_in_proportion(code: str, part: str) -> None:
    """Patterns that try again from every place would take a minute."""
    text = part * (15_000 // len(part))
    rewritten(text, reading(code))
    settled(written(text, code))
