"""Terms of glossaries in texts."""

import random
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.text.terms import FoundTerm, TermIndex, find_terms
from service.text.words import is_word_boundary
from service.translation import Term


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
        ("", [DOG], []),
    ],
)  # fmt: skip
def test_terms_are_found(text: str, terms: list[Term], expected: list[tuple[str, str]]) -> None:
    assert found(text, *terms) == expected


def test_a_requests_terms_go_before_a_glossarys() -> None:
    glossary = TermIndex([Term("dog", "Hund"), Term("cat", "Katze"), Term("hot dog", "Hotdog")])
    request = TermIndex([Term("dog", "Köter")])
    assert [term.target for term in find_terms("dog cat", request, glossary)] == ["Köter", "Katze"]
    assert [term.target for term in find_terms("hot dog", request, glossary)] == ["Hotdog"]
    assert find_terms("dog") == []


def test_no_term_goes_on_after_the_end_of_the_text() -> None:
    (term,) = find_terms("please save", TermIndex([Term("save", "sichern"), Term("save the file", "Datei sichern")]))
    assert (term.start, term.end, term.target) == (7, 11, "sichern")


def test_of_equal_terms_the_first_counts() -> None:
    assert found("dog", DOG, Term("Dog", "Köter")) == [("dog", "Hund")]


def _longest_by_trying_all(text: str, terms: list[Term]) -> list[FoundTerm]:
    """Finds case-sensitive terms slowly."""
    result, start = [], 0
    while start < len(text):
        ends = {term: start + len(term.source) for term in terms if text.startswith(term.source, start)}
        fitting = [term for term, end in ends.items() if is_word_boundary(text, start) and is_word_boundary(text, end)]
        best = max(fitting, key=lambda term: len(term.source), default=None)
        if best is None:
            start += 1
        else:
            result.append(FoundTerm(start, start + len(best.source), best.target or best.source))
            start += len(best.source)
    return result


_SOURCES = st.text(st.sampled_from("abA1-'你好é\u0301ह ि_"), min_size=1, max_size=7).filter(
    lambda text: text == text.strip()
)


@settings(max_examples=200, deadline=None)
@given(st.lists(_SOURCES, max_size=8), st.lists(_SOURCES | st.sampled_from([" ", ". "]), max_size=12))
def test_the_longest_terms_are_found(sources: list[str], parts: list[str]) -> None:
    text = "".join(parts)
    terms = [Term(source, str(number), is_case_sensitive=True) for number, source in enumerate(dict.fromkeys(sources))]
    result = find_terms(text, TermIndex(terms))
    assert result == _longest_by_trying_all(text, terms)
    assert all(before.end <= after.start for before, after in pairwise(result))


def test_ten_thousand_terms_take_little_time() -> None:
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(3, 9))) for _ in range(10_000)]
    terms = [Term(" ".join(rng.sample(words, rng.randint(1, 4))), "x") for _ in range(10_000)]
    text = " ".join(rng.choices(words, k=5000))[:30_000]
    start = time.process_time()
    index = TermIndex(terms)
    assert find_terms(text, index)
    assert time.process_time() - start < 3
