"""Markdown as it is written today: what parsers see that are not ours is the same afterwards."""

import functools
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from cmarkgfm import markdown_to_html_with_extensions
from cmarkgfm.cmark import Options
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.attrs import attrs_block_plugin, attrs_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.subscript import sub_plugin
from mdit_py_plugins.superscript import superscript_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

from service.documents import DocumentText, MimeType, open_document
from tests.servers import REPOSITORY
from tests.unit.documents.pseudo import capitals, translated, unchanged

# Constructs, as they are written when the translator turns letters into capitals: what is in small letters stays.
CONSTRUCTS = {
    "tasks": "- [ ] A\n- [x] B\n  1) [-] C",
    "alerts": "> [!warning]\n> A B\n\n> [!note]- A *B*\n> C",
    "notes": "A[^one]^[B]\n\n[^one]: A\n[^b-2]: B\n\n    C",
    "comments in definitions": "[//]: # (some words)\n[x]: y (SOME WORDS)",
    "math": "A $l_1*l_2$, \\(l*e\\) AND $$l$$ OR $`l`$",
    "blocks of math": "A\n$$\nl_1 \\\\\n$$\nB\n\n\\[\nl\n\\]\n\n\\begin{align}\nl\n\\end{align}",
    "money": "FROM $5 TO $10, NOT 5 $ AND US$5",
    "divs": ":::one\nA\n:::\n\n::: {.one}\nB\n:::",
    "titles of divs": ":::one[C *D*]{#l}\nE\n:::\n\n::: one F G\nH\n:::",
    "admonitions": '!!! one "A \'B\'"\n    C\n\n    D\n\n??? one\n\n    - E\n\n=== "F"\n\n    G',
    "blocks of pymdownx": "/// one | A B\nC\n///",
    "attributes": "# A {#one .l}\n\n{: .one }\nB\n{.one}\n\n[D]{.one} [E](y){:one}",
    "attributes of images": '![C](x){ .one width="3" }',
    "wikilinks": "[[one]] [[one|A B]] ![[one|3]] [[l|l|l]]",
    "templates": "{{% one %}}\nA\n{{% /one %}}\n\nB {{< one >}} C {{ one }}\n\n{% if x %}\nD\n{% endif %}",
    "code in templates": "{% highlight one %}\n\n# one\n{% endhighlight %}\n\n{{< one\n  a=1\n>}}",
    "addresses of templates": '[A]({{< ref "l e" >}}) ![B]({% link l %})',
    "modules": "import {a} from 'one'\n\nexport const one = {\n  l: 'l'\n}\n\n# A {one.l}\n\n{/* one */}",
    "functions": "import a from 'b'\n\nexport default function one() {\n  const a = 1\n\n  return a\n}\n\nB",
    "math of MathJax": "A \\\\(l_1*e\\\\) B\n\n\\\\[\nl\n\\\\]\n\n::: mermaid\nl --> e\n:::",
    "mdx": "{/* l */}\n\nB {l ? 'e' : 'f'} {/* l */} <b.c d={{e: 'l'}}>C</b.c>",
    "definitions": "A\nB\n: C\n: D\n\n  E\n\n*F*\n\n:   G",
    "abbreviations": "*[one]: A B",
    "marks": "==A *B*== ~C D~ ++E F++ {++G++} {--H--}",
    "formulas": "l~2~o, c<sub>6</sub>h<sub>12</sub> 10 m^2^",
    "raised signs": 'WORD<sup><a href="l">1</a></sup>, WORD<sup>[2]</sup> A',
    "signs": ":one: AT 10:30:15 @one #one https://l.e/f_t++ ++ctrl+l++ [@one] A@B",
    "inline HTML": '<kbd>l</kbd>+<kbd>e</kbd> A<br/>B<br />C <b translate="no">one</b> <!-- one --> <svg><l/></svg>',
    "tags without partners": "A **B<x>** C </i> *<b>D* `e`</b> <u>F</u>",
    "HTML in a list": "- <p>A</p>\n\n> <p>B</p>",
    "cells": '|A|B \\| C|\n|-|-|\n|[[l\\|D]] `l\\|l`|E<br />F ![G](x "H")|',
    "verses and captions": "| A\n| B\n\n: C",
    "lines of their own": "A ^one\n\n%%one%%\n\n%%\none\n%%\n\n[toc]\n\n--8<-- 'one'",
    "no-break spaces": "&nbsp;A&nbsp;B",
    "titles": '[A](x "IT\'S \\"B\\"") ![C](y \'D\') ![E|300](z)',
}


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_the_words_change_and_the_construct_stays(construct: str) -> None:
    for ending in ("\n", "\r\n"):
        expected = CONSTRUCTS[construct].replace("\n", ending)
        document = open_document("a.md", expected.lower().encode())
        assert unchanged(document).decode() == expected.lower()
        assert translated(document).decode() == expected


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


