"""Markdown as it is written today; read again by markdown-it with its plugins, and by GitHub's cmark."""

import html
import random
import re
from typing import Any

import yaml
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

from service.documents import DocumentOptions
from tests.unit.documents.formats.format import Format, crlf, marked, same
from tests.unit.documents.formats.readers import decoded, told

_CONSTRUCTS = same(
    "# WHERE *IS* THE STATION? ##",
    'A **BOLD _WORDS_**, `code` AND [A LINK `x`](http://x.example/y "TITLE"), [ONE][ref]; 1 < 2 & SNAKE_CASE \\*.',
    "SEE <http://auto.example> OR ~~NOT~~.  \nAFTER A BREAK ![A PICTURE](i.png) HERE\\\nAND <b>HTML</b>.",
    "> - QUOTED TEXT[^1]\n>\n>   MORE\n\n1. FIRST\n   - SECOND",
    "| A | B \\| C |\n|---|:--|\n| ONE `x\\|y` | TWO |",
    "```py\nleft = 'alone'\n```\n\nA\n\n    left alone\n\nTITLE\n======",
    '<p align="c">A <b>BLOCK</b></p>\n\n<!-- left alone -->',
    "- [ ] A\n- [x] B\n  1) [-] C",
    "> [!warning]\n> A B\n\n> [!note]- A *B*\n> C",
    "A[^one]^[B]\n\n[^one]: A\n[^b-2]: B\n\n    C",
    "[//]: # (some words)\n[x]: y (SOME WORDS)",
    "A $l_1*l_2$, \\(l*e\\) AND $$l$$ OR $`l`$",
    "A\n$$\nl_1 \\\\\n$$\nB\n\n\\[\nl\n\\]\n\n\\begin{align}\nl\n\\end{align}",
    "FROM $5 TO $10, NOT 5 $ AND US$5",
    ":::one\nA\n:::\n\n::: {.one}\nB\n:::",
    ":::one[C *D*]{#l}\nE\n:::\n\n::: one F G\nH\n:::",
    '!!! one "A \'B\'"\n    C\n\n    D\n\n??? one\n\n    - E\n\n=== "F"\n\n    G',
    "/// one | A B\nC\n///",
    "# A {#one .l}\n\n{: .one }\nB\n{.one}\n\n[D]{.one} [E](y){:one}",
    '![C](x){ .one width="3" }',
    "````{admonition} A *B*\n:class: one\n\nC\n\n```{tip} D\n```\n````\n\nE",
    "```{figure} o.png\n:alt: A B\n:width: 5%\n\nC {ref}`D <one>` {ref}`one` {kbd}`ctrl`\n```\n\n% l\n\n(one)=\n# A",
    "```{versionadded} v1 A\n---\nclass: one\n---\nB\n```\n\n:::{math}\n:label: one\nl\n:::\n\n+++ one",
    "~~~{code} py\n:caption: one\n\nl = 1\n~~~\n\n:::{list-table} A\n* - B\n  - C\n:::\n\n- :::{note}\n  A\n  :::",
    ":::{glossary}\none\n  A *B*\n\n  C\n:::\n\n- ```{glossary}\n  one\n  two\n    D {term}`one`\n\n    - E\n  ```",
    "A \\$B \\$C [D \\$E](l) `$`",
    "[[one]] [[one|A B]] ![[one|3]] [[l|l|l]]",
    "{{% one %}}\nA\n{{% /one %}}\n\nB {{< one >}} C {{ one }}\n\n{% if x %}\nD\n{% endif %}",
    "{% highlight one %}\n\n# one\n{% endhighlight %}\n\n{{< one\n  a=1\n>}}\n\nA",
    '[A]({{< ref "l e" >}}) ![B]({% link l %})',
    "import {a} from 'one'\n\nexport const one = {\n  l: 'l'\n}\n\n# A {one.l}\n\n{/* one */}",
    "import a from 'b'\n\nexport default function one() {\n  const a = 1\n\n  return a\n}\n\nB",
    "A \\\\(l_1*e\\\\) B\n\n\\\\[\nl\n\\\\]\n\n::: mermaid\nl --> e\n:::",
    "{/* l */}\n\nB {l ? 'e' : 'f'} {/* l */} <b.c d={{e: 'l'}}>C</b.c>",
    "A\nB\n: C\n: D\n\n  E\n\n*F*\n\n:   G",
    "*[one]: A B",
    "==A *B*== ~C D~ ++E F++ {++G++} {--H--}",
    "l~2~o, c<sub>6</sub>h<sub>12</sub> 10 m^2^ A",
    'WORD<sup><a href="l">1</a></sup>, WORD<sup>[2]</sup> A',
    ":one: AT 10:30:15 @one #one https://l.e/f_t++ ++ctrl+l++ [@one] A@B",
    '<kbd>l</kbd>+<kbd>e</kbd> A<br/>B<br />C <b translate="no">one</b> <!-- one --> <svg><l/></svg>',
    "A **B<x>** C </i> *<b>D* `e`</b> <u>F</u>",
    "- <p>A</p>\n\n> <p>B</p>",
    '|A|B \\| C|\n|-|-|\n|[[l\\|D]] `l\\|l`|E<br />F ![G](x "H")|',
    "| A\n| B\n\n: C",
    "A ^one\n\n%%one%%\n\n%%\none\n%%\n\n[toc]\n\n--8<-- 'one'",
    "&nbsp;A&nbsp;B",
    '[A](x "IT\'S \\"B\\"") ![C](y \'D\') ![E|300](z)',
)
_INLINES = (
    *("one word ", "*two* ", "**three four** ", "`five` ", "[six](y) ", "[seven **x** `e`](y 'z') ", "![nine ten](z) "),
    *('![pic](z "A title") ', "<b>eleven</b> ", "<http://x.y> ", "_thirteen_, ", "\\* ", "&lt; ", "~~gone~~ ", "[^1] "),
    *("<br> ", "<br/> ", "a_b_c ", "***both*** ", "*a **b** c* ", "<!-- d --> ", "a $x_1*y$ ", "$5 and ", "\\(a+b\\) "),
    *("==marked== ", "H~2~O ", "x^2^ ", "[[Page]] ", ":smile: ", "[label text][ref] ", "[Ref][] ", "[ref] ", "![Ref] "),
    *(
        *("[span words]{.cls} ", "[link](u){.a #b} ", "`c`{.py} ", "[@cite] "),
        *("<kbd>Ctrl</kbd>+<kbd>S</kbd> ", "{{ var }} "),
    ),
    *("https://example.org/a_b ", "^[inline note] ", "\\\n", "two\nlines ", "spaces  \nbreak ", "@user ", "#123 "),
    *("(paren) ", '"quoted" ', "it's ", "end. ", "New sentence! "),
)
_BLOCKS = (
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


def _block(chance: random.Random) -> str:
    """Return a block with inline constructs."""
    block = chance.choice(_BLOCKS)
    is_one_line = block not in ("{}", "{}\n===", "{}\n---")
    return block.format(*(_words(chance, is_one_line) for _ in range(3)))


def _words(chance: random.Random, is_one_line: bool) -> str:
    text = "".join(chance.choices(_INLINES, k=chance.randint(1, 5))).strip()
    if re.match("<(?:br|!)", text):  # would start a block of HTML
        text = f"one {text}"
    return (re.sub(r"(?:\\|  )?\n", " ", text) if is_one_line else text).rstrip("\\ ")


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"alerts": True}).enable(["table", "strikethrough"])
    for plugin in (deflist_plugin, amsmath_plugin, attrs_block_plugin, tasklists_plugin, admon_plugin):
        parser.use(plugin)
    for plugin in (sub_plugin, superscript_plugin):
        parser.use(plugin)
    parser.use(footnote_plugin, move_to_end=False, always_match_refs=True)
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False)
    return parser.use(attrs_plugin, spans=True)


