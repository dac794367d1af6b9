"""Lines that CommonMark takes for text: fences of containers, attributes, templates, mathematics, imports.

Each stays as it is, but for a title in it. Sources: see `spans.py`.
"""

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from service.documents.directives import TEXT_OPTIONS, Directive, kind_of
from service.documents.markdown.spans import ATTRIBUTES, JSX_TAG, compiled

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

FROM_END = "from end"
"""Key of how far the end of a token's text is from the end of its line."""
QUOTE = "quote"
"""Key of the sign that ends the text of a token, and can't be in it."""
INTERRUPTED = ["paragraph", "reference", "blockquote", "list", "footnote_def"]
"""The rules whose blocks end at such a line."""

_TEMPLATE_TAG = r"(?>\{%.{1,1000}?%\}|\{\{[<%#/!].{1,1000}?\}\}|\{\#.{1,500}?\#\}|\{/\*.{0,1000}?\*/\})"
# Whole lines, with the group `text` for a title.
_LINES = (
    r":{2,}[ \t]*(?:\{[^{}]{0,300}\}|[\w+-]{1,60})?(?:[ \t]*:{3,})?",
    r":{2,}[ \t]*[\w-]{1,60}\[(?P<text>[^\[\]]{1,500})\][ \t]*(?:\{[^{}]{0,300}\})?",
    r":{2,}[\w-]{1,60}\{[^{}]{0,300}\}",
    r":{3,}[ \t]*[\w-]{1,60}[ \t]+(?P<text>[^\s{:][^{}]{0,500}?)(?:[ \t]*\{[^{}]{0,300}\})?",
    r":{3,}[ \t]*[\w-]{1,60}[ \t]+\{[^{}]{0,300}\}",
    r"/{3,}(?:[ \t]*[\w-]{1,60}(?:[ \t]*\|[ \t]*(?P<text>\S.{0,500}))?)?",
    r"\*\[[^\[\]]{1,200}\]:[ \t]+(?P<text>\S.*)",
    rf"(?:{ATTRIBUTES}[ \t]*){{1,5}}",
    r"\{:.{1,300}\}",
    r"\{::?/?\w.{0,300}\}",
    rf"{_TEMPLATE_TAG}(?:[ \t]*{_TEMPLATE_TAG}){{0,20}}",
    r"\[TOC\]|\[\[_?TOC_?\]\]|@\[toc\]|\[toc\]|\[\[toc\]\]|\\(?:tableofcontents|newpage|pagebreak)",
    r"\^[A-Za-z0-9-]{1,60}|%%[^%]{0,500}%%|<<<[ ]\S.*|;?-{1,2}8<-{1,2}.*|\{!.{1,300}!\}|!INCLUDE[ ].*",
    r"\$\$(?:[^$]|\$(?!\$)){1,2000}\$\$(?:[ \t]*\([\w:.-]{1,60}\))?",
    r"\\(?:begin|end)\{.{1,200}",
    r"\([^()]{1,200}\)=",  # the label of what follows (MyST)
)
_MDX_LINES = (rf"(?:(?>{JSX_TAG})\s*+){{1,10}}", r"\{.{1,500}\}")
_ALERT = r"\[![\w|-]{1,60}\][+-]?(?:[ \t]*(?P<text>[^\s(\[].*))?"
# The first line of what is kept up to its last one, and the end of that.
_FENCES = (
    (r"\$\$(?!.*\$\$).*", r"\$\$(?:[ \t]*(?:\([\w:.-]{1,60}\)|\{[^{}]{0,200}\}))?"),
    (r"\\{1,2}\[", r"\\\]"),
    (r":{3,}[ \t]*(?:mermaid|math|code|plantuml)", r":{3,}"),
    (r"\\begin\{(?P<name>\w{1,40}\*?)\}(?!.*\\end).*", r"\\end\{NAME\}"),
    (r"\{%-?[ ]*(?P<name>highlight|raw|comment|mermaid|math|code|codeblock|verbatim)\b.*", r"\{%-?\s*endNAME\b.*"),
    (r"\{\{[<%][ ]*(?P<name>highlight|raw|code|mermaid|math|katex|chart|plantuml)\b.*", r"\{\{[<%]\s*/\s*NAME\b.*"),
    (r"\{::(?P<name>comment|nomarkdown)\b.*\}", r"\{:/(?:NAME)?\}"),
    (r"\{%(?!.*%\}).*", r"%\}"),
    (r"\{\{[<%](?!.*\}\}).*", r"[>%]\}\}"),
    (r"\{/\*(?!.*\*/).*", r"\*/\}"),
    (r"%%", r"%%"),
)
_MDX_FENCES = ((r"<[A-Z][\w.]{0,60}(?:[ \t][^<>]*)?", r">"), (r"\{[^}]*", r"\}"))
_MODULE = r"""import[ ](?:[\w*{].*[ ]from[ ])?["'].*|import[ ]\{
    |export[ ](?:default|const|let|var|function|async|class|\{|\*).*"""
