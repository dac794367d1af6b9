"""Placeholders that callers define."""

import time

import pytest

from service.domain.errors import InvalidRequest
from service.domain.translation import OwnPlaceholder
from service.text.placeholders import own_placeholders, search_placeholders


def found(text: str, *own: OwnPlaceholder) -> list[str]:
    return [text[start:end] for start, end, _ in search_placeholders(text, own_placeholders(own))]


@pytest.mark.parametrize(
    ("own", "text", "expected"),
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
def test_own_placeholders_are_found_first(own: tuple[OwnPlaceholder, ...], text: str, expected: list[str]) -> None:
    assert found(text, *own) == expected


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (OwnPlaceholder("("), r"placeholders\[0\] is '\(', which RE2 can't read: 'missing \)"),
        (OwnPlaceholder(r"(a)\1"), "invalid escape sequence"),
        (OwnPlaceholder("(?:(?:a{99}){99}){99}"), "RE2 can't read"),
        (OwnPlaceholder("\ud800"), "it is not Unicode"),
        (OwnPlaceholder("a*"), "matches the empty text; use"),
        (OwnPlaceholder("x" * 201), "is too long; allowed are 200 characters"),
        (OwnPlaceholder(start="[" * 21, end="]"), "20 for a mark"),
        (OwnPlaceholder(), "needs a pattern, or a start and an end"),
        (OwnPlaceholder(start="["), "needs a pattern, or a start and an end"),
        (OwnPlaceholder("a", "[", "]"), "needs a pattern, or a start and an end"),
    ],
)
def test_what_can_not_be_used_is_refused(own: OwnPlaceholder, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as error:
        own_placeholders((own,))
    assert error.value.field == "placeholders[0]"


@pytest.mark.parametrize(
    ("own", "unit"),
    [
        (OwnPlaceholder("(a*)*b"), "a"),
        (OwnPlaceholder("(a|aa)+$"), "a"),
        (OwnPlaceholder("a.*b|a"), "a"),
        (OwnPlaceholder("(x+x+)+y"), "x"),
        (OwnPlaceholder(start="a", end="b"), "a"),
        (OwnPlaceholder(start="a", end="b"), "ab"),
    ],
)
def test_no_pattern_is_slow(own: OwnPlaceholder, unit: str) -> None:
    compiled = own_placeholders((own,))
    assert compiled is not None
    start = time.process_time()
    compiled.find(unit * (50_000 // len(unit)))
    assert time.process_time() - start < 3
