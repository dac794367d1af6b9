"""Markdown: what the translator is given, that its answer never becomes markup, and named keys of front matter."""

import re
from html import escape

import pytest
import yaml
from cmarkgfm import markdown_to_html_with_extensions
from cmarkgfm.cmark import Options
from hypothesis import example, given
from hypothesis import strategies as st

from service.documents import DocumentOptions, MimeType, open_document
from tests.servers import REPOSITORY
from tests.unit.documents.formats.markdown import of_markdown
from tests.unit.documents.pseudo import translated, unchanged


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("[a b][] [c] [d][x]", "[A B][a b] [C][c] [D][x]"),
        ("![a b] ![c][] ![d][x]", "![A B][a b] ![C][c] ![D][x]"),
        ("[a *b*](x) [e]", "[A *B*](x) \\[E]"),
    ],
)
def test_labels_are_still_found(source: str, written: str) -> None:
    definitions = "\n\n[a b]: x\n[c]: y\n[x]: z"
    assert translated(open_document("a.md", (source + definitions).encode())).decode() == written + definitions


@pytest.mark.parametrize(
    ("source", "given"),
    [
        ("Find **the keys** in `room 7`.", "Find <span>the keys</span> in <code>room 7</code>."),
        ("x *`a`, `b`* [`c`](d)", "x <code>a, b</code> <code>c</code>"),
        ("Press <kbd>A</kbd>+<kbd>B</kbd> now", "Press <code>A+B</code> now"),
        ("a ![b c](d) e", "a <img> e"),
        ("a $b$ c[^1] d", "a <code>$b$</code> c<img> d"),
    ],
)
def test_what_is_marked_goes_to_the_translator_as_tags(source: str, given: str) -> None:
    text = open_document("a.md", source.encode()).texts[0]
    assert (re.sub(r' id="\d+"', "", text.text), text.place) == (given, "line 1")


@pytest.mark.parametrize(
    ("source", "translation", "written"),
    [
        ("a", "# No heading", r"\# No heading"),
        ("a", "1. No item", r"1\. No item"),
        ("a", "- no item", r"\- no item"),
        ("a", "a *b* _c_ d_e [f](g) `h` <i> &amp; \\", r"a \*b\* \_c\_ d_e \[f](g) \`h\` \<i> \&amp; \\"),
        ("a", "two\nlines", "two lines"),
        ("a", "$x$ and $5", "\\$x$ and $5"),
        ("a", "::: b", "\\::: b"),
        ("a", "{{ b }}", "\\{\\{ b }}"),
        ("a", "{% b %}", "\\{% b %}"),
        ('!!! note "A title"', 'the "title"', '!!! note "the &quot;title&quot;"'),
        (":::tip[A title]", "a [b] c", ":::tip[a \\[b\\] c]"),
        ("a", "% no comment", r"\% no comment"),
        ("(x)=\n\na", "(y)=", "(x)=\n\n\\(y)="),
        ("{ref}`a text <x>`", "b `c` <d> *e*", "{ref}`b 'c' (d) *e* <x>`"),
        ("[[page|a text]]", "b|c]", "[[page|b/c)]]"),
        ("a | b\n---", "| c", "&#124; c"),
        ("- a", "[ ] b", "- \\[ ] b"),
        ("![a](b)", "c] `d`", "![c\\] \\`d\\`](b)"),
        ('![a](b "1")', "c", '![c](b "1")'),
    ],
)
def test_a_translation_never_becomes_markup(source: str, translation: str, written: str) -> None:
    document = open_document("a.md", source.encode())
    (text,) = document.texts
    assert text.mime_type is MimeType.TEXT
    assert document.written([translation]).decode().startswith(written)


@pytest.mark.parametrize(
    ("source", "translations", "written"),
    [
        ("a **b** c", ['a<span id="1">(b)</span>c'], "a **(b)** c"),
        ("a **b** c", ['a<span id="1"> b </span>c'], "a **b** c"),
        ("a _b_ c", ['a<span id="1">b</span>c'], "a _b_ c"),
        ("a `x` b `y` c", ['<code id="1">x</code><code id="3">y</code>'], "`x` `y`"),
        ("a **b *c*** d", ['<span id="1"><span id="3">c</span> b</span> d'], "***c* b** d"),
        ("a **`x`** b", ['<code id="1">x</code>b'], "**`x`** b"),
        ("a *@x d* b", ['a <span id="1"><code id="2">@x</code>b</span>'], "a *@x b*"),
        ("a **b** c", ['<span id="1">b.</span>\U0001f60e'], "**b.** \U0001f60e"),
        ("a $xy$ b", ['a<code id="1">x</code>b'], "a $xy$ b"),
        ("a <!-- x --> b", ['<img id="1">c'], "c<!-- x -->"),
        ("See `this` ![x](y) and *that*", ['Das </span><span id="77">da</span>', "x"], "Das da`this`![x](y)"),
    ],
)
def test_markup_is_seen_wherever_a_translator_puts_it(source: str, translations: list[str], written: str) -> None:
    assert open_document("a.md", source.encode()).written(translations).decode() == written


