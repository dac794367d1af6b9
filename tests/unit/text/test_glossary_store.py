"""Glossaries that callers create, as files."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from service.domain.errors import NotFound, NotPossible, TooMany
from service.domain.translation import Term
from service.text import glossary_files
from service.text.glossary import Glossaries
from service.text.glossary_files import Dictionary
from service.text.glossary_folder import GlossaryFolder
from service.text.glossary_store import GlossaryStore, StoredGlossary, id_of

EN_DE = Dictionary("en", "de", (Term("train", "Zug"), Term("Key", "Taste", is_case_sensitive=True)))
DE_EN = Dictionary("de", "en", (Term("Zug", "train"),))


@pytest.fixture
def folder(tmp_path: Path) -> GlossaryFolder:
    return GlossaryFolder(tmp_path)


@pytest.fixture
def store(folder: GlossaryFolder) -> GlossaryStore:
    return GlossaryStore(folder, takes_changes=True)


def terms(glossary: StoredGlossary, source: str = "en", target: str = "de") -> list[tuple[str, str | None]]:
    found = glossary.dictionary(source, target)
    assert found is not None
    return [(each.source, each.target) for each in found.terms]


def names(folder: GlossaryFolder) -> list[str]:
    return sorted(each.name for each in folder.path.iterdir())


def test_a_glossary_is_served_at_once_and_survives_a_restart(folder: GlossaryFolder, store: GlossaryStore) -> None:
    created = store.create("My glossary", [EN_DE, DE_EN], "")
    assert created.name == "My-glossary"
    assert created.title == "My glossary"
    served = folder.find("My-glossary", "en", "de", "")
    assert served is not None
    assert served.terms == EN_DE.terms
    assert names(folder) == ["My-glossary.de-en.tsv", "My-glossary.en-de.tsv"]
    again = GlossaryStore(GlossaryFolder(folder.path), takes_changes=True)
    assert again.all("") == [created] == [again.find(created.id, "")]
    assert again.name_of(created.id.upper(), "") == "My-glossary"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("../../etc/passwd", "etc-passwd"),
        ("a.en-de", "a-en-de"),
        ("..", "glossary"),
        ("Glossar für Züge", "Glossar-f-r-Z-ge"),
        ("鉄道", "glossary"),
        ("a\nb\x00c", "a-b-c"),
        ("-x_", "x"),
        ("x" * 1000, "x" * 48),
    ],
)
def test_no_title_leads_out_of_the_folder(store: GlossaryStore, folder: GlossaryFolder, title: str, name: str) -> None:
    created = store.create(title, [EN_DE], "")
    assert (created.name, created.title) == (name, title)
    assert names(folder) == [f"{name}.en-de.tsv"]
    assert store.find(created.id, "").title == title


def test_glossaries_of_one_title_are_different_ones(store: GlossaryStore) -> None:
    first, second = store.create("a", [EN_DE], ""), store.create("A", [DE_EN], "")
    assert first.id != second.id
    assert second.name.startswith("A-")
    assert terms(store.find(first.id, "")) == [("train", "Zug"), ("Key", "Taste")]
    assert store.find(first.id, "").dictionary("de", "en") is None


def test_a_dictionary_is_replaced_merged_and_removed(store: GlossaryStore, folder: GlossaryFolder) -> None:
    glossary = store.create("a", [EN_DE], "")
    store.put(glossary.id, Dictionary("en", "de", (Term("TRAIN", "Bahn"), Term("x", "y"))), "", merges=True)
    assert terms(store.find(glossary.id, "")) == [("Key", "Taste"), ("TRAIN", "Bahn"), ("x", "y")]
    store.put(glossary.id, Dictionary("en", "de", (Term("x", "z"),)), "")
    assert terms(store.find(glossary.id, "")) == [("x", "z")]
    store.put(glossary.id, DE_EN, "", merges=True)
    assert len(store.find(glossary.id, "").dictionaries) == 2
    store.remove_dictionary(glossary.id, "EN", "DE", "")
    with pytest.raises(NotFound, match="no dictionary"):
        store.remove_dictionary(glossary.id, "en", "de", "")
    store.remove(glossary.id, "")
    assert names(folder) == []
    for call in (store.find, store.name_of):
        with pytest.raises(NotFound):
            call(glossary.id, "")


def test_a_new_title_changes_nothing_else(store: GlossaryStore) -> None:
    glossary = store.create("a", [EN_DE, DE_EN], "")
    store.rename(glossary.id, 'b "ü"\n', "")
    renamed = store.find(glossary.id, "")
    assert renamed.title == 'b "ü"\n'
    assert (renamed.id, renamed.created, renamed.dictionaries) == (glossary.id, glossary.created, glossary.dictionaries)


def test_changes_within_a_tick_of_the_clock_are_seen(store: GlossaryStore) -> None:
    glossary = store.create("a", [EN_DE], "")
    for target in "abcdefgh":
        store.put(glossary.id, Dictionary("en", "de", (Term("x", target),)), "")
        assert terms(store.find(glossary.id, "")) == [("x", target)]


def test_the_operator_s_files_are_read_and_not_changed(folder: GlossaryFolder, store: GlossaryStore) -> None:
    (folder.path / "ours.en-de.csv").write_text("a,b\n")
    (folder.path / "ours.en-fr.tsv").write_text("# of ours\na\tb\n")
    [glossary] = store.all("")
    assert (glossary.id, glossary.title, glossary.is_operators) == (id_of("ours"), "ours", True)
    assert terms(glossary) == [("a", "b")]
    changes: list[Callable[[], None]] = [
        lambda: store.put(glossary.id, EN_DE, ""),
        lambda: store.rename(glossary.id, "x", ""),
        lambda: store.remove(glossary.id, ""),
        lambda: store.remove_dictionary(glossary.id, "en", "fr", ""),
    ]
    for change in changes:
        with pytest.raises(NotPossible, match="operator"):
            change()
    assert store.create("ours", [EN_DE], "").name != "ours"


def test_nobody_sees_what_another_key_created(store: GlossaryStore, folder: GlossaryFolder) -> None:
    (folder.path / "ours.en-de.tsv").write_text("a\tb\n")
    glossary = store.create("a", [EN_DE], "alice")
    assert [each.name for each in store.all("alice")] == ["a", "ours"]
    assert store.find(glossary.id, "alice") == glossary
    for key_name in ("bob", ""):
        assert [each.name for each in store.all(key_name)] == ["ours"]
        assert folder.find("a", "en", "de", key_name) is None
        assert folder.find("a", "en-GB", "de", key_name) is None
        calls: list[Callable[[], object]] = [
            lambda key=key_name: store.find(glossary.id, key),  # type: ignore[misc]
            lambda key=key_name: store.name_of(glossary.id, key),  # type: ignore[misc]
            lambda key=key_name: store.put(glossary.id, DE_EN, key),  # type: ignore[misc]
            lambda key=key_name: store.rename(glossary.id, "b", key),  # type: ignore[misc]
            lambda key=key_name: store.remove(glossary.id, key),  # type: ignore[misc]
            lambda key=key_name: store.remove_dictionary(glossary.id, "en", "de", key),  # type: ignore[misc]
        ]
        for call in calls:
            with pytest.raises(NotFound, match="there is no glossary"):
                call()
        other = store.create("a", [EN_DE], key_name)
        assert other.name != "a"
    store.remove(glossary.id, "alice")


def test_a_server_without_a_folder_has_none() -> None:
    store = GlossaryStore(Glossaries(), takes_changes=True)
    assert store.all("") == []
    with pytest.raises(NotFound):
        store.find(id_of("a"), "")
    with pytest.raises(NotPossible, match="--glossaries"):
        store.create("a", [EN_DE], "")


def test_a_server_that_takes_no_changes_has_those_of_its_operator(folder: GlossaryFolder) -> None:
    (folder.path / "products.en-de.tsv").write_text("window\tScheibe\n")
    store = GlossaryStore(folder, takes_changes=False)
    assert [each.name for each in store.all("")] == ["products"]
    with pytest.raises(NotPossible, match="caller_glossaries"):
        store.create("a", [EN_DE], "")


def test_a_read_only_folder_is_told(
    store: GlossaryStore, folder: GlossaryFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(**_: object) -> None:
        raise PermissionError(13, "Permission denied")  # also for root, who may write anywhere

    monkeypatch.setattr("tempfile.mkstemp", refuses)
    with pytest.raises(NotPossible, match="Permission denied"):
        store.create("a", [EN_DE], "")
    assert names(folder) == []


def test_creation_is_atomic(store: GlossaryStore, folder: GlossaryFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_files, "MAX_BYTES", 200)
    large = Dictionary("de", "en", tuple(Term(f"term {number}", "x") for number in range(50)))
    with pytest.raises(TooMany, match="Delete some"):
        store.create("a", [EN_DE, large], "")
    assert names(folder) == []


def test_there_are_only_so_many(store: GlossaryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_files, "MAX_DICTIONARIES", 2)
    glossary = store.create("a", [EN_DE], "")
    store.create("b", [EN_DE], "")
    with pytest.raises(TooMany):
        store.create("c", [EN_DE], "")
    store.remove(glossary.id, "")
    store.create("c", [EN_DE], "")


def test_changes_of_several_stores_are_not_lost(folder: GlossaryFolder) -> None:
    stores = [GlossaryStore(GlossaryFolder(folder.path), takes_changes=True) for _ in range(3)]
    glossary = stores[0].create("a", [EN_DE], "")

    def add(store: GlossaryStore, number: int) -> None:
        for place in range(5):
            store.put(glossary.id, Dictionary("en", "de", (Term(f"t{number}{place}", "x"),)), "", merges=True)

    threads = [threading.Thread(target=add, args=(store, number)) for number, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(terms(stores[0].find(glossary.id, ""))) == 2 + 15
