"""Placeholders that callers define."""

import re
import time

import pytest

from service.domain.checkpoint import checkpoints
from service.domain.errors import InvalidRequest
from service.domain.translation import OwnPlaceholder
from service.text.placeholders import OwnPlaceholders, custom, search_placeholders
from tests.hostile_patterns import LONGEST, hostile_searches
from tests.patience import patient


def found(text: str, *placeholders: OwnPlaceholder) -> list[str]:
    return [text[start:end] for start, end, _ in search_placeholders(text, OwnPlaceholders(placeholders))]


@pytest.mark.parametrize(
    ("given", "text", "expected"),
    [
        ((OwnPlaceholder(r"[A-Z]+-\d+"),), "Fix JIRA-1 and {x}", ["JIRA-1", "{x}"]),
        ((OwnPlaceholder(start="[[", end="]]"),), "[[a b]] [[c {d}]] [[e\n]] [[f", ["[[a b]]", "[[c {d}]]"]),
        ((OwnPlaceholder(start="~", end="~"),), "~a~b~c~", ["~a~", "~c~"]),
        ((OwnPlaceholder("é+"), OwnPlaceholder(r"\bfoo")), "foo é\ud800é foo", ["foo", "é", "é", "foo"]),
        ((OwnPlaceholder(r"x|\b"),), "ab x", ["x"]),
        ((OwnPlaceholder("ab"), OwnPlaceholder("bc+d")), "abccd bcd", ["ab", "bcd"]),
        ((OwnPlaceholder(r"\{n.*\}"),), "{n, plural, one {a} other {b}} {c", ["{n, plural, one {a} other {b}}"]),
        ((), "JIRA-1 {x}", ["{x}"]),
    ],
)
def test_own_placeholders_are_found_first(given: tuple[OwnPlaceholder, ...], text: str, expected: list[str]) -> None:
    assert found(text, *given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (OwnPlaceholder("("), r"placeholders\[0\] is '\(', which RE2 can't read: 'missing \)"),
        (OwnPlaceholder(r"(a)\1"), "invalid escape sequence"),
        (OwnPlaceholder("(?:(?:a{99}){99}){99}"), "repetitions of too many characters; allowed are 1000 characters"),
        (OwnPlaceholder(r"[\]x]{600}\pL{0,400}[[:alpha:]]"), "repetitions of too many characters"),
        (OwnPlaceholder(r"\pL{60}"), "RE2 can't read: 'pattern too large"),
        (OwnPlaceholder("\ud800"), "it is not Unicode"),
        (OwnPlaceholder("a*"), "matches the empty text; use"),
        (OwnPlaceholder("x" * 201), "is too long; allowed are 200 characters"),
        (OwnPlaceholder(start="[" * 21, end="]"), "20 for a mark"),
        (OwnPlaceholder(), "needs a pattern, or a start and an end"),
        (OwnPlaceholder(start="["), "needs a pattern, or a start and an end"),
        (OwnPlaceholder("a", "[", "]"), "needs a pattern, or a start and an end"),
    ],
)
def test_what_can_not_be_used_is_refused(given: OwnPlaceholder, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as error:
        OwnPlaceholders((given,))
    assert error.value.field == "placeholders[0]"


UNIT = 'See ABC-123 {{name}}, %(x)s <b class="x">, "Ü-1"\n漢字 \U0001f355 at https://a.b/c?d=é. '
ORDINARY = (
    *(r"\{\{\w+\}\}", r"%\(\w+\)s", "<[^>]{1,100}>", r"[A-Z]{2,5}-\d{1,6}", r"https?://[^\s<>]{1,500}", r"\bS[^,]*"),
    *('"[^"\\n]{0,60}"', "漢.{1,500}?a", "(?m)^漢."),
)


@pytest.mark.parametrize("text", [UNIT * 500, UNIT.encode("ascii", "ignore").decode() * 500])
@pytest.mark.parametrize("pattern", ORDINARY)
def test_ordinary_patterns_are_found_in_long_texts_as_in_short_ones(pattern: str, text: str) -> None:
    search = OwnPlaceholders((OwnPlaceholder(pattern),))
    assert search is not None
    spans = re.compile(pattern, re.ASCII).finditer(text)
    assert [tuple(span) for span in search.find(text)] == [span.span() for span in spans]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^a", "a" * 9_000, ["a"]),
        (r"\bb+", "a" * 2_048 + "bb bb", ["bb"]),
        (r"(?:ab)+\b", "ab" * 1_279 + "abc ab", ["ab"]),
        ("(?:ab)+$", "ab" * 2_000 + "c" + "ab" * 9, ["ab" * 9]),
        ("é.{498}é", "ä" * 1_700 + "é" + "x" * 498 + "é", ["é" + "x" * 498 + "é"]),
    ],
)
def test_where_one_part_of_a_text_ends_nothing_begins(pattern: str, text: str, expected: list[str]) -> None:
    assert found(text, OwnPlaceholder(pattern)) == expected


def refusal_of(given: OwnPlaceholder, text: str) -> InvalidRequest | None:
    try:
        search = OwnPlaceholders((given,))
        assert search is not None
        search.find(text)
    except InvalidRequest as error:
        return error
    return None


@pytest.mark.parametrize("num_characters", [4_096, pytest.param(LONGEST, marks=pytest.mark.full)])
def test_hostile_patterns_are_searched_for_in_steps_or_refused(
    num_characters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In CPU time, of which each step takes 20 ms here, whatever the text's length; some took a minute."""
    limit = custom.MAX_SECONDS * num_characters / LONGEST
    monkeypatch.setattr(custom, "MAX_SECONDS", limit)
    for pattern, text in hostile_searches(num_characters):
        step, began = 0.0, time.thread_time()
        last = began

        def passed() -> None:
            nonlocal step, last
            now = time.thread_time()
            step, last = max(step, now - last), now

        with checkpoints(passed):
            refusal = refusal_of(OwnPlaceholder(pattern), text)
            passed()
        assert refusal is None or (refusal.field == "placeholders[0]" and refusal.allowed + refusal.advice)
        assert step < patient(0.1), pattern
        assert last - began < patient(2 * limit + 0.1), pattern


def test_the_time_of_all_texts_and_placeholders_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom, "MAX_SECONDS", 0.2)
    search = OwnPlaceholders(
        (OwnPlaceholder("b"), OwnPlaceholder(r"(?:\w{0,30}){30}!"), OwnPlaceholder(start="c", end="d"))
    )
    assert search is not None
    texts = iter(["a" * 500] * 10_000)
    with pytest.raises(InvalidRequest) as raised:
        any(map(search.find, texts))
    assert next(texts, None) is not None  # not the first one
    assert str(raised.value).startswith(
        r"placeholders[1] is '(?:\\w{0,30}){30}!'; the search for the call's placeholders"
    )
    assert "allowed is 0.2 s of CPU time per call. Use fewer" in str(raised.value)


def test_marks_that_nothing_ends_take_linear_time() -> None:
    for unit in ("a", "ab"):
        search = OwnPlaceholders((OwnPlaceholder(start="a", end="b"),))
        assert search is not None
        began = time.process_time()
        search.find(unit * (50_000 // len(unit)))
        assert time.process_time() - began < 3