@pytest.mark.parametrize(
    ("source", "written"),
    [
        (
            "[a](#b-c) [d][]\n\n[d]: #b-c-1 'e'\n\n# B c\n\nB, c?\n===",
            "[a](#b) [d][]\n\n[d]: #b-1 'e'\n\n# b\n\nb\n===",
        ),
        ("[a](<#b--c> 'd') <a href='#b--c'>a</a>\n## B & c #", "[a](<#b> 'd') <a href='#b'>a</a>\n## b #"),
        ("[a](#b-c) `[a](#b-c)`\n# B & c", "[a](#b) `[a](#b-c)`\n# b"),
        ("[a](#B-c)\n# B c", "[a](#b)\n# b"),
        ("[a](#%C3%A9)\n# É {.x}", "[a](#b)\n# b {.x}"),
        ("<p><a href='#b-c'>a</a></p>\n\n<h2>B c</h2>", "<p><a href='#b'>a</a></p>\n\n<h2>b</h2>"),
        ("[a](#b-c) [a](#x)\n# B c\n# B {#x}", "[a](#b-c) [a](#x)\n# b {#b-c}\n# b {#x}"),
        ("[a](#b-c)\n# [B c](#b-c)", "[a](#b)\n# [b](#b)"),
        ("[a](#c) [a](#d)\n\n<a id='c'></a>\n# B\n\n(d)=\n# B", "[a](#c) [a](#d)\n\n<a id='c'></a>\n# b\n\n(d)=\n# b"),
    ],
)
def test_links_to_headings_follow(source: str, written: str) -> None:
    document = open_document("a.md", source.encode())
    assert document.notes == ()
    texts = [re.sub("(?<![#<])\\b[bcBÉ]\\b(?!').*", "b", text.text) for text in document.texts]
    assert document.written(texts).decode() == written


def test_links_to_headings_that_are_not_known_are_told() -> None:
    (note,) = open_document("a.md", b"# A\n\n[a](#a) [b](#b) [c](c.md#d) [[#A]] [d](https://e/f.md#g)").notes
    assert note == "3 links to headings of other files, or to unknown headings, may be broken: #b, c.md#d, [[#A]]."


@given(st.text("ab *_`[](){}<>!#-+=|\\&;:~.1\n\t\r\"'/^", max_size=80))
def test_the_same_texts_give_the_same_file(source: str) -> None:
    assert unchanged(open_document("a.md", source.encode())) == source.encode()


@example(["["])
@given(st.lists(st.text("abc *_`[]()!-1.<>&\\", min_size=1, max_size=20), min_size=1, max_size=3))
def test_any_text_written_as_a_translation_is_read_as_that_text(words: list[str]) -> None:
    translation = " ".join(" ".join(words).split())
    if translation:
        written = open_document("a.md", b"Hello").written([translation]).decode()
        html = markdown_to_html_with_extensions(written, Options.CMARK_OPT_UNSAFE, ["table", "strikethrough"])
        assert html == f"<p>{escape(translation, quote=True).replace('&#x27;', chr(39))}</p>\n"


def test_the_structure_of_our_own_documents_stays() -> None:
    for path in sorted((REPOSITORY / "docs").glob("*.md"))[::3]:
        document = open_document("a.md", path.read_bytes())
        assert unchanged(document) == path.read_bytes()
        assert of_markdown(translated(document)) == of_markdown(path.read_bytes())


KEYS = DocumentOptions(front_matter=("title", "description", "hero.name", "params.text"))
FRONT_MATTER = """---
title: A page # a comment
slug: a-page
description: >-
  One line
  and two

  A paragraph
tags: [title, b]
hero:
  name: 'It''s'
  title: left
date: 2024-01-01
---
Text
"""


def test_only_the_named_keys_change() -> None:
    written = translated(open_document("a.md", FRONT_MATTER.encode(), KEYS)).decode()
    assert written.split("\n") == [
        *("---", "title: A PAGE # a comment", "slug: a-page", "description: >-", "  ONE LINE AND TWO", ""),
        *("  A PARAGRAPH", "tags: [title, b]", "hero:", "  name: 'IT''S'", "  title: left", "date: 2024-01-01", "---"),
        *("TEXT", ""),
    ]
    assert translated(open_document("a.md", FRONT_MATTER.encode())).decode() == FRONT_MATTER.replace("Text", "TEXT")
    windows = FRONT_MATTER.replace("\n", "\r\n").encode()
    assert unchanged(open_document("a.md", windows, KEYS)) == windows
    assert translated(open_document("a.md", windows, KEYS)).decode() == written.replace("\n", "\r\n")


@pytest.mark.parametrize("scalar", ["A page", '"A \\"page\\""', "'A page'"])
@pytest.mark.parametrize(
    "translation",
    [
        *("Seite: eins", "- Seite", "'Seite'", '"S"', "Seite #1", "true", "S\\e", "[S]", "{S}", "& S", "S\nT"),
        *("Seite:", "?"),
    ],
)
def test_any_translation_is_read_as_that_text(scalar: str, translation: str) -> None:
    document = open_document("a.md", f"---\ntitle: {scalar}\nb: c\n---\n".encode(), KEYS)
    front = document.written([translation]).decode().split("---\n")[1]
    assert yaml.safe_load(front) == {"title": translation, "b": "c"}


def test_toml() -> None:
    source = "+++\ntitle = \"A \\\"b\\\"\"\nc = 'D'\n[params]\ntext = 'it is' # e\n+++\nF\n"
    written = translated(open_document("a.md", source.encode(), KEYS)).decode()
    assert written == source.replace('\\"b', '\\"B').replace("it is", "IT IS")


@pytest.mark.parametrize("value", ["true", "12", "2024-01-01", "{a: b}", "&x 1", "*x", "!!int a", "| # no", '"a', ""])
def test_what_is_no_simple_string_stays(value: str) -> None:
    source = f"---\ntitle: {value}\n---\n".encode()
    assert translated(open_document("a.md", source, KEYS)) == source
