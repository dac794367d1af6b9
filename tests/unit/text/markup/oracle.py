"""A browser's view of HTML, by html5lib."""

from html import unescape
from typing import Any

import html5lib

from service.text.markup.lexer import TokenKind, tokens


def tree(html: str) -> list[tuple[int, str, tuple[tuple[str, str], ...]]]:
    """Return depth, name and attributes of each element, in document order."""
    found = []
    pending: list[tuple[int, Any]] = [(0, html5lib.parse(html, namespaceHTMLElements=False))]
    while pending:
        depth, element = pending.pop()
        if not isinstance(element.tag, str):  # a comment
            continue
        found.append((depth, element.tag, tuple(sorted(element.attrib.items()))))
        pending += [(depth + 1, child) for child in reversed(list(element))]
    return found


def visible_text(html: str) -> str:
    """Return the text of all elements, white space collapsed."""
    texts = []
    pending: list[Any] = [html5lib.parse(html, namespaceHTMLElements=False)]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            texts.append(item)
            continue
        if isinstance(item.tag, str):
            pending += [part for child in reversed(list(item)) for part in (child.tail or "", child)]
            pending.append(item.text or "")
    return " ".join("".join(texts).split())


def plain_text(html: str, start: int = 0, end: int | None = None) -> str:
    """Return the decoded text between tags, and expressions of templates, without scripts, comments and the like.

    With `start` and `end`, only that of this part.
    """
    end = len(html) if end is None else end
    found = []
    for token in tokens(html):
        raw = html[max(token.start, start) : min(token.end, end)]
        if token.kind is TokenKind.TEXT:
            found.append(unescape(raw).replace("\0", ""))
        elif token.kind is TokenKind.TEMPLATE and token.name != "comment":
            found.append(raw)
    return "".join(found)
