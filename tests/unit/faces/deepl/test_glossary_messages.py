"""DeepL's messages about glossaries."""

from datetime import UTC, datetime
from typing import Any

import pytest

from service.domain.errors import InvalidRequest, Path
from service.domain.translation import Term
from service.faces.deepl import glossary_messages as messages
from service.faces.http.bodies import checked
from service.faces.http.languages import ListedLanguage
from service.text.glossary import Glossary
from service.text.glossary_store import StoredGlossary

PAIRS = [("en", "de"), ("en", "pt-BR")]
PATH = Path("entries")


def asked(entries: str = "a\tb", entries_format: str = "tsv", **others: Any) -> messages.DictionaryParameters:
    fields = {"source_lang": "EN", "target_lang": "DE", "entries": entries, "entries_format": entries_format, **others}
    return checked(fields, messages.DictionaryParameters)


def terms(entries: str, entries_format: str = "tsv") -> list[tuple[str, str | None]]:
    return [(each.source, each.target) for each in messages.terms_of(asked(entries, entries_format), PATH)]


def test_entries_of_tsv() -> None:
    assert terms("a\tb\r\n\n  c d \t e \nü\tß\n") == [("a", "b"), ("c d", "e"), ("ü", "ß")]


def test_entries_of_csv() -> None:
    assert terms('a,b\r\n\n"c, d","e ""f"""\n', "csv") == [("a", "b"), ("c, d", 'e "f"')]
    assert terms("a,b,en,de\nc,d,de,en\ne,f, EN,De\n", "csv") == [("a", "b"), ("e", "f")]


@pytest.mark.parametrize(
    ("entries", "entries_format", "message"),
    [
        ("", "tsv", "has no entries"),
        ("a,b,de,en", "csv", "has no entries"),
        ("a\tb\nc", "tsv", "the entry with the index 1 in entries misses the tab separator"),
        ("a\tb\tc", "tsv", "more than one tab"),
        ("a\t ", "tsv", "has an empty target"),
        ("\tb", "tsv", "has an empty source"),
        ("a\tb\na\tc", "tsv", "has the source of the one with the index 0"),
        ("a\tb\na\tb", "tsv", "has the source of the one with the index 0"),
        ("#a\tb", "tsv", "begins with #"),
        ("a\u2028b\tc", "tsv", "control character"),
        ("a\x00\tc", "tsv", "control character"),
        ("a" * 201 + "\tc", "tsv", "201 characters; allowed are 200"),
        ('"a\nb",c', "csv", "line end in its source"),
        ("a,b,c", "csv", "has 3 columns"),
        ('"a,b', "csv", "is not CSV"),
    ],
)
def test_entries_that_are_refused(entries: str, entries_format: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        terms(entries, entries_format)


def test_terms_that_differ_in_case_only_match_in_their_case() -> None:
    found = messages.terms_of(asked("Key\tTaste\nkey\tSchlüssel\ntrain\tZug"), PATH)
    assert found == (Term("Key", "Taste", True), Term("key", "Schlüssel", True), Term("train", "Zug"))


def test_languages_are_those_of_a_served_pair() -> None:
    for target, code in (("DE", "de"), ("PT", "pt"), ("pt-br", "pt-BR")):
        assert messages.dictionary_of(asked(target_lang=target), PAIRS).target_language_code == code
    for source, target, message in (
        ("EN", "FR", "Unsupported glossary source and target language pair"),
        ("DE", "EN", "Unsupported glossary source and target language pair"),
        ("EN", "../x", "target_lang is '../x'"),
        ("", "DE", "source_lang is ''"),
        ("EN", "en", "target_lang is the source language too"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            messages.dictionary_of(asked(source_lang=source, target_lang=target), PAIRS)


def test_the_dictionaries_of_a_glossary_are_of_different_languages() -> None:
    found = messages.dictionaries_of([asked(), asked(target_lang="PT-BR")], PAIRS)
    assert [each.target_language_code for each in found] == ["de", "pt-BR"]
    with pytest.raises(InvalidRequest, match=r"dictionaries\[1\] has the languages of an earlier one"):
        messages.dictionaries_of([asked(), asked(source_lang="en")], PAIRS)
    with pytest.raises(InvalidRequest, match=r"dictionaries\[0\].entries"):
        messages.dictionaries_of([asked("x")], PAIRS)


def test_what_is_told_about_a_glossary() -> None:
    dictionary = Glossary("a", "en", "pt-BR", (Term("x", "y"), Term("Dragoman")))
    created = datetime(2026, 1, 2, 3, 4, 5, 6000, UTC)
    glossary = StoredGlossary("1", "a", "A", created, (dictionary,))
    about = {"source_lang": "en", "target_lang": "pt-br", "entry_count": 2}
    whole = {"glossary_id": "1", "name": "A", "creation_time": "2026-01-02T03:04:05.006000Z"}
    assert messages.glossary_document(glossary) == {**whole, "dictionaries": [about]}
    assert messages.single_glossary_document(glossary) == {**whole, **about, "ready": True}
    entries = "x\ty\nDragoman\tDragoman"
    assert messages.entries_document(dictionary) == {
        "dictionaries": [{"source_lang": "en", "target_lang": "pt-br", "entries": entries, "entries_format": "tsv"}]
    }


def test_pairs_of_the_served_languages() -> None:
    pairs = messages.pairs_of([ListedLanguage("en", "English", ["de", "zh-Hant"]), ListedLanguage("de", "German", [])])
    assert messages.pairs_document(pairs) == {
        "supported_languages": [
            {"source_lang": "en", "target_lang": "de"},
            {"source_lang": "en", "target_lang": "zh-hant"},
        ]
    }
