"""XML as HTML and back, so that the code for HTML translates it too; and elements that are not to be translated.

Each tag becomes a numbered one of HTML, a pair of inline tags, a block, or a mark without text, from which the original
comes back. So HTML's names mean nothing here, and an empty element, `<x/>`, stays within its sentence.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from html import escape
from html.entities import html5

from service.domain.checkpoint import paced
from service.text.markup.lexer import TokenKind, tokens

_TOKEN = re.compile(
    r"""(?P<text>(?:[^<]++|<(?![^\W\d]|[:/!?]))++)
    |(?P<cdata><!\[CDATA\[(?P<data>.*?)\]\]>)
    |(?P<other><!--.*?-->|<\?.*?\?>|<!DOCTYPE(?:[^<>\[]|\[[^\]]*+\])*+>)
    |<(?P<close>/?)(?P<name>(?!\d)[\w:][\w:.-]*+)
      (?:\s++[^\s<>=/"']++(?:\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'|[^\s<>"'`]++))?+)*+\s*+(?P<empty>/?)>""",
    re.DOTALL | re.VERBOSE,
)
_REFERENCE = re.compile(r"&(?P<name>[\w:.-]++|\#[0-9]++|\#x[0-9A-Fa-f]++);|&", re.VERBOSE)
_OURS = re.compile(
    r"""</?(?:x|div\ id=|hr\ id=|img\ id=)(?P<tag>[0-9]++)(?:\ translate=no)?+>
    |<!--(?P<other>[0-9]++)-->
    |(?P<space>&nbsp;)""",
    re.VERBOSE,
)
# Elements of HTML that have no end tag, or may leave it out: https://html.spec.whatwg.org/#void-elements. XML may have
# some as its own. What is before and after the first ones is no sentence.
_BREAKS = frozenset(("br", "dd", "dt", "hr", "li", "option", "p", "td", "th", "tr"))
_OTHERS = ("area", "base", "col", "embed", "img", "input", "link", "meta", "param", "source", "track", "wbr")
_UNCLOSED = _BREAKS | frozenset(_OTHERS)
_END = re.compile(r"</([\w:.-]++)")
_EXCERPT = 40  # characters of the text where it is not XML


class NotXml(ValueError):
    """A text is not well-formed XML; one clause with the reason."""


@dataclass(frozen=True, slots=True)
class TagRules:
    """Names of elements that are not translated, that always end a sentence, and that never do.

    With `finds_structure`, others end one unless there is text beside them. A `<br/>` ends one anyway.
    """

    ignored: Collection[str] = ()
    splitting: Collection[str] = ()
    joining: Collection[str] = ()
    finds_structure: bool = True


@dataclass(frozen=True, slots=True)
class XmlAsHtml:
    """A text of XML in the form of HTML."""

    html: str
    _openings: list[str] = field(repr=False)
    _closings: list[str] = field(repr=False)

    def restored(self, html: str) -> str:
        def original(match: re.Match[str]) -> str:
            if match["space"]:
                return "&#160;"  # XML has no &nbsp;
            number = int(match["tag"] or match["other"])
            return (self._closings if match[0].startswith("</") else self._openings)[number]

        return _OURS.sub(original, html)


@dataclass(slots=True)
class _Node:
    """One part of the text between tags, or an element."""

    kind: str
    opening: str = ""
    closing: str = ""
    name: str = ""
    children: list["_Node"] = field(default_factory=list)

    @property
    def has_text(self) -> bool:
        return any(child.kind in ("text", "cdata") and child.opening.strip() for child in self.children)


def as_html(xml: str, rules: TagRules) -> XmlAsHtml:
    """Return a document, or a part of one, as HTML.

    Passes checkpoints. CDATA becomes text; `&` without a reference and `<` without a tag are text. As in HTML, `<br>`
    needs no end tag, and attributes no quotes and values.
    """
    root = _tree(xml)
    output: list[str] = []
    openings: list[str] = []
    closings: list[str] = []

    def number(opening: str, closing: str = "") -> int:
        openings.append(opening)
        closings.append(closing)
        return len(openings) - 1

    def text(raw: str) -> Iterator[str]:
        done = 0
        for match in _REFERENCE.finditer(raw):
            yield escape(raw[done : match.start()], quote=False)
            name = match["name"] or ""
            if not name:
                yield "&amp;"
            elif name.startswith("#") or f"{name};" in html5:
                yield match[0]
            else:
                yield f"<img id={number(match[0])}>"  # an entity of its DTD
            done = match.end()
        yield escape(raw[done:], quote=False)

    # Not recursive: elements may be nested as deeply as the text is long. A string is written as it is.
    pending: list[tuple[_Node, bool, bool] | str] = [(root, False, False)]
    for each in paced(_drained(pending)):
        if isinstance(each, str):
            output.append(each)
            continue
        node, is_block, is_kept = each
        if node.kind == "text":
            output += text(node.opening)
        elif node.kind == "cdata":
            output.append(escape(node.opening, quote=False))
        elif node.kind == "other":
            output.append(f"<!--{number(node.opening)}-->")
        elif node is not root and not node.children:
            output.append(f"<{'hr' if is_block else 'img'} id={number(node.opening + node.closing)}>")
        else:
            is_ignored = node.name in rules.ignored
            if node is not root:
                name, end = ("div id=", "div id=") if is_block else ("x", "x")
                place = number(node.opening, node.closing)
                output.append(f"<{name}{place}{' translate=no' * is_ignored}>")
                pending.append(f"</{end}{place}>")
            is_kept |= is_ignored
            splits = rules.finds_structure and not node.has_text
            pending += [
                (child, not is_kept and _is_block(child, rules, splits=splits), is_kept)
                for child in reversed(node.children)
            ]
    return XmlAsHtml("".join(output), openings, closings)


def with_untranslated(html: str, names: Collection[str]) -> tuple[str, str]:
    """Return HTML with a mark on elements not to be translated, of any case, and the mark. Passes checkpoints."""
    number = 0
    while f"data-kept-{number}" in html:
        number += 1
    added = f' translate="no" data-kept-{number}'
    untranslated = {name.lower() for name in names}
    output: list[str] = []
    for token in paced(tokens(html)):
        raw = html[token.start : token.end]
        if token.kind is TokenKind.START and token.name in untranslated:
            place = 1 + len(token.name)
            raw = raw[:place] + added + raw[place:]
        output.append(raw)
    return "".join(output), added


def _tree(xml: str) -> _Node:
    root = _Node("element")
    path = [root]

    closed: frozenset[str] | None = None  # names of end tags, which few texts need to know
    for match in paced(_matches(xml)):
        parent = path[-1]
        if match["text"]:
            parent.children.append(_Node("text", match[0]))
        elif match["cdata"]:
            parent.children.append(_Node("cdata", match["data"]))
        elif match["other"]:
            parent.children.append(_Node("other", match[0]))
        elif match["close"]:
            if len(path) == 1 or parent.name != match["name"] or match["empty"]:
                raise NotXml(f"{match[0][:_EXCERPT]!r} closes no open element")
            parent.closing = match[0]
            path.pop()
        else:
            node = _Node("element", match[0], name=match["name"])
            parent.children.append(node)
            is_empty = bool(match["empty"])
            if not is_empty and (match["name"].lower() in _UNCLOSED or match[0].endswith("/>")):  # <br>, <x id=1/>
                closed = frozenset(_END.findall(xml)) if closed is None else closed
                is_empty = match["name"] not in closed
            if not is_empty:
                path.append(node)
    if len(path) > 1:
        raise NotXml(f"{path[-1].opening[:_EXCERPT]!r} has no end tag")
    return root


def _matches(xml: str) -> Iterator[re.Match[str]]:
    position = 0
    while position < len(xml):
        match = _TOKEN.match(xml, position)
        if match is None:
            raise NotXml(f"{xml[position : position + _EXCERPT]!r} at character {position} is not markup")
        yield match
        position = match.end()


def _drained(pending: "list[tuple[_Node, bool, bool] | str]") -> "Iterator[tuple[_Node, bool, bool] | str]":
    while pending:
        yield pending.pop()


def _is_block(node: _Node, rules: TagRules, *, splits: bool) -> bool:
    if node.kind != "element" or node.name in rules.joining:
        return False
    return splits or node.name in rules.splitting or (node.name.lower() in _BREAKS and not node.children)
