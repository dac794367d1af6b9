"""Files of callers' glossaries, as the server's own reader reads them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from service.domain.errors import TooMany
from service.domain.translation import Term
from service.text import glossary_files
from service.text.glossary import read_glossary
from service.text.glossary_files import MARK, Dictionary, Head, head_of, path_of, write_dictionary

HEAD = Head('A "title"\tä', datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "alice")
DICTIONARY = Dictionary("en", "pt-BR", (Term("dog", "cão"), Term("SAP", None, is_case_sensitive=True)))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = write_dictionary(tmp_path, "a", HEAD, DICTIONARY)
    assert path == path_of(tmp_path, "a", "en", "pt-BR") == tmp_path / "a.en-pt_BR.tsv"
    assert head_of(path) == HEAD
    assert read_glossary(path).terms == DICTIONARY.terms
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "line", ["dog\tHund\n", MARK, f"{MARK}{{}}\n", f"{MARK}[1]\n", f'{MARK}{{"title": 1}}\n', "\udcff"]
)
def test_other_files_are_the_operators(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.en-de.tsv"
    path.write_text(line, encoding="utf-8", errors="surrogateescape")
    assert head_of(path) is None
    assert head_of(tmp_path / "gone") is None


def test_only_callers_files_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_files, "_MAX_BYTES", 300)
    (tmp_path / "operators.en-de.tsv").write_text("#" * 1000)
    write_dictionary(tmp_path, "a", HEAD, DICTIONARY)
    write_dictionary(tmp_path, "a", HEAD, DICTIONARY)  # in the place of the first
    with pytest.raises(TooMany, match=r"would have \d+ bytes; allowed are 300"):
        write_dictionary(tmp_path, "b", HEAD, Dictionary("en", "de", (Term("x" * 150, "y"),)))
    assert not path_of(tmp_path, "b", "en", "de").exists()