_INDENTED = (
    r"(?:(?:!!!|\?\?\?\+?)[ \t]*|={3}[!+]{0,2}[ \t]+)(?P<type>[\w-]+(?:[ \t]+[\w-]+){0,5})?[ \t]*(?:\"(?P<text>.*)\")?"
    r"(?:[ \t]*\{[^{}]{0,200}\})?"
)
_MYST_LINES = (r"%(?:[ \t].*)?", r"\+{3}(?:[ \t].*)?")
_DIRECTIVE = r"(?P<fence>`{3,}|~{3,}|:{3,})[ \t]*\{(?P<name>[A-Za-z][\w:.+-]{0,60})\}(?:[ \t]+(?P<text>\S[^`]*))?"
_OPTION = r":(?P<name>[\w-]{1,60}):(?:[ \t]+(?P<text>\S.*))?"
_DEFINITION = r":[ \t]+\S.*"
_MAX_TERMS = 4
_FIRST = frozenset(":/*{[@^%<;-!$\\?=ie`~+(")
_MAX_KINDS = 100  # of endings that a document lacks


class _Found(NamedTuple):
    """A block of kept lines: the line after it, and the match of its first one."""

    following: int
    match: re.Match[str]
    indent: int = 0  # of the lines after it that it contains


def opens(text: str, *, is_mdx: bool) -> bool:
    """Return whether a line of a translation would be taken for markup."""
    lines = (*_LINES, *(each for each, _ in _FENCES), _INDENTED, *(_MDX_LINES * is_mdx))
    return text[:1] in _FIRST and any(compiled(pattern).fullmatch(text) for pattern in lines)


def block_rule(state: "StateBlock", first: int, end: int, silent: bool) -> bool:
    """Recognize the lines of the tables; a rule for markdown-it."""
    if state.is_code_block(first) or state.src[state.bMarks[first] + state.tShift[first]] not in _FIRST:
        return False
    if match := compiled(_DIRECTIVE).fullmatch(_text(state, first)):
        return _directive(state, match, first, end, silent=silent)
    block = _found(state, first, end)
    if block is None:
        return False
    if silent:
        return True
    token = state.push("kept_block", "", 1)  # which counts as nesting, whose depth is limited
    token.map = [first, block.following]
    token.content = block.match[0]
    groups = block.match.groupdict()
    if groups.get("text"):
        _push_text(state, first, block.match["text"], block.match.end("text"))
    if block.indent:
        _read(state, first + 1, end, block.indent)
    state.push("kept_block_close", "", -1)
    state.line = max(block.following, state.line if block.indent else 0)
    return True


def _directive(state: "StateBlock", match: re.Match[str], first: int, end: int, *, silent: bool) -> bool:
    """Read a directive of MyST, whose body is Markdown; one of another kind is code, as for other parsers."""
    fence, kind = match["fence"], kind_of(match["name"])
    following = _next(state, first, end, rf"\A{fence}+")
    is_code = kind in (Directive.KEPT, Directive.UNKNOWN, Directive.CELLS)
    if not following or (is_code and fence[0] != ":"):
        return False
    if silent:
        return True
    token = state.push("kept_block", "", 1)
    token.map = [first, following]
    if is_code:
        token.info = f"{{{match['name']}}}"
    else:
        text = match["text"] if kind is not Directive.PROSE else None
        if text and kind is Directive.VERSION:
            text = text.partition(" ")[2].strip()
        if text:
            _push_text(state, first, text, match.end())
        body = _after_options(state, first + 1, following - 1)
        if kind is Directive.GLOSSARY:
            _definitions(state, body, following - 1)
        else:
            _read(state, body, following - 1, state.blkIndent)
    state.push("kept_block_close", "", -1)
    state.line = following
    return True


def _read(state: "StateBlock", first: int, end: int, indent: int) -> None:
    outer = state.lineMax, state.parentType, state.blkIndent
    state.lineMax, state.parentType, state.blkIndent = end, "directive", indent
    state.md.block.tokenize(state, first, end)
    state.lineMax, state.parentType, state.blkIndent = outer