_PARSER = _parser()
_FRONT_MATTER = re.compile(r"\A---(\r?\n.*?)\n---\r?\n", re.DOTALL)


def of_markdown(data: bytes) -> Any:
    """Return what both readers find, and one of YAML, without texts."""
    source = decoded(data)
    front = _FRONT_MATTER.match(source)
    keys = list(yaml.safe_load(front[1])) if front else []
    source = source[front.end() :] if front else source
    found: list[Any] = []
    pending: list[Token] = _PARSER.parse(source)[::-1]
    while pending:
        token = pending.pop()
        if token.type == "inline":
            pending += reversed(token.children or ())
        elif token.type not in ("text", "text_special", "softbreak"):
            kept: str = "" if token.nesting or token.type in ("image", "html_block") else token.content
            is_text = token.type == "code_block" or token.info.startswith("{")  # that of a tab, or of a directive
            kept = told(kept) if is_text else kept
            attributes = {name: value for name, value in token.attrs.items() if name not in ("title", "alt")}
            found.append((token.type, token.nesting, kept, attributes, token.meta.get("label")))
    page = markdown_to_html_with_extensions(
        source, Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES, ["table", "strikethrough", "tasklist"]
    )
    return [keys, found, re.findall(r"<[^>]*>", re.sub(r'(?:alt|title)="[^"]*"', "", page))]


def of_paragraphs(data: bytes) -> Any:
    """Return words and empty lines, but no labels: readers make different things of what has no end."""
    blocks = re.split(
        r"\n[ \t\r\n]*\n", re.sub(r"(?:\]\\?\[[^\[\]]*)+\]", "]", _FRONT_MATTER.sub("", decoded(data))).strip()
    )
    return [told(re.sub(r"[\W_]+", "", re.sub(r"&#?\w+;", _shown, block))) for block in blocks]


def _shown(reference: re.Match[str]) -> str:
    found = html.unescape(reference[0])
    return reference[0] if found.endswith(";") else found


def _document(body: str, language: str) -> bytes:
    title = "a title" if language == "en" else "A TITLE"
    return f"---\ntitle: {title} # c\nlayout: a page\n---\n\n{body}\n\n[ref]: http://r.x\n".encode()


MARKDOWN = Format(
    _document,
    _CONSTRUCTS,
    of_markdown,
    separator="\n\n",
    once=[each for each in _CONSTRUCTS if "[x]:" in each],
    variants=(crlf, marked),
    mixture=_block,
    options=DocumentOptions(target="de", front_matter=("title",)),
    outline_of_damaged=of_paragraphs,
)
