"""Terms in few bytes, and what indexes them."""

import gc
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.translation import Term
from service.text.glossary import read_glossary
from service.text.term_list import TermList
from service.text.terms import TermIndex, find_terms

_TEXTS = st.text(st.sampled_from("a é漢\t\n\ud800\0😀"))
_TERMS = st.lists(st.builds(Term, _TEXTS, st.none() | _TEXTS, st.booleans()))


@given(_TERMS)
def test_terms_come_back_as_they_were(terms: list[Term]) -> None:
    found = TermList(terms)
    assert list(found) == terms
    assert found == TermList(terms) == tuple(terms)
    assert [found.source(number) for number in range(len(found))] == [term.source for term in terms]
    assert [*found[-2:]] == terms[-2:]
    for is_case_sensitive in (False, True):
        expected = [number for number, term in enumerate(terms) if term.is_case_sensitive is is_case_sensitive]
        assert list(found.numbers(is_case_sensitive=is_case_sensitive)) == expected


def test_an_index_beyond_the_end_is_an_error() -> None:
    terms = TermList([Term("a"), Term("b")])
    assert (terms[1], terms[-2]) == (Term("b"), Term("a"))
    for index in (2, -3):
        with pytest.raises(IndexError, match="there are 2 terms"):
            terms[index]
    assert terms != [Term("a")]
    assert terms != "ab"


@pytest.mark.parametrize("line", ["{0:x}\t{0:x}", "term{0}\tBegriff{0}\tcase", "train station {0}\tHauptbahnhof {0}"])
def test_a_glossary_takes_at_most_four_times_the_bytes_of_its_file(tmp_path: Path, line: str) -> None:
    """As objects, the shortest lines took 32 times as much, and twice that while they were read."""
    path = tmp_path / "a.en-de.tsv"
    path.write_text("".join(f"{line.format(number)}\n" for number in range(100_000, 103_000)))
    read_glossary(path)  # what is done once
    gc.collect()
    tracemalloc.start()
    try:
        glossary = read_glossary(path)
        gc.collect()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(glossary.terms) == 3_000
    assert held < 4 * path.stat().st_size
    assert peak < 16 * path.stat().st_size


def test_a_text_of_the_same_hash_is_no_term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.text.terms.hash", len, raising=False)
    index = TermIndex([Term("dog", "Hund"), Term("Key", "Taste", is_case_sensitive=True)])
    assert find_terms("cat key", index) == []
    assert [each.target for each in find_terms("dog Key", index)] == ["Hund", "Taste"]
