"""Expressions of template languages in HTML: code of the program that makes a page, which stays byte for byte.

The delimiters are those of Handlebars, Mustache, Vue, Angular, Jinja, Twig, Liquid, Go, Blade, Svelte, Smarty, ERB,
EJS, JSP, PHP, FreeMarker, Template Toolkit, Thymeleaf, JSF and JavaScript.
"""

import enum
import re
from typing import NamedTuple


class TemplateKind(enum.Enum):
    """The effect of an expression on the text around it."""

    OUTPUT = "output"  # it stands for a part of a sentence
    CONTROL = "control"  # a condition, a loop, an inclusion: the text before and after it are two
    COMMENT = "comment"


class Template(NamedTuple):
    """An expression: what it is, and where it ends."""

    kind: TemplateKind
    end: int


class _Delimiters(NamedTuple):
    opening: str
    closing: str
    kind: TemplateKind
    longest: int  # characters between them; more are no expression


_LONGEST = 1_000
_SHORT = 200
_ANY_LENGTH = 1 << 62  # what begins like that is never text
_DELIMITERS = (  # the longest opening first
    _Delimiters("{{!--", "--}}", TemplateKind.COMMENT, _ANY_LENGTH),
    _Delimiters("{{--", "--}}", TemplateKind.COMMENT, _ANY_LENGTH),
    _Delimiters("<%--", "--%>", TemplateKind.COMMENT, _ANY_LENGTH),
    _Delimiters("<?php", "?>", TemplateKind.OUTPUT, _ANY_LENGTH),
    _Delimiters("{{!", "}}", TemplateKind.COMMENT, _LONGEST),
    _Delimiters("{{{", "}}}", TemplateKind.OUTPUT, _LONGEST),
    _Delimiters("{!!", "!!}", TemplateKind.OUTPUT, _LONGEST),
    _Delimiters("<%#", "%>", TemplateKind.COMMENT, _ANY_LENGTH),
    _Delimiters("<%=", "%>", TemplateKind.OUTPUT, _ANY_LENGTH),
    _Delimiters("<%-", "%>", TemplateKind.OUTPUT, _ANY_LENGTH),
    _Delimiters("<?=", "?>", TemplateKind.OUTPUT, _ANY_LENGTH),
    _Delimiters("<%", "%>", TemplateKind.CONTROL, _ANY_LENGTH),
    _Delimiters("{{", "}}", TemplateKind.OUTPUT, _LONGEST),
    _Delimiters("{%", "%}", TemplateKind.CONTROL, _LONGEST),
    _Delimiters("{#", "#}", TemplateKind.COMMENT, _LONGEST),
    _Delimiters("[%", "%]", TemplateKind.OUTPUT, _LONGEST),
    _Delimiters("[[", "]]", TemplateKind.OUTPUT, _SHORT),
    _Delimiters("{$", "}", TemplateKind.OUTPUT, _SHORT),
    _Delimiters("${", "}", TemplateKind.OUTPUT, _SHORT),
    _Delimiters("#{", "}", TemplateKind.OUTPUT, _SHORT),
)
_BY_START = {
    start: tuple(each for each in _DELIMITERS if each.opening.startswith(start))
    for start in {each.opening[:2] for each in _DELIMITERS}
}
# What begins like an output but controls the text: {{#if x}}, {{/if}}, {{> part}}, {{ else }}, <?php } else { ?>.
_CONTROL = re.compile(
    r"""[-~\s]*+(?:
    [#/^>}]
    | (?:else|end|endif|endforeach|endwhile|endfor)[-~\s;]*+\Z
    | (?:if|else|elseif|elsif|for|foreach|while|switch|case|range|with|define|block|template|partial|include|require)
      (?=[\s(])
    )""",
    re.VERBOSE | re.IGNORECASE,
)
# Svelte's, Smarty's and FreeMarker's, which have words as delimiters.
_DIRECTIVE = re.compile(
    r"""\{(?:
      [#](?:if|each|await|key|snippet)\s[^{}]{1,200}+
      | :(?:else|then|catch)\b[^{}]{0,200}+
      | /(?:if|each|await|key|snippet|foreach|for|while|section|block|literal|strip|capture)
      | (?:if|elseif|foreach|for|while|section|include|block|assign)\s[^{}]{1,200}+
      | else | foreachelse | sectionelse
      )\}
    | </?[#@][A-Za-z](?:[^<>"]|"[^"<]{0,200}+"){0,200}+>""",
    re.VERBOSE,
)
_BRACES = re.compile(r"\{[^{}<\n]{3,200}+\}")  # {a && b}, {x => y}: code, if it has an operator
_OPERATOR = re.compile(r"&&|\|\||=>|[=!]==?")
_TAG_WITHIN = re.compile(r"<[A-Za-z/!?]")


class Templates:
    """The expressions in a text, asked for from its beginning to its end; linear time."""

    def __init__(self, html: str) -> None:
        self._html = html
        self._closings: dict[str, int] = {}  # where each closing delimiter was found last; behind the text: nowhere

    def at(self, start: int) -> Template | None:
        html = self._html
        first = html[start : start + 2]
        if (first[:1] == "{" or first in ("<#", "<@", "</")) and (match := _DIRECTIVE.match(html, start)):
            return Template(TemplateKind.CONTROL, match.end())
        for delimiters in _BY_START.get(first, ()):
            if found := self._delimited(start, delimiters):
                return found
        if first[:1] == "{" and (match := _BRACES.match(html, start)) and _OPERATOR.search(match[0]):
            return Template(TemplateKind.OUTPUT, match.end())
        return None

    def _delimited(self, start: int, delimiters: _Delimiters) -> Template | None:
        html = self._html
        opening, closing, kind, longest = delimiters
        if not html.startswith(opening, start):
            return None
        inner = start + len(opening)
        end = self._closing(closing, inner)
        if end >= len(html) and opening == "<?php":  # which may stay open at the end of a file
            return Template(TemplateKind.CONTROL, len(html))
        if end >= len(html) or end - inner > longest:
            return None
        if closing == "}}":
            end = self._balanced(inner, end)
        if kind is TemplateKind.OUTPUT and _controls(html[inner : min(end, inner + _LONGEST)], opening):
            kind = TemplateKind.CONTROL
        return Template(kind, end + len(closing))

    def _balanced(self, inner: int, end: int) -> int:
        """Return the end of an expression in braces that has braces itself, such as {{ {a: {b: 1}} }}."""
        found = end
        for _ in range(8):  # braces within it
            if found < 0:
                break
            if self._html.count("{", inner, found) <= self._html.count("}", inner, found):
                return found
            found = self._html.find("}}", found + 1, inner + _LONGEST)
        return end

    def _closing(self, closing: str, start: int) -> int:
        """Return where the next closing delimiter is; the length of the text if there is none."""
        found = self._closings.get(closing, -1)
        if found < start:
            found = self._html.find(closing, start)
            found = self._closings[closing] = len(self._html) if found < 0 else found
        return found


def has_tag(code: str) -> bool:
    """Return whether an expression has what a browser takes for a tag, so that it must not move."""
    return _TAG_WITHIN.search(code, 1) is not None


def _controls(code: str, opening: str) -> bool:
    if opening in ("${", "#{", "{$", "[[", "{!!", "<%=", "<?=", "<%-"):
        return False
    return _CONTROL.match(code) is not None or (opening == "<?php" and code.rstrip().endswith(("{", ":")))
