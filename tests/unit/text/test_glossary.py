"""Glossary files."""

import logging
import os
from pathlib import Path

import pytest

from service.domain.translation import Term
from service.text.glossary import Glossaries, Glossary, GlossaryError, read_glossary


def write(folder: Path, text: str, name: str = "products.en-de.tsv", second: int = 1) -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    os.utime(path, (second, second))
    return path


def test_a_glossary_is_read(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "\ufeff# Our products\r\ndog\tHund\r\n\r\nDragoman\r\nacme \t\r\nUS\tUSA\tcase\r\n#x\ty\r\ndog\tHund\n",
        "my.products.en-pt_BR.tsv",
    )
    glossary = read_glossary(path)
    terms = (Term("dog", "Hund"), Term("Dragoman"), Term("acme"), Term("US", "USA", is_case_sensitive=True))
    assert glossary == Glossary("my.products", "en", "pt-BR", terms)


def test_csv_has_quoted_fields(tmp_path: Path) -> None:
    path = write(tmp_path, 'dog,Hund\n"yes, sir","ja, ""Chef""",case\nacme\n', "a.eng_Latn-deu_Latn.csv")
    assert read_glossary(path).terms == (
        Term("dog", "Hund"),
        Term("yes, sir", 'ja, "Chef"', is_case_sensitive=True),
        Term("acme"),
    )
    assert read_glossary(path).source_language_code == "eng-Latn"


def test_all_bad_lines_are_told_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, f"dog\tHund\n\tx\na\tb\tc\na\tb\tcase\td\nDog\tKöter\n{'x' * 201}\n")
    with pytest.raises(GlossaryError) as caught:
        read_glossary(path)
    assert str(caught.value) == (
        f"{path}: line 2 has no source term; line 3 has 'c' in its third column; allowed: 'case' or nothing; "
        "line 4 has 4 columns; allowed: source, target and 'case'; "
        "line 5 gives 'Dog' another target than line 1; line 6 has a term of more than 200 characters."
    )


def test_many_bad_lines_are_counted_and_none_is_an_empty_glossary(tmp_path: Path) -> None:
    assert read_glossary(write(tmp_path, "")).terms == ()
    with pytest.raises(GlossaryError, match=r"line 20 has no source term; and 80 more\.$"):
        read_glossary(write(tmp_path, "\tx\n" * 100))


def test_a_name_without_name_and_languages_is_an_error(tmp_path: Path) -> None:
    wrong = (
        "a.tsv",
        "en-de.tsv",
        "a.en-de.txt",
        "a.en.tsv",
        "a.en-pt-BR.tsv",
        ".en-de.tsv",
        "a b.en-de.tsv",
        "a.e-d.tsv",
    )
    for name in wrong:
        with pytest.raises(GlossaryError, match="the name must be <name>"):
            read_glossary(write(tmp_path, "a\tb\n", name))


def test_unreadable_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(GlossaryError, match="can't be read: No such file"):
        read_glossary(tmp_path / "a.en-de.tsv")
    path = tmp_path / "b.en-de.tsv"
    path.write_bytes(b"a\tb\nc\t\xff\n")
    with pytest.raises(GlossaryError, match="line 2 is not UTF-8"):
        read_glossary(path)
    with pytest.raises(GlossaryError, match="line 1 is not CSV"):
        read_glossary(write(tmp_path, '"a,b\n', "c.en-de.csv"))


def test_a_folder_is_kept_up_to_date(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, "dog\tHund\n")
    write(tmp_path, "not a glossary", "notes.txt")
    folder = Glossaries(tmp_path)
    assert [glossary.name for glossary in folder.all()] == ["products"]
    first = folder.find("products", "EN", "de")
    assert first is not None
    assert first.terms == (Term("dog", "Hund"),)
    assert folder.find("products", "en", "fr") is None
    assert not folder.refresh()
    assert folder.find("products", "en", "de") is first  # not read again

    write(tmp_path, "dog\tKöter\n", second=2)
    assert folder.refresh()
    write(tmp_path, "\tbroken\n", second=3)
    with caplog.at_level(logging.WARNING):
        assert not folder.refresh()
        assert not folder.refresh()
    assert [record.getMessage() for record in caplog.records] == [
        f"Glossary left out: {path}: line 1 has no source term. Its previous contents stay in use."
    ]
    kept = folder.find("products", "en", "de")
    assert kept is not None
    assert kept.terms == (Term("dog", "Köter"),)

    write(tmp_path, "dog\tHund\n", second=4)
    write(tmp_path, "chien\tdog\n", "products.fr-en.tsv")
    assert folder.refresh()
    assert [glossary.source_language_code for glossary in folder.all()] == ["en", "fr"]
    path.unlink()
    assert folder.refresh()
    assert [glossary.source_language_code for glossary in folder.all()] == ["fr"]


def test_one_name_and_pair_is_one_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, "dog,Hund\n", "a.en-de.csv")
    write(tmp_path, "dog\tKöter\n", "a.EN-de.tsv")
    folder = Glossaries(tmp_path)
    assert len(folder.all()) == 1
    assert "has the same name and languages as" in caplog.text


@pytest.mark.timeout(20)
def test_pipes_devices_and_folders_are_no_glossaries(tmp_path: Path) -> None:
    with pytest.raises(GlossaryError, match="is not a folder"):
        Glossaries(tmp_path / "none")
    write(tmp_path, "dog\tHund\n")
    os.mkfifo(tmp_path / "a.en-de.tsv")
    (tmp_path / "b.en-de.tsv").symlink_to("/dev/zero")
    (tmp_path / "c.en-de.tsv").mkdir()
    assert [each.name for each in Glossaries(tmp_path).all()] == ["products"]
    for name in "abc":
        with pytest.raises(GlossaryError, match=f"{name}.en-de.tsv is not a file"):
            read_glossary(tmp_path / f"{name}.en-de.tsv")
