"""Tokens against html5lib's, and their cost."""

import random
import time

import pytest
from html5lib import HTMLParser
from html5lib.constants import tokenTypes
from hypothesis import given
from hypothesis import strategies as st

from service.text.markup import BlockTranslation, parse
from service.text.markup.lexer import TokenKind, attributes, tokens

PIECES = (
    *("<", "</", ">", "/", "=", '"', "'", " ", "\n", "a", "B", "b1", "x-y", "-", "--", "<!--", "-->", "--!>", "!", "?"),
    *("<!", "<p>", "</p>", "é", "]"),
)


class Tokens(HTMLParser):  # type: ignore[misc]  # html5lib has no types
    """html5lib's tokenizer, without its parser."""

    def mainLoop(self) -> None:  # noqa: N802
        self.found = list(self.tokenizer)


def reference(html: str) -> list[tuple[str, str, dict[str, str]]]:
    """Return start and end tags as seen by html5lib's tokenizer."""
    kinds = {tokenTypes["StartTag"]: "start", tokenTypes["EmptyTag"]: "start", tokenTypes["EndTag"]: "end"}
    found = []
    parser = Tokens()
    parser.parse(html)
    for token in parser.found:
        if token["type"] in kinds:
            is_start = kinds[token["type"]] == "start"
            found.append((kinds[token["type"]], token["name"], dict(token["data"]) if is_start else {}))
    return found


@given(st.integers(0, 2**32))
def test_tags_are_html5libs(seed: int) -> None:
    chance = random.Random(seed)
    html = "".join(chance.choices(PIECES, k=chance.randint(1, 25)))
    found = [
        (
            token.kind.value,
            token.name,
            attributes(html[token.start : token.end]) if token.kind is TokenKind.START else {},
        )
        for token in tokens(html)
        if token.kind in (TokenKind.START, TokenKind.END)
    ]
    assert found == reference(html)


@given(st.text(alphabet="<>/!-?=\"' abAB[]&;#\0\x85\u2028", max_size=40))
def test_tokens_cover_the_input(html: str) -> None:
    assert "".join(html[token.start : token.end] for token in tokens(html)) == html


@pytest.mark.full  # a busy machine may make it fail
@pytest.mark.parametrize(
    "unit",
    [
        *("<b>", "<b>w ", "<b>Word</b> and <i>text</i> ", "<a", "<a b='", "<!--", "<![x", "<code>x "),
        *("<code>x</code> y ", "<b>x<br>", "<b>x <i>y</b> z</i> ", "w <img> ", "&#1", "<svg>", "<p translate=no>x"),
        *("<script>", "<object>x", "w!!!! "),
    ],
)
def test_time_grows_with_length_only(unit: str) -> None:
    """Eight times the text may take 24 times as long; quadratic cost would be 64 times."""

    def seconds(length: int) -> float:
        html = unit * (length // len(unit))
        started = time.thread_time()
        document = parse(html)
        document.render([BlockTranslation(block.text[::-1] + " z") for block in document.blocks])
        return time.thread_time() - started

    short = min(seconds(5_000) for _ in range(3))
    assert seconds(40_000) < 24 * short + 0.1


def test_deep_and_long() -> None:
    deep = "<b>" * 10_000 + "x y" + "</b>" * 10_000
    document = parse(deep)
    (block,) = document.blocks
    assert document.render([BlockTranslation("a b")]) == deep.replace("x y", "a b")
    assert block.text == "x y"
    assert parse("<b>" * 20_000).blocks == ()
