"""Placeholders in plain texts."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.checkpoint import checkpoints
from service.domain.errors import TooMany
from service.text import placeholders
from service.text.placeholders import find_placeholders


def found(text: str) -> list[str]:
    return [text[start:end] for start, end in find_placeholders(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello {{name}}, you have {{ count }} messages.", ["{{name}}", "{{ count }}"]),
        (
            "Raw {{{html}}} and {% if user.is_admin %}admin{% endif %}.",
            ["{{{html}}}", "{% if user.is_admin %}", "{% endif %}"],
        ),
        ("Hello {0}, {1}{2}.", ["{0}", "{1}", "{2}"]),
        (
            "{name} has {count:,} {items[0]} for {price:.2f} or {0,10:F2}",
            ["{name}", "{count:,}", "{items[0]}", "{price:.2f}", "{0,10:F2}"],
        ),
        ("Done: {} of {}", ["{}", "{}"]),
        ("{user.first_name}'s {photo-album}", ["{user.first_name}", "{photo-album}"]),
        (
            "Set ${HOME} and ${user.name ?? 'x'}, #{ruby} or %{count}",
            ["${HOME}", "${user.name ?? 'x'}", "#{ruby}", "%{count}"],
        ),
        ("%s deleted %d files", ["%s", "%d"]),
        ("%1$s sent %2$s to %3$d, %1$@", ["%1$s", "%2$s", "%3$d", "%1$@"]),
        ("%(name)s owes %(amount).2f", ["%(name)s", "%(amount).2f"]),
        (
            "%@ is %ld years, %lld, %zu, %05d, %-10s, %+.2f, %x, 0x%02X, %*d",
            ["%@", "%ld", "%lld", "%zu", "%05d", "%-10s", "%+.2f", "%x", "%02X", "%*d"],
        ),
        ("Width: %dpx, '%s', (%s), %s.", ["%d", "%s", "%s", "%s"]),
        ("%.2f%% done", ["%.2f", "%%"]),
        ("%d%s", ["%d", "%s"]),
        ("Click <b>here</b> or <br/> <br />.", ["<b>", "</b>", "<br/>", "<br />"]),
        ("<x id=\"1\"/>text<x id=2/> <g id='3'>a</g>", ['<x id="1"/>', "<x id=2/>", "<g id='3'>", "</g>"]),
        ('<a href="{{url}}" title="One. Two">link</a>', ['<a href="{{url}}" title="One. Two">', "</a>"]),
        ('<xliff:g id="n">5</xliff:g>', ['<xliff:g id="n">', "</xliff:g>"]),
        ("See https://example.com/a?b=c&d=%20e#f.", ["https://example.com/a?b=c&d=%20e#f"]),
        ("(see https://en.wikipedia.org/wiki/Dog_(animal)) and so on", ["https://en.wikipedia.org/wiki/Dog_(animal)"]),
        (
            'See "http://a.b/c", <https://x.y> or http://localhost:8000/!',
            ["http://a.b/c", "https://x.y", "http://localhost:8000/"],
        ),
        (
            "www.example.com, ftp://files.example.org/x.zip; myapp://open/{id}",
            ["www.example.com", "ftp://files.example.org/x.zip", "myapp://open/{id}"],
        ),
        ("请访问https://example.com/路径。然后", ["https://example.com/"]),
        ("Siehe https://example.org/Straße und mehr", ["https://example.org/Straße"]),
        ("Write to jane.doe+test@mail.example.co.uk.", ["jane.doe+test@mail.example.co.uk"]),
        ("mailto:a@b.de, 联系a@b.com吧", ["mailto:a@b.de", "a@b.com"]),
        ("Great :tada: :+1: :white_check_mark:", [":tada:", ":+1:", ":white_check_mark:"]),
    ],
)
def test_placeholders_are_found(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "I am 100% sure.",
        "100%sure and 50%discount",
        "A 50 % discount, 5 % do, 30 %d'intérêts",
        "10% of 20% is 2%.",
        "What % is it? The %age and %sure",
        "%50 indirim, %5",
        "It costs $5 or $name.",
        "a < b and c > d",
        "if x<y and z>w then",
        "x < 3 > 2 <3",
        "<- left -> <= >= <> </> < b>",
        "f(x) = {a, b, c}",
        "{n, plural, one {# item} other {# items}}",
        "{ a sentence in braces }",
        "At 12:30:45: see 3:16",
        "Note: this: that, std::vector::size, a:b:c",
        "a@b, @user, me@localhost, 5 @ 3.50",
        "example.com and/or TCP/IP, e.g. 1://",
        "{{ } }} {\n}",
        "{{a\nb}}",
        "",
    ],
)
def test_what_is_none_is_not_found(text: str) -> None:
    assert found(text) == []


_PARTS = st.sampled_from(
    [
        "{",
        "}",
        "{{",
        "}}",
        "%",
        "s",
        "d",
        "$",
        "1",
        " ",
        "<",
        ">",
        "/",
        "=",
        '"',
        "a",
        "http://",
        "www.",
        "@",
        ".",
        ":",
        "(",
        ")",
        "é",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_PARTS | st.text(max_size=3), max_size=30).map("".join))
def test_spans_are_in_order_and_apart(text: str) -> None:
    spans = find_placeholders(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(before.end <= after.start for before, after in pairwise(spans))
    for placeholder in found(text):
        assert placeholder == placeholder.strip()
        assert len(placeholder.splitlines()) == 1


@settings(max_examples=100, deadline=None)
@given(st.lists(_PARTS | st.text(max_size=3), max_size=30).map("".join), st.integers(1, 40))
def test_windows_make_no_difference(text: str, size: int) -> None:
    whole = found(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placeholders, "_WINDOW", size)
        assert found(text) == whole


def test_there_are_not_more_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placeholders, "MAX_PLACEHOLDERS", 3)
    assert found("{} %s {x}") == ["{}", "%s", "{x}"]
    with pytest.raises(TooMany, match="more than 3 placeholders"):
        found("{} %s {x} {}")


def test_no_search_goes_on_for_long() -> None:
    """No more than a window is searched between checkpoints."""
    num_passed = 0

    def passed() -> None:
        nonlocal num_passed
        num_passed += 1

    with checkpoints(passed):
        find_placeholders("{%" * 50_000)
    assert num_passed >= 100_000 // 8_192


@pytest.mark.parametrize(
    "unit",
    [
        "{",
        "{{",
        "{{a",
        "{% ",
        "{%",
        "${",
        "<",
        "<a ",
        '<a x="',
        "<a x=1 ",
        "http://",
        "http://(",
        "www.",
        "a@",
        "a.",
        "%",
        "%(",
        ":a",
        "a-",
        "&",
    ],
)
def test_hostile_texts_take_linear_time(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    start = time.process_time()
    find_placeholders(text)
    assert time.process_time() - start < 3
