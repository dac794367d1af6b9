"""Markdown, rendered again by GitHub's parser: markdown-it, which we read it with, would not see its own mistakes."""

import re
from html import escape

import pytest
from cmarkgfm import markdown_to_html_with_extensions
from cmarkgfm.cmark import Options
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from service.documents import open_document
from tests.unit.documents.pseudo import translated, unchanged

PAGE = r"""---
title: left alone
---
# Where *is* the station? ##

A paragraph with **bold _words_**, `code` and
[a link `x`](http://x.example/y "Title"), [one][ref] and <b>HTML</b>; 1 < 2 &amp; snake_case \*.
See <http://auto.example> or ~~not~~.{spaces}
After a break ![a picture](i.png) here\
and another.

> - quoted
>   text[^1]
>
>   more

1. first
   - second

| a | b \| c |
|---|:--|
| one `x\|y` | two |

```py
left = "alone"
```

    left alone

Setext
title
======

<p align="c">A <b>block</b></p>

<!-- left alone -->

[ref]: http://ref.example
[^1]: The note.
""".replace("{spaces}", "  ")


def html(source: str) -> str:
    rendered: str = markdown_to_html_with_extensions(source, Options.CMARK_OPT_UNSAFE, ["table", "strikethrough"])
    return rendered


def html_as_we_read(source: str) -> str:
    rendered: str = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(source)
    return rendered


_TEXTS = re.compile(r' (?:alt|title)="[^"]*"')


def shape(page: str) -> list[str]:
    return re.findall(r"<[^>]*>", re.sub(r"\n(?=\w)", " ", _TEXTS.sub("", page)))


def test_texts_change_and_the_structure_stays() -> None:
    document = open_document("a.md", PAGE.encode())
    written = translated(document).decode()
    assert shape(html(written)) == shape(html(PAGE))
    assert written.count("left") == PAGE.count("left")
    for line in (
        "# WHERE *IS* THE STATION? ##",
        'A PARAGRAPH WITH **BOLD _WORDS_**, `code` AND [A LINK `x`](http://x.example/y "TITLE"), [ONE][ref] AND '
        "<b>HTML</b>; 1 < 2 & SNAKE_CASE \\*. SEE <http://auto.example> OR ~~NOT~~.  ",
        "AFTER A BREAK ![A PICTURE](i.png) HERE\\",
        "AND ANOTHER.",
        "> - QUOTED TEXT[^1]",
        ">   MORE",
        "   - SECOND",
        "| A | B \\| C |",
        "| ONE `x\\|y` | TWO |",
        "SETEXT TITLE",
        '<p align="c">A <b>BLOCK</b></p>',
        "[ref]: http://ref.example",
        "[^1]: THE NOTE.",
    ):
        assert line in written.split("\n")
    assert document.notes == ()


def test_what_is_marked_goes_to_the_translator_as_tags() -> None:
    (text,) = open_document("a.md", b"Find **the keys** in `room 7`.").texts
    assert text.text == 'Find <span id="1">the keys</span> in <code id="5">room 7</code>.'
    assert text.place == "line 1"


@pytest.mark.parametrize(
    ("translation", "written"),
    [
        ("# No heading", r"\# No heading"),
        ("1. No item", r"1\. No item"),
        ("- no item", r"\- no item"),
        ("a *b* _c_ d_e [f](g) `h` <i> &amp; \\", r"a \*b\* \_c\_ d_e \[f](g) \`h\` \<i> \&amp; \\"),
        ("two\nlines", "two lines"),
    ],
)
def test_a_translation_never_becomes_markup(translation: str, written: str) -> None:
    assert open_document("a.md", b"Hello").written([translation]).decode() == written


def test_white_space_moves_out_of_emphasis_that_a_translator_put_it_into() -> None:
    document = open_document("a.md", b"Find **the keys** here")
    assert document.written(['Hier<span id="1"> die Schl\u00fcssel </span>finden']).decode() == (
        "Hier **die Schl\u00fcssel** finden"
    )


def test_markup_that_a_translator_lost_or_invented_does_no_harm() -> None:
    document = open_document("a.md", b"See `this` ![x](y) and *that*")
    assert document.written(['Das </span><span id="77">da</span>', "x"]).decode() == "Das da`this`![x](y)"


def test_line_ends_of_windows_stay() -> None:
    source = b"# A\r\n\r\nb\r\nc\r\n\r\n- d\r\n"
    assert translated(open_document("a.md", source)) == b"# A\r\n\r\nB C\r\n\r\n- D\r\n"


@settings(deadline=None)
@given(st.text("ab *_`[](){}<>!#-+=|\\&;:~.1\n\t\r\"'/^", max_size=80))
def test_the_same_texts_give_the_same_file(source: str) -> None:
    assert unchanged(open_document("a.md", source.encode())) == source.encode()


@settings(deadline=None)
@given(st.lists(st.text("abc *_`[]()!-1.<>&\\", min_size=1, max_size=20), min_size=1, max_size=3))
def test_any_text_written_as_a_translation_is_read_as_that_text(words: list[str]) -> None:
    translation = " ".join(" ".join(words).split())
    if translation:
        written = open_document("a.md", b"Hello").written([translation]).decode()
        assert html(written) == f"<p>{escape(translation, quote=True).replace('&#x27;', chr(39))}</p>\n"


PHRASES = st.lists(
    st.sampled_from(
        [
            *("one ", "*two* ", "**three** four ", "`five` ", "[six](y) ", "[**seven** `e`](y 'z') ", "![nine](z) "),
            *("\\\n", "ten\n", "<b>eleven</b> ", "http://twelve ", "<http://x> ", "_thirteen_, ", "a*b ", "\\* "),
            *("&lt; ", "~~x~~ ", "# ", "- ", "1. ", "[^1] ", "<br> ", "a_b_c ", "***both*** ", "*a **b** c* "),
            "<!-- d --> ",
        ]
    ),
    min_size=1,
    max_size=6,
).map("".join)
BLOCKS = st.tuples(st.sampled_from(["", "# ", "> ", "- ", "1. ", "> - ", "- [ ] ", "    ", "<p>"]), PHRASES).map(
    "".join
)


@settings(deadline=None)  # the first one compiles the table of constructs
@given(st.lists(BLOCKS, max_size=4).map("\n\n".join))
def test_the_structure_stays_whatever_it_is(source: str) -> None:
    # GitHub's parser ends a quotation before a line of a tag only, such as "> one\n<br>", as the standard once said.
    assume(shape(html(source)) == shape(html_as_we_read(source)))
    written = translated(open_document("a.md", source.encode())).decode()
    assert shape(html(written)) == shape(html(source))