INLINE = (
    *("one word ", "*two* ", "**three four** ", "`five` ", "[six](y) ", "[seven **x** `e`](y 'z') ", "![nine ten](z) "),
    *('![pic](z "A title") ', "<b>eleven</b> ", "<http://x.y> ", "_thirteen_, ", "\\* ", "&lt; ", "~~gone~~ ", "[^1] "),
    *("<br> ", "<br/> ", "a_b_c ", "***both*** ", "*a **b** c* ", "<!-- d --> ", "a $x_1*y$ ", "$5 and ", "\\(a+b\\) "),
    *("==marked== ", "H~2~O ", "x^2^ ", "[[Page]] ", ":smile: ", "[label text][ref] ", "[Ref][] ", "[ref] ", "![Ref] "),
    *(
        "[span words]{.cls} ",
        "[link](u){.a #b} ",
        "`c`{.py} ",
        "[@cite] ",
        "<kbd>Ctrl</kbd>+<kbd>S</kbd> ",
        "{{ var }} ",
    ),
    *("https://example.org/a_b ", "^[inline note] ", "\\\n", "two\nlines ", "spaces  \nbreak ", "@user ", "#123 "),
    *("(paren) ", '"quoted" ', "it's ", "end. ", "New sentence! "),
)
BLOCKS = (
    *("{}", "# {}", "## {} {{#id-1}}", "### {} ##", "> {}", "> > {}", "- {}", "1. {}", "- [ ] {}", "* {}\n  * {}"),
    *("> [!NOTE]\n> {}", "[^1]: {}\n\n    {}", "Term\n: {}", "{}\n===", "{}\n---", "| a | {} |\n|---|---|\n| {} | b |"),
    *(
        ":::note\n{}\n:::",
        ":::tip[Title here]\n\n{}\n\n:::",
        '!!! note "Some title"\n    {}\n\n    {}',
        "??? tip\n    {}",
    ),
    *("$$\na_1*b\n$$", "```py\nx = 1\n```", "{{{{% notice %}}}}\n{}\n{{{{% /notice %}}}}", "- {}\n\n  {}\n- {}"),
    *(
        '<p align="c">word here</p>',
        "{{.cls #id}}\n{}",
        "\\begin{{align}}\na &= b\n\\end{{align}}",
        "[^n]: {}\n[^m]: {}",
    ),
)
NOISE = (
    "*",
    "_",
    "[",
    "]",
    "*x*",
    "[y]",
    "_z_",
    "(",
    "`",
    "#",
    "$",
    "~",
    "==",
    "{",
    "}",
    "^",
    "|",
    "!",
    ":",
    "\\",
    "&amp;",
)
STARTS = ("* ", "# ", "> ", "+ ", "- ", "$5 ", "1. ", "::: ", "!!! a ", "| ", ": ", "(a) ", "« ", '"q" ', "=== ")


