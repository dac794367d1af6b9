"""Files of callers' glossaries, as the server's own reader reads them, and how many there may be."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from service.domain.errors import TooMany
from service.domain.translation import Term
from service.text import glossary_files
from service.text.glossary import MARK, GlossaryError, Head, head_of, read_glossary
from service.text.glossary_files import Dictionary, check_share, contents_of, path_of, write
from service.text.glossary_folder import CallersFile

HEAD = Head('A "title"\tä', datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "alice")
DICTIONARY = Dictionary("en", "pt-BR", (Term("dog", "cão"), Term("SAP", None, is_case_sensitive=True)))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = path_of(tmp_path, "a", "en", "pt-BR")
    assert path == tmp_path / "a.en-pt_BR.tsv"
    write(path, contents_of(HEAD, DICTIONARY))
    glossary = read_glossary(path)
    assert glossary.head == HEAD
    assert glossary.terms == DICTIONARY.terms
    assert [glossary.is_for(key) for key in ("alice", "bob", "")] == [True, False, False]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("line", ["dog\tHund\n", "", "# dragoman\n", "\ufeff# ours\n"])
def test_other_files_are_the_operators(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.en-de.tsv"
    path.write_text(line, encoding="utf-8")
    glossary = read_glossary(path)
    assert glossary.head is None
    assert glossary.is_for("alice")
    assert glossary.is_for("")


@pytest.mark.parametrize("about", ["", "{}", "[1]", '{"title": 1}', '{"title": "a", "created": "then", "key": "b"}'])
def test_a_file_that_does_not_say_whose_it_is_is_nobody_s(tmp_path: Path, about: str) -> None:
    path = tmp_path / "a.en-de.tsv"
    path.write_text(f"{MARK}{about}\nsecret\tgeheim\n")
    with pytest.raises(GlossaryError, match=r"line 1 begins with .* and does not say whose it is"):
        read_glossary(path)
    assert head_of("# a comment") is None


def test_a_key_has_a_sixteenth_of_what_all_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_files, "MAX_BYTES", 1600)
    monkeypatch.setattr(glossary_files, "MAX_DICTIONARIES", 48)
    paths = [tmp_path / str(number) for number in range(64)]
    own = [CallersFile(path, "alice", 30) for path in paths[:2]]
    check_share(own, [(paths[2], bytes(40))], "alice")
    check_share(own, [(paths[0], bytes(70))], "alice")  # in the place of the first
    for new, message in (
        ([(paths[2], bytes(41))], "of key alice would have 101 bytes; allowed are 100. Delete some"),
        ([(paths[2], b""), (paths[3], b"")], "of key alice would have 4 dictionaries; allowed are 3. Delete some"),
    ):
        with pytest.raises(TooMany, match=message):
            check_share(own, new, "alice")
        check_share(own, new, "bob")
        check_share([], new, "")
    check_share([CallersFile(path, "", 40) for path in paths[:39]], [(paths[40], bytes(40))], "")


def test_all_keys_together_have_no_more_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_files, "MAX_BYTES", 1600)
    held = [CallersFile(tmp_path / str(number), f"key-{number}", 100) for number in range(16)]
    with pytest.raises(TooMany, match=r"of all callers would have 1601 bytes; allowed are 1600. Ask its operator"):
        check_share(held, [(tmp_path / "new", b"x")], "another")
