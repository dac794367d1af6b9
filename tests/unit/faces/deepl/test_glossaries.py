"""DeepL's glossaries: what is told about the operator's files."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from service.domain.errors import InvalidRequest, NotFound
from service.faces.deepl import glossaries as deepl
from service.faces.http.bodies import checked
from service.text.glossary import Glossaries
from tests.unit.text.test_glossary import write


@pytest.fixture
def folder(tmp_path: Path) -> Glossaries:
    write(tmp_path, "x\ty\nDragoman\n", "a.en-pt_BR.tsv", second=1)
    write(tmp_path, "dog\tHund\n", "b.en-de.tsv", second=3)
    write(tmp_path, "Hund\tdog\n", "b.de-en.tsv", second=2)
    return Glossaries(tmp_path)


def test_what_is_told_about_a_glossary(folder: Glossaries) -> None:
    single, several = deepl.all_of(folder.all())
    about = {"source_lang": "en", "target_lang": "pt-br", "entry_count": 2}
    whole = {"glossary_id": single.id, "name": "a", "creation_time": "1970-01-01T00:00:01.000000Z"}
    assert deepl.glossary_document(single) == {**whole, "dictionaries": [about]}
    assert deepl.single_glossary_document(single) == {**whole, **about, "ready": True}
    entries = "x\ty\nDragoman\tDragoman"
    assert deepl.entries_document(single.dictionaries[0]) == {
        "dictionaries": [{"source_lang": "en", "target_lang": "pt-br", "entries": entries, "entries_format": "tsv"}]
    }
    told = deepl.glossary_document(several)
    assert told["creation_time"] == datetime.fromtimestamp(2, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert [(each["source_lang"], each["entry_count"]) for each in told["dictionaries"]] == [("de", 1), ("en", 1)]


def test_an_id_follows_from_the_name(folder: Glossaries) -> None:
    for each in deepl.all_of(folder.all()):
        assert deepl.found_in(folder.all(), each.id.upper()) == each
    with pytest.raises(NotFound, match="there is no glossary 'b'"):
        deepl.found_in(folder.all(), "b")
    with pytest.raises(NotFound, match="there is no glossary"):
        deepl.found_in((), deepl.all_of(folder.all())[0].id)


def test_a_dictionary_is_of_exactly_its_languages(folder: Glossaries) -> None:
    glossary = deepl.all_of(folder.all())[0]
    assert glossary.dictionary("EN", "pt-br") is glossary.dictionaries[0]
    with pytest.raises(NotFound, match=f"glossary {glossary.id} has no dictionary from 'en' into 'pt'"):
        glossary.dictionary("en", "pt")


def test_languages_of_a_dictionary() -> None:
    def pair(source: str, target: str) -> tuple[str, str]:
        return deepl.pair_of(checked({"source_lang": source, "target_lang": target}, deepl.PairParameters))

    assert pair("EN", "pt-br") == ("en", "pt-BR")
    for source, target, message in (
        ("EN", "../x", "target_lang is '../x'"),
        ("", "DE", "source_lang is ''"),
        ("EN", "en", "target_lang is the source language too"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            pair(source, target)