def _definitions(state: "StateBlock", first: int, end: int) -> None:
    terms = [line for line in range(first, end) if state.sCount[line] <= state.blkIndent and not state.isEmpty(line)]
    for line, following in itertools.pairwise([*terms, end]):
        start = state.skipEmptyLines(line + 1)
        if start < following:
            _read(state, start, following, state.sCount[start])


def _after_options(state: "StateBlock", first: int, end: int) -> int:
    """Return the line after the options of a directive, whose texts are pushed."""
    line = first
    if line < end and _text(state, line) == "---":
        return _next(state, line, end, r"\A---") or line
    while line < end and (match := compiled(_OPTION).fullmatch(_text(state, line))):
        if match["text"] and match["name"] in TEXT_OPTIONS:
            _push_text(state, line, match["text"], match.end())
        line += 1
    return line


def terms_rule(state: "StateBlock", first: int, end: int, silent: bool) -> bool:
    """Recognize all but the last of several terms of one definition, each on its own line; a rule for markdown-it."""
    if silent or state.is_code_block(first):
        return False
    last = first + 1
    while (
        last < min(end, first + _MAX_TERMS)
        and not state.isEmpty(last)
        and not compiled(_DEFINITION).fullmatch(_text(state, last))
    ):
        last += 1
    if last - first < 2 or last >= end or not compiled(_DEFINITION).fullmatch(_text(state, last)):
        return False
    for line in range(first, last - 1):
        text = _text(state, line)
        _push_text(state, line, text, len(text))
    state.line = last - 1
    return True


def _found(state: "StateBlock", first: int, end: int) -> _Found | None:
    text, is_mdx = _text(state, first), state.env.get("mdx", False)
    if state.parentType == "blockquote" and (match := compiled(_ALERT).fullmatch(text)):
        return _Found(first + 1, match)
    if is_mdx and state.blkIndent == 0 and (match := compiled(_MODULE).match(text)):
        return _Found(_end_of_module(state, first, end), match)
    if (match := compiled(_INDENTED).fullmatch(text)) and (match["type"] or match["text"] is not None):
        return _Found(first + 1, match, state.sCount[first] + 4)
    for pattern, closing in (*_FENCES, *(_MDX_FENCES * is_mdx)):
        if match := compiled(pattern).fullmatch(text):
            name = re.escape(match.groupdict().get("name") or "")
            if following := _next(state, first, end, closing.replace("NAME", name)):
                return _Found(following, match)
    for pattern in (*_LINES, *(_MDX_LINES * is_mdx), *(_MYST_LINES * state.env.get("myst", False))):
        if match := compiled(pattern).fullmatch(text):
            return _Found(first + 1, match)
    return None


def _next(state: "StateBlock", first: int, end: int, closing: str) -> int:
    """Return the line after the one that ends with `closing`, or 0; cached, as many openings may lack an end."""
    unmatched: dict[str, int] = state.env.setdefault("vain", {})  # up to which line there is no such ending
    if first < unmatched.get(closing, 0) or len(unmatched) > _MAX_KINDS:
        return 0
    pattern = re.compile(rf"(?:{closing})[ \t]*\Z")
    last = first
    for last in _lines(state, first + 1, end):
        if pattern.search(_text(state, last)):
            return last + 1
    unmatched[closing] = last + 1
    return 0


def _end_of_module(state: "StateBlock", first: int, end: int) -> int:
    """Return the empty line that ends an import or an export: the first one outside of braces, if all are closed."""
    unmatched: dict[str, int] = state.env.setdefault("vain", {})
    depth = following = 0
    for line in _lines(state, first, end):
        if state.isEmpty(line):
            following = following or line
            if depth <= 0 or first < unmatched.get("", 0):
                return following if depth > 0 else line
        text = _text(state, line)
        depth += text.count("{") - text.count("}")
    if depth > 0 and following:
        unmatched[""] = end
        return following
    return end


def _lines(state: "StateBlock", first: int, end: int) -> Iterator[int]:
    for line in range(first, end):
        if state.sCount[line] < state.blkIndent and not state.isEmpty(line):
            return
        yield line


def _text(state: "StateBlock", line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip(" \t")


def _push_text(state: "StateBlock", line: int, text: str, end: int) -> None:
    """Push a text that ends `end` characters after the first one of its line that is no space."""
    token = state.push("inline", "", 0)
    token.content = text
    token.map = [line, line + 1]
    token.children = []
    begin = state.bMarks[line] + state.tShift[line]
    sign = state.src[begin + end : begin + end + 1]
    token.meta = {FROM_END: state.eMarks[line] - begin - end, QUOTE: sign if sign in ('"', "]") else ""}
