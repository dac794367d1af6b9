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


def plain_text(html: str) -> str:
    """Return the decoded text between tags, without that of scripts and the like."""
    return "".join(unescape(html[t.start : t.end]).replace("\0", "") for t in tokens(html) if t.kind is TokenKind.TEXT)
