"""Constructs within a line that CommonMark does not know: stretches that are kept, and pairs around a text.

The parser takes these stretches out of the text, and the writer escapes a translation that would be taken for one.
Repetitions are bounded, so that an opening sign without an end costs a bounded time.
"""

import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from service.documents.directives import TEXT_ROLES
from service.documents.inline import Kind

if TYPE_CHECKING:
    from markdown_it.rules_inline import StateInline

SPAN = "span"
"""Key of a token's position, from its start to before its end, in the text of its block."""
KIND = "kind"
"""Key of the kind of piece that a token of type `KEPT` is."""
KEPT = "kept"
"""Type of the tokens of stretches that stay as they are."""

_VALUE = r"""(?:"[^"\n]{0,200}"|'[^'\n]{0,200}'|[^\s"'{}]{1,200})"""
_ATTRIBUTE = rf"(?:[#.][\w:.-]{{1,80}}|[\w:@-]{{1,60}}={_VALUE}|-|=\w{{1,20}})"
ATTRIBUTES = (
    rf"\{{(?::[^{{}}\n]{{1,300}}|[ \t]*{_ATTRIBUTE}(?:[ \t]+{_ATTRIBUTE}){{0,20}}[ \t]*|[ \t]+[\w-]{{1,60}}[ \t]+)\}}"
)
"""A list of attributes, such as `{#id}`, `{: .lead }`, `{ .wide width="300" }` or `{=html}`."""
_TEMPLATE = r"\{(?:\{[<%#/!].{0,1000}?[>%}]\}\}?|%.{0,1000}?%\}|\#.{0,500}?\#\})"
_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,300}+\}){0,300}+\}){1,500}+\}"
JSX_TAG = rf"""</?[A-Za-z][\w.:-]{{0,80}}(?:\s+(?:\{{\.\.\.[^{{}}]{{1,200}}\}}|[\w:@.-]{{1,80}}
    (?:=(?:"[^"]{{0,500}}"|'[^']{{0,500}}'|{_BRACES}|[^\s"'{{}}<>=`]{{1,200}}))?)){{0,40}}\s*/?>"""
_SPACED_OUT = r"(?:(?<=\w)|(?<=[^\w\s])(?=\S(?!\w)))"  # before a single closing sign: it ends a word, or a phrase
_KEPT_ELEMENT = r"""<(code|kbd|samp|var|tt)(?:\s[^<>]{0,300})?>.{0,1000}?</\1\s*>
    |<([A-Za-z][\w-]{0,40})(?=[^<>]{0,300}\s(?:translate=["']?no\b|class=["'][^"'<>]{0,200}\bnotranslate\b))
    [^<>]{1,500}(?<!/)>.{0,1000}?</\2\s*>"""
_OPAQUE_ELEMENT = r"<(svg|math|video|audio|picture|iframe|object|canvas)(?:\s[^<>]{0,1000})?>.{0,5000}?</\1\s*>"
_AFTER_BRACKET = rf"""\](?:
    \((?:[^()\s{{}}]{{0,200}}\{{[{{%].{{0,300}}?[}}%]\}})+[^()\s]{{0,200}}(?:[ \t]+"[^"\n]{{0,300}}")?\)
    |{ATTRIBUTES})"""


class Rule(NamedTuple):
    """A construct; a pair, of kind `OPEN`, has the group `text` in its pattern. Tags are markdown-it's tokens."""

    kind: Kind | None
    pattern: str
    accepts: Callable[[str], bool] | None = None
    is_mdx: bool = False  # only where braces are JavaScript


