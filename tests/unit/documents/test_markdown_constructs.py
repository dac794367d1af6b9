"""Markdown as it is written today: what parsers see that are not ours is the same afterwards."""

import re

import pytest

from service.documents import MimeType, open_document
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
    ("source", "told"),
    [
        ("x *`a`, `b`* [`c`](d)", "x <code>a, b</code> <code>c</code>"),
        ("Press <kbd>A</kbd>+<kbd>B</kbd> now", "Press <code>A+B</code> now"),
        ("a ![b c](d) e", "a <img> e"),
        ("a $b$ c[^1] d", "a <code>$b$</code> c<img> d"),
    ],
)
def test_what_stays_goes_to_the_translator_as_one(source: str, told: str) -> None:
    assert re.sub(r' id="\d+"', "", open_document("a.md", source.encode()).texts[0].text) == told


@pytest.mark.parametrize(
    ("source", "translation", "written"),
    [
        (b'!!! note "A title"', 'the "title"', b'!!! note "the &quot;title&quot;"'),
        (b":::tip[A title]", "a [b] c", b":::tip[a \\[b\\] c]"),
        (b"[[page|a text]]", "b|c]", b"[[page|b/c)]]"),
        (b"a | b\n---", "| c", b"&#124; c"),
        (b"- a", "[ ] b", b"- \\[ ] b"),
        (b"a", "$x$ and $5", b"\\$x$ and $5"),
        (b"a", "::: b", b"\\::: b"),
        (b"a", "{{ b }}", b"\\{\\{ b }}"),
        (b"a", "{% b %}", b"\\{% b %}"),
        (b"![a](b)", "c] `d`", b"![c\\] \\`d\\`](b)"),
        (b'![a](b "1")', "c", b'![c](b "1")'),
    ],
)
def test_a_translation_never_becomes_a_construct(source: bytes, translation: str, written: bytes) -> None:
    (text,) = open_document("a.md", source).texts
    assert text.mime_type is MimeType.TEXT
    assert open_document("a.md", source).written([translation]).startswith(written)


@pytest.mark.parametrize(
    ("source", "translation", "written"),
    [
        (b"a **b** c", 'a<span id="1">(b)</span>c', b"a **(b)** c"),
        (b"a _b_ c", 'a<span id="1">b</span>c', b"a _b_ c"),
        (b"a `x` b `y` c", '<code id="1">x</code><code id="3">y</code>', b"`x` `y`"),
        (b"a **b *c*** d", '<span id="1"><span id="3">c</span> b</span> d', b"***c* b** d"),
        (b"a **`x`** b", '<code id="1">x</code>b', b"**`x`** b"),
        (b"a *@x d* b", 'a <span id="1"><code id="2">@x</code>b</span>', b"a *@x b*"),
        (b"a **b** c", '<span id="1">b.</span>\U0001f60e', b"**b.** \xf0\x9f\x98\x8e"),
        (b"a $xy$ b", 'a<code id="1">x</code>b', b"a $xy$ b"),
        (b"a <!-- x --> b", '<img id="1">c', b"c<!-- x -->"),
    ],
)
def test_markup_is_seen_wherever_a_translator_puts_it(source: bytes, translation: str, written: bytes) -> None:
    assert open_document("a.md", source).written([translation]) == written


def test_the_structure_of_our_own_documents_stays() -> None:
    for path in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))):
        document = open_document("a.md", path.read_bytes())
        assert unchanged(document) == path.read_bytes()
        assert of_markdown(translated(document)) == of_markdown(path.read_bytes())
