"""Random HTML, well-formed and broken, and random translations of it."""

import random
import re
from collections.abc import Sequence

from service.domain.translation import AlignedSpan
from service.text.markup import Block, BlockTranslation
from service.text.spans import Span

_WORDS = (
    *("one", "Two", "42", "Bob", "a<b", "&amp;", "&lt;b&gt;", "&eacute;", "AT&T", "&foo;", "&#x110000;", "don't", "x."),
    *("(y)", "漢字", "1,000", "&nbsp;", "&copy", "e\u0301", "-", "<", "< b", "!", "&#99999999999;", "&#0;", "\0", "&"),
)
_TEMPLATES = (
    *("{{ x }}", "{{ a && b }}", "{% if a < b %}", "{% end %}", "<%= x %>", "<?= $a->b ?>", "${a < b}", "{{#if x}}"),
    *("{{/if}}", "[[ x ]]", "{# c #}", "{{ <b> }}", "<0>one</0>", "<1>", "</2>", "[one](x)", "{a && b}"),
    *(
        *("H<sub>2</sub>O", "m<sup>2</sup>", "one<sup>1</sup>", "two<sup><a href=x>[1]</a></sup>"),
        *("<b>O</b>ne", "on<wbr>e"),
    ),
)
_SPACES = ("", " ", " ", "\n  ", "\t")
_ATTRIBUTES = (
    *("", "", "", "", ' class="x"', " ID=a", ' href="x?a=1&amp;b=2"', " title='a>b'", ' translate="no"', " data-x"),
    *(' class="a notranslate"', ' alt="&quot;"', "\n", "/", ' a="b"c=d', " x=y/", " =x", ' a = "1" A=2'),
)
_INLINE = (
    *("a", "b", "i", "em", "span", "code", "STRONG", "kbd", "font", "u", "x-tag", "label", "nobr", "sub", "ruby"),
    *("a", "b", "i", "span"),
)
_BLOCK = (
    *("p", "div", "ul", "li", "h1", "td", "tr", "table", "tbody", "button", "pre", "blockquote", "section", "form"),
    *(
        *("select", "option", "dl", "dd", "title", "template", "caption", "p", "div", "center", "rt", "body"),
        *("head", "html"),
    ),
)
_MARKS = (
    *(
        *("<br>", "<br/>", "<img src='a>b'>", "<hr/>", "<!-- c -->", "<input value=x>", "<wbr>"),
        *("<?pi x?>", "<!DOCTYPE html>"),
    ),
    *("<svg><path d='M 0'/></svg>", "<!-- a -- b --!>", "<script>if (a<b) '</b>'</script>", "<style>b > i {}</style>"),
    *("<![CDATA[x]]>", "<textarea> <b> </textarea>", "<a id=x></a>", "<object><p></object>", "<svg/>", "<!-->", "</>"),
    *(
        "<noscript><b>n</b></noscript>",
        "<!--[if mso]><b><![endif]-->",
        "<script><!--<script></script>--></script>",
        "</ x>",
    ),
)
_TRANSLATED = (
    *("eins", "Zwei", "42", "Bob", "a<b", "&", "&amp;", "<i>", "é", "und", ".", ",", "漢字", "one", "a\u00a0b", "»"),
    *("1,000", "don't", "Two", "(y)"),
)


def random_document(chance: random.Random) -> str:
    """Return up to some 40 tags; half of the documents are well-formed."""
    kind = chance.randrange(4)
    if kind < 2:
        return _content(chance, chance.randint(1, 5), is_inline=kind == 0)
    pieces = []
    for _ in range(chance.randint(0, 25)):
        name = chance.choice(_INLINE + _BLOCK if chance.random() < 0.6 else _INLINE)
        choices = (_text(chance), f"<{name}{chance.choice(_ATTRIBUTES)}>", f"</{name}>", chance.choice(_MARKS))
        pieces.append(chance.choices(choices, (4, 3, 3, 1))[0])
    if kind == 3:
        pieces.insert(chance.randint(0, len(pieces)), _content(chance, 3, is_inline=False))
    return "".join(pieces)


def random_inline(chance: random.Random) -> str:
    """Return well-formed content of a paragraph: text, inline elements and comments."""
    return _content(chance, chance.randint(1, 4), is_inline=True, marks=("<!-- c -->", "<wbr>", "<img src=x>"))


def _text(chance: random.Random) -> str:
    words = chance.choices(_WORDS, k=chance.randint(0, 4))
    return "".join(chance.choice(_SPACES) + word + chance.choice(_SPACES) for word in words)


def _content(chance: random.Random, depth: int, is_inline: bool, marks: Sequence[str] = _MARKS) -> str:
    pieces = []
    for _ in range(chance.randint(0, 4)):
        what = chance.random()
        if what < 0.1 and marks is _MARKS:
            pieces.append(chance.choice(_TEMPLATES))
        elif what < 0.5 or depth == 0:
            pieces.append(_text(chance))
        elif what < 0.6:
            pieces.append(chance.choice(marks))
        else:
            is_block = not is_inline and chance.random() < 0.5
            name = chance.choice(_BLOCK if is_block else _INLINE)
            inner = _content(chance, depth - 1, is_inline=not is_block, marks=marks)
            pieces.append(f"<{name}{chance.choice(_ATTRIBUTES)}>{inner}</{name}>")
    return "".join(pieces)


def random_translation(chance: random.Random, block: Block) -> BlockTranslation:
    """Return any words, including some of the block's own, with no, a plausible or a senseless alignment.

    Protected text occurs anywhere and in any order; links give its place, with exceptions.
    """
    ends = [0, *(end for _, end in block.protected)]
    starts = [*(start for start, _ in block.protected), len(block.text)]
    own = " ".join(block.text[end:start] for end, start in zip(ends, starts, strict=True)).split()
    words: list[tuple[str, Span | None]] = [
        (word, None) for word in chance.choices((*_TRANSLATED, *own), k=chance.randint(1, 9))
    ]
    for kept in block.protected:
        words.insert(chance.randint(0, len(words)), (block.text[kept.start : kept.end], kept))
    gap = chance.choice((" ", " ", "", "  "))
    text, links = "", []
    for word, span in words:
        text += gap * bool(text)
        if span is not None and chance.random() < 0.9:
            links.append(AlignedSpan(*span, len(text), len(text) + len(word)))
        text += word
    if not text.strip():
        text = "x"
    return BlockTranslation(text, (*_alignment(chance, block.text, text), *links))


def _alignment(chance: random.Random, source: str, target: str) -> tuple[AlignedSpan, ...]:
    kind = chance.randrange(4)
    if kind == 0:
        return ()
    if kind == 1:
        limit = max(len(source), len(target)) + 2
        return tuple(AlignedSpan(*(chance.randint(-2, limit) for _ in range(4))) for _ in range(chance.randint(0, 8)))
    source_words = [match.span() for match in re.finditer(r"\S+", source)]
    if kind == 2:
        chance.shuffle(source_words)
    target_words = [match.span() for match in re.finditer(r"\S+", target)]
    return tuple(AlignedSpan(*s, *t) for s, t in zip(source_words, target_words, strict=False))