@functools.cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of a table, compiled when a document needs it: all of them would delay a small one."""
    return re.compile(pattern, re.DOTALL | re.VERBOSE)


def is_math(raw: str) -> bool:
    """Return whether text between signs of mathematics is mathematics, and not prose, such as two sums of money."""
    if raw.startswith("\\\\"):
        raw = raw[1:-3] + raw[-2:]
    if raw.startswith("$$") or not raw.startswith(("$", "\\(", "\\[")):
        return True
    inner = raw[1:-1] if raw.startswith("$") else raw[2:-2]
    words = re.findall(r"(?<![\\\w])[^\W\d_]{2,}", re.sub(r"\{[^{}]*\}", "", inner))
    if raw.startswith("$"):
        return not (words and re.match(r"\s*[\d.,]", inner) and not re.search(r"[\\^={}]", inner))
    return not any(len(word) > 2 for word in words) or bool(re.search(r"\\[A-Za-z]|[\^=]|_\{", inner))


# By their first characters. Sources: GitHub's and GitLab's flavoured Markdown, Pandoc's manual, kramdown, Hugo, Jekyll,
# Docusaurus (MDX), VitePress, MkDocs Material (pymdownx), Obsidian.
RULES: Mapping[str, tuple[Rule, ...]] = {
    "$": (
        Rule(Kind.KEPT, r"(?<!\$)\$\$(?!\$)[^$]{1,2000}\$\$(?!\$)"),
        Rule(Kind.KEPT, r"(?<![\w$])\$`[^`\n]{1,500}`\$"),  # GitHub's and GitLab's
        Rule(Kind.KEPT, r"(?<![\w$])\$(?:[A-Za-z]|[^\s$`]{0,60}[\\^{][^\s$`]{0,60})\$(?=[A-Za-z])"),  # as in $n$th
        Rule(Kind.KEPT, r"(?<![\w$])\$(?![\s$])(?:[^$\\`]|\\.){1,500}?(?<![\s\\])\$(?![\w$])", is_math),
    ),
    "\\": (
        Rule(Kind.KEPT, r"\\\((?:[^\\]|\\(?!\))){1,500}?\\\)", is_math),
        Rule(Kind.KEPT, r"\\{2}\((?:[^\\]|\\(?!\\\))){1,500}?\\{2}\)", is_math),  # where CommonMark is read first
        Rule(Kind.KEPT, r"\\{2}\[(?:[^\\]|\\(?!\\\])){1,1000}?\\{2}\]", is_math),
        Rule(Kind.KEPT, r"\\\[(?:[^\\]|\\(?!\])){1,1000}?\\\]", is_math),
        Rule(Kind.KEPT, r"\\begin\{(\w{1,40}\*?)\}.{1,2000}?\\end\{\1\}"),
        Rule(Kind.KEPT, r"\\[A-Za-z]{2,30}(?:\[[^\[\]\n]{0,100}\])?(?:\{[^{}\n]{0,200}\}){1,3}"),
    ),
    "{": (
        Rule(Kind.OPEN, rf"\{{{TEXT_ROLES}\}}`(?P<text>[^`<>]{{1,300}}?)\s{{1,5}}<[^`<>]{{1,300}}>`"),
        Rule(Kind.KEPT, r"\{[\w:+.-]{1,60}\}(`{1,3})[^`\n]{1,300}\1"),  # a role of MyST
        Rule(Kind.MARK, ATTRIBUTES),
        Rule(Kind.ORDERED, _TEMPLATE),
        Rule(Kind.KEPT, r"\{\{\{?(?:(?!\{\{).){1,1000}?\}\}\}?"),
        Rule(Kind.MARK, r"\{/\*.{0,2000}?\*/\}"),
        Rule(Kind.MARK, r"\{~~.{1,500}?~~\}"),
        *(  # CriticMarkup's and GitLab's additions and deletions
            Rule(Kind.OPEN, rf"\{{{begin}(?P<text>(?!\s*{end})[^{{}}\n]{{1,500}}?){end}\}}")
            for begin, end in ((r"\+\+", r"\+\+"), ("--", "--"), ("==", "=="), (">>", "<<"), (r"\+", r"\+"), ("-", "-"))
        ),
        Rule(Kind.KEPT, r"\{[A-Za-z_$][\w$.\[\]()'?!:-]{0,100}\}"),
        Rule(Kind.KEPT, _BRACES, is_mdx=True),
    ),
    "[": (
        Rule(Kind.MARK, r"\A\[[^\]\s^[]?[ ]?\](?=[ \t]|\Z)", lambda raw: len(raw) == 3),  # a task's box
        Rule(Kind.MARK, r"\[\^[^\]\s]{1,100}\]"),
        Rule(Kind.KEPT, r"\[\[[^\[\]|\n]{1,200}\]\]"),
        Rule(Kind.OPEN, r"\[\[[^\[\]|\n]{1,200}\|(?P<text>[^\[\]|\n]{1,300})\]\]"),
        Rule(Kind.KEPT, r"\[\[[^\[\]\n]{1,300}\]\]"),
        Rule(Kind.MARK, r"\[(?:[^\[\]\n@]{0,100}[\s;-])?-?@[\w{][^\[\]\n]{0,200}\](?![(\[{:])"),
    ),
    "!": (Rule(Kind.MARK, r"!\[\[[^\[\]\n]{1,300}\]\]"),),
    "|": (Rule(Kind.MARK, r"(?:\A|(?<=\n))\|[ \t]+"),),  # a line of a verse (Pandoc)
    ":": (
        Rule(Kind.MARK, r"(?:\A|(?<=\n)):[ \t]+"),  # a caption of a table (Pandoc)
        Rule(Kind.OPEN, r"(?<![\w:]):[A-Za-z][\w-]{0,40}\[(?P<text>[^\[\]\n]{1,300})\](?:\{[^{}\n]{0,300}\})?"),
        Rule(Kind.KEPT, r"(?<![\w:]):[A-Za-z][\w-]{0,40}\{[^{}\n]{1,300}\}"),
        Rule(Kind.KEPT, r"(?<![\w:]):[\w-]{1,40}:`[^`\n]{1,300}`"),  # a role of reStructuredText
        Rule(Kind.KEPT, r"(?<![\w:]):[+\w-]{0,60}[A-Za-z+-][+\w-]{0,60}:(?!:)"),
    ),
    "=": (Rule(Kind.OPEN, r"(?<!=)==(?P<text>(?![\s=])(?:[^=\n]|=(?!=)){1,500}(?<!\s))==(?!=)"),),
    "~": (Rule(Kind.OPEN, rf"(?<!~)~(?P<text>(?![\s~])[^~\n]{{1,300}}(?<!\s)){_SPACED_OUT}~(?!~)"),),
    "^": (
        Rule(Kind.MARK, r"(?<=\s)\^[A-Za-z0-9-]{1,60}(?=[ ]*(?:\n|\Z))"),  # the name of a block (Obsidian)
        Rule(Kind.OPEN, r"(?<!\^)\^(?P<text>[^\s^\[]{1,100})\^(?!\^)"),
    ),
    "+": (
        Rule(Kind.KEPT, r"(?<![\w+])\+\+[a-z0-9\"-]{1,40}(?:\+[a-z0-9\"-]{1,40}){0,6}\+\+(?!\w)"),  # keys
        Rule(Kind.OPEN, r"(?<![\w+])\+\+(?P<text>(?![\s+])[^+\n]{1,300}(?<!\s))\+\+(?![\w+])"),
    ),
    "#": (Rule(Kind.KEPT, r"(?<![^\s(])\#\w[\w/-]{0,80}"),),
    "@": (Rule(Kind.KEPT, r"(?<![\w.@/])@\w[\w-]{0,60}(?:/[\w-]{1,60})?"),),
    "%": (Rule(Kind.MARK, r"(?<!\w)%%[^%\n]{0,500}%%"),),
    "<": (
        Rule(Kind.MARK, r"<%.{0,500}?%>"),
        Rule(Kind.KEPT, _KEPT_ELEMENT),
        Rule(Kind.MARK, _OPAQUE_ELEMENT),
        Rule(None, JSX_TAG, is_mdx=True),
    ),
    "h": (Rule(Kind.KEPT, r"(?<![A-Za-z0-9])https?://[^\s<>|\[\]`\"{}]{0,2000}[^\s<>|\[\]`\"{}?!.,:;*_~')]/?\)?"),),
    "w": (Rule(Kind.KEPT, r"(?<![A-Za-z0-9])www\.[^\s<>|\[\]`\"{}]{0,2000}[^\s<>|\[\]`\"{}?!.,:;*_~')]/?\)?"),),
}
STOPS = r"(?<![A-Za-z0-9])(?:https?://|www\.)|(?:\A|(?<=\n))\|[ \t]"
"""Where the parser has to stop in a text beside at punctuation."""


def found(source: str, position: int, end: int, *, is_mdx: bool) -> tuple[Kind | None, re.Match[str]] | None:
    for rule in RULES.get(source[position], ()):
        if rule.is_mdx and not is_mdx:
            continue
        match = compiled(rule.pattern).match(source, position, end)
        if match and (rule.accepts is None or rule.accepts(match[0])):
            return rule.kind, match
    return None


def ends(source: str, position: int = 0) -> int:
    """Return the end of the construct at a position of a text; 0 if there is none."""
    construct = found(source, position, len(source), is_mdx=True)
    return _end(construct[1]) if construct else 0


def _end(match: re.Match[str]) -> int:
    """Return the end of a construct: an address takes no bracket with it that was open before."""
    raw = match[0]
    return match.end() - (raw.endswith(")") and raw[0] in "hw" and raw.count("(") < raw.count(")"))


def inline_rule(state: "StateInline", silent: bool) -> bool:
    """Recognize the constructs of the table, and brackets that no address follows; a rule for markdown-it."""
    start, end = state.pos, state.posMax
    construct = found(state.src, start, end, is_mdx=state.env.get("mdx", False))
    if construct is None:
        return _bracket(state, silent)
    kind, match = construct
    if kind is Kind.OPEN:
        _pair(state, match.span("text"), match.end(), silent=silent)
        return True
    state.pos = _end(match)
    if not silent:
        token = state.push(KEPT if kind else "html_inline", "", 0)
        token.content = state.src[start : state.pos]
        token.meta = {SPAN: (start, state.pos), KIND: kind}
    return True


def _bracket(state: "StateInline", silent: bool) -> bool:
    """Recognize `[a text]{.class}`, `[a link]({{< ref "a page" >}})`, `![an image]({{ address }})`, `^[a note]`."""
    source, start = state.src, state.pos
    if not source.startswith(("[", "![", "^["), start):
        return False
    is_note, opening = source[start] == "^", start + (source[start] != "[")
    if not is_note and not _has_bracket(state):
        return False
    label_end = state.md.helpers.parseLinkLabel(state, opening)
    match = compiled(_AFTER_BRACKET).match(source, label_end, state.posMax) if label_end >= 0 else None
    if label_end < 0 or (match is None and not is_note):
        return False
    end = label_end + 1 if is_note or match is None else match.end()
    _pair(state, (opening + 1, label_end), end, silent=silent)
    return True


def _has_bracket(state: "StateInline") -> bool:
    """Return whether a text has such a bracket; looked for once, as there may be many brackets."""
    if -1 not in state.cache:
        state.cache[-1] = compiled(_AFTER_BRACKET).search(state.src) is not None
    return bool(state.cache[-1])


def _pair(state: "StateInline", text: tuple[int, int], end: int, *, silent: bool) -> None:
    start, maximum = state.pos, state.posMax
    if not silent:
        state.pos, state.posMax = text
        token = state.push("pair_open", "span", 1)
        token.markup = state.src[start : text[0]]
        token.meta = {SPAN: (start, text[0])}
        state.md.inline.tokenize(state)
        token = state.push("pair_close", "span", -1)
        token.markup = state.src[text[1] : end]
        token.meta = {SPAN: (text[1], end)}
    state.pos, state.posMax = end, maximum