def generated(chance: random.Random) -> str:
    def words(is_one_line: bool) -> str:
        text = "".join(chance.choices(INLINE, k=chance.randint(1, 5))).strip()
        if re.match("<(?:br|!)", text):  # would start a block of HTML
            text = f"one {text}"
        return (re.sub(r"(?:\\|  )?\n", " ", text) if is_one_line else text).rstrip("\\ ")

    blocks = []
    for block in chance.choices(BLOCKS, k=chance.randint(1, 4)):
        is_one_line = block not in ("{}", "{}\n===", "{}\n---")
        blocks.append(block.format(*(words(is_one_line) for _ in range(3))))
    return "\n\n".join((*blocks, '[ref]: http://r.x "Ref title"\n'))


def noisy(chance: random.Random, text: DocumentText) -> str:
    """Return a text with other words and with signs that mean something in Markdown."""
    output: list[str] = []
    is_kept = False
    for index, part in enumerate(re.split(r"(<[^<>]*>|&[#\w]+;)", text.text)):
        if index % 2:
            is_kept = part.startswith("<code") or (is_kept and part != "</code>")
        if index % 2 or is_kept or text.text != text.text.strip():
            output.append(part)
            continue
        words = part.split(" ")
        match chance.randrange(4):
            case 0:
                words = [word.upper() for word in words]
            case 1:
                words.reverse()
            case 2:
                words = [word + chance.choice(NOISE) if len(word) > 1 else word for word in words]
            case _:
                words[0] = chance.choice(STARTS) + words[0] if len(words[0]) > 2 else words[0]
        output.append(" ".join(words))
    return "".join(output)


def reader() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"alerts": True}).enable(["table", "strikethrough"])
    for plugin in (deflist_plugin, amsmath_plugin, attrs_block_plugin, tasklists_plugin, admon_plugin):
        parser.use(plugin)
    for plugin in (sub_plugin, superscript_plugin):
        parser.use(plugin)
    parser.use(footnote_plugin, move_to_end=False, always_match_refs=True)
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False)
    return parser.use(attrs_plugin, spans=True)


def tree(parser: MarkdownIt, source: str) -> list[Any]:
    found: list[Any] = []
    pending: list[Token] = parser.parse(source)[::-1]
    while pending:
        token = pending.pop()
        if token.type == "inline":
            pending += reversed(token.children or ())
        elif token.type not in ("text", "text_special", "softbreak"):
            kept = "" if token.nesting or token.type in ("image", "html_block") else token.content
            attributes = {name: value for name, value in token.attrs.items() if name not in ("title", "alt")}
            found.append((token.type, token.nesting, kept, attributes, token.meta.get("label")))
    return found


def elements(source: str) -> list[str]:
    page = markdown_to_html_with_extensions(
        source, Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES, ["table", "strikethrough", "tasklist"]
    )
    return re.findall(r"<[^>]*>", re.sub(r'(?:alt|title)="[^"]*"', "", page))


def check(parser: MarkdownIt, source: str, translate: Callable[[DocumentText], str]) -> None:
    document = open_document("a.md", source.encode())
    assert unchanged(document).decode() == source
    written = translated(document, translate).decode()
    assert tree(parser, written) == tree(parser, source), f"{source}\n{written}"
    assert elements(written) == elements(source), f"{source}\n{written}"


def check_generated(numbers: range) -> None:
    parser = reader()
    for number in numbers:
        chance = random.Random(number)
        check(parser, generated(chance), functools.partial(noisy, chance))


def test_other_parsers_see_the_same_structure() -> None:
    check_generated(range(200))


@pytest.mark.full
@pytest.mark.timeout(600)
def test_other_parsers_see_the_same_structure_of_many() -> None:
    check_generated(range(200, 10_000))


def test_the_structure_of_our_own_documents_stays() -> None:
    parser = reader()
    for path in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))):
        check(parser, path.read_text("utf-8"), capitals)
