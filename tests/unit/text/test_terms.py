"""Terms of glossaries in texts, and in few bytes."""

import gc
import sys
import time
import timeit
import tracemalloc
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.domain.translation import Term
from service.text.glossary import read_glossary
from service.text.term_list import TermList
from service.text.terms import FoundTerm, TermIndex, capitalized, find_terms
from service.text.words import is_word_boundary, unbroken


def found(text: str, *terms: Term) -> list[tuple[str, str]]:
    return [(text[term.start : term.end], term.target) for term in find_terms(text, TermIndex(terms))]


DOG = Term("dog", "Hund")


@pytest.mark.parametrize(
    ("text", "terms", "expected"),
    [
        ("The dog and the dogs, hotdog.", [DOG], [("dog", "Hund")]),
        ("dog", [DOG], [("dog", "Hund")]),
        ("(dog)dog-house dog's", [DOG], [("dog", "Hund")] * 3),
        ("a dog_house dog1 1dog dog\u0301", [DOG], []),
        ("dog house", [DOG, Term("dog house", "Hütte")], [("dog house", "Hütte")]),
        ("dog houses", [DOG, Term("dog house", "Hütte")], [("dog", "Hund")]),
        ("Machine learning, MACHINE LEARNING", [Term("machine learning", "maschinelles Lernen")],
         [("Machine learning", "Maschinelles Lernen"), ("MACHINE LEARNING", "MASCHINELLES LERNEN")]),
        ("DOG Dog dOg", [DOG], [("DOG", "HUND"), ("Dog", "Hund"), ("dOg", "Hund")]),
        ("Word word", [Term("Word", "Word")], [("Word", "Word"), ("word", "Word")]),
        ("Us us US", [Term("US", "USA", is_case_sensitive=True)], [("US", "USA")]),
        ("us US", [Term("us", "uns"), Term("US", "USA", is_case_sensitive=True)], [("us", "uns"), ("US", "USA")]),
        ("dragoman and DRAGOMAN", [Term("Dragoman")], [("dragoman", "dragoman"), ("DRAGOMAN", "DRAGOMAN")]),
        ("C++ and .NET!", [Term("C++"), Term(".NET")], [("C++", "C++"), (".NET", ".NET")]),
        ("我喜欢机器学习和狗。", [Term("机器学习", "ML"), Term("狗", "dog")], [("机器学习", "ML"), ("狗", "dog")]),
        ("用Python写", [Term("Python", "py")], [("Python", "py")]),
        ("हिन्दी भाषा हि", [Term("हि", "x"), Term("भाषा", "Sprache")], [("भाषा", "Sprache"), ("हि", "x")]),
        ("İstanbul STRASSE Straße", [Term("straße", "street"), Term("istanbul", "x")], [("Straße", "Street")]),
        ("a b", [Term("", "x"), Term(" ", "y")], []),
        ("dog", [DOG, Term("Dog", "Köter")], [("dog", "Hund")]),
        ("", [DOG], []),
    ],
)  # fmt: skip
def test_terms_are_found(text: str, terms: list[Term], expected: list[tuple[str, str]]) -> None:
    assert found(text, *terms) == expected


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("The Cafe\u0301 is open", "Café", "Cafe\u0301"),
        ("The Café is open", "cafe\u0301", "Café"),
        ("a train \u00a0 station, e\u0301", "train\u00a0station", "train \u00a0 station"),
        ("The king’s  house", "king's house", "king’s  house"),
        ("The king's house", "king’s\u3000house", "king's house"),
        ("The software", "soft\u00adware", "software"),
        ("train\nstation", "train station", None),
    ],
)
def test_forms_of_a_term_are_found_where_they_are(text: str, source: str, expected: str | None) -> None:
    found = [text[each.start : each.end] for each in find_terms(text, TermIndex([Term(source, "x")]))]
    assert found == ([] if expected is None else [expected])
    assert [each.target for each in find_terms(text, TermIndex([Term(source)]))] == found, "kept as it is written"


def test_a_requests_terms_go_before_a_glossarys() -> None:
    glossary = TermIndex([Term("dog", "Hund"), Term("cat", "Katze"), Term("hot dog", "Hotdog")])
    request = TermIndex([Term("dog", "Köter")])
    assert [term.target for term in find_terms("dog cat", request, glossary)] == ["Köter", "Katze"]
    assert [term.target for term in find_terms("hot dog", request, glossary)] == ["Hotdog"]
    assert find_terms("dog") == []


def test_no_term_goes_on_after_the_end_of_the_text() -> None:
    (term,) = find_terms("please save", TermIndex([Term("save", "sichern"), Term("save the file", "Datei sichern")]))
    assert (term.start, term.end, term.target) == (7, 11, "sichern")


def found_by_trying_all(text: str, *lists: list[Term]) -> list[FoundTerm]:
    """Try every term at every place: the reference, in quadratic time."""

    def folded(each: str) -> str:
        return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in each)

    def target(term: Term, there: str) -> str:
        if term.target is None or term.is_case_sensitive or there == term.source:
            return there if term.target is None else term.target
        if there.isupper() and not term.source.isupper() and len(there) > 1:
            return term.target.upper()
        is_capitalized = there[0].isupper() and not term.source[0].isupper()
        return capitalized(term.target) if is_capitalized else term.target

    # The longest first; of those the first list's, of those one that is case-sensitive, of those the first.
    ordered = [term for terms in lists for term in sorted(terms, key=lambda term: not term.is_case_sensitive)]
    ordered = [term for term in ordered if not term.source[:1].isspace()]  # no term begins with white space
    ordered.sort(key=lambda term: -len(term.source))
    found, start = list[FoundTerm](), 0
    while start < len(text):
        for term in ordered if is_word_boundary(text, start) else ():
            end = start + len(term.source)
            there = text[start:end]
            is_there = there == term.source or (not term.is_case_sensitive and folded(there) == folded(term.source))
            if term.source and is_there and is_word_boundary(text, end):
                found.append(FoundTerm(start, end, target(term, there)))
                start = end - 1
                break
        start += 1
    return found


# Signs, letters that begin alike, scripts without spaces, combining marks, and characters whose lower case has another
# length.
_SIGNS = st.sampled_from("abA1-'!_ \u4f60\u597d\u0e01\u0e31\xe9\u0301\u0939\u093f\u0130\U0001f355\U0001d165")
_SOURCES = (
    st.text(_SIGNS, min_size=1, max_size=7) | st.integers(1, 9).map("!".__mul__) | st.sampled_from(["a!", "A!A!"])
)
_TERMS = st.lists(st.builds(Term, _SOURCES, st.none() | st.just("x y") | st.just("xY"), st.booleans()), max_size=12)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    terms=_TERMS, others=_TERMS, parts=st.lists(_SOURCES | st.sampled_from([" ", ". ", "!!!!", "a!" * 9]), max_size=20)
)
def test_terms_are_found_as_by_trying_all(
    monkeypatch: pytest.MonkeyPatch, terms: list[Term], others: list[Term], parts: list[str]
) -> None:
    text = "".join(parts)
    for window, given_terms in product((1, 16_384), ([terms], [terms, others])):
        monkeypatch.setattr("service.text.terms._WINDOW", window)
        result = find_terms(text, *map(TermIndex, given_terms))
        assert result == found_by_trying_all(text, *given_terms)
        assert all(before.end <= after.start for before, after in pairwise(result))


@given(st.text("a!", max_size=60), st.lists(st.text("a!", min_size=1, max_size=20), max_size=20))
def test_terms_that_begin_alike_are_found_as_by_trying_all(text: str, sources: list[str]) -> None:
    terms = [Term(source, str(number)) for number, source in enumerate(sources)]
    assert find_terms(text, TermIndex(terms)) == found_by_trying_all(text, terms)


@pytest.mark.parametrize("text", ["a" * 99, "dog", "x" * 96 + " dog", "dog" * 40, "dog " * 40, "dog-" * 40 + "s"])
def test_words_longer_than_a_window_hold_no_terms(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("service.text.terms._WINDOW", 1)
    assert find_terms(text, TermIndex([DOG])) == found_by_trying_all(text, [DOG])


def test_a_capital_sigma_is_both_small_ones() -> None:
    capitals, small = "\u03a3\u0391\u03a3", "\u03c3\u03b1\u03c2"
    text = f"{capitals} {small} {capitals}.\u0391"
    assert found(text, Term(small, "x")) == [(capitals, "X"), (small, "x"), (capitals, "X")]


def test_small_letters_have_word_boundaries_where_capitals_have() -> None:
    """Terms are searched for between the boundaries of the folded text."""
    changed = [c for c in map(chr, range(sys.maxunicode)) if c != c.lower() and len(c.lower()) == 1]
    assert len(changed) > 1000
    for neighbour in "a!\u4f60":
        capitals = "".join(neighbour + c + neighbour for c in changed)
        assert [len(part) for part in unbroken(capitals)] == [len(part) for part in unbroken(capitals.lower())]


def _seconds(text: str, sources: list[str]) -> float:
    index = TermIndex([Term(source, "x", is_case_sensitive=source[0] == "A") for source in sources])
    return min(timeit.repeat(lambda: find_terms(text, index), timer=time.thread_time, number=1, repeat=3))


@pytest.mark.parametrize(("sign", "last"), [("!", "x"), ("!a", "!x"), ("A!", "x")])
def test_time_hardly_grows_with_terms_that_begin_alike(sign: str, last: str) -> None:
    """Trying one length after the other would grow 8-fold and more."""
    few, many = ([sign * length + last for length in range(1, longest)] for longest in (6, 96))
    text = sign * (4_000 // len(sign))
    assert _seconds(text, many) < 5 * _seconds(text, few)


def test_time_is_linear_in_the_text() -> None:
    sources = ["!" * length + "x" for length in range(1, 200)]
    assert _seconds("!" * 20_000, sources) < 40 * _seconds("!" * 2_000, sources)


_TEXTS = st.text(st.sampled_from("a é漢\t\n\ud800\0😀"))
_ANY_TERMS = st.lists(st.builds(Term, _TEXTS, st.none() | _TEXTS, st.booleans()))


@given(_ANY_TERMS)
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
    assert terms[-2] == Term("a")
    assert terms not in ([Term("a")], "ab")
    for index in (2, -3):
        with pytest.raises(IndexError, match=rf"the index is {index}; allowed: -2 to 1"):
            terms[index]


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
