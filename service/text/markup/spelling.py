"""How a text of HTML is written where there are several ways: with references or without."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from service.text.markup.parts import decoded

_NO_BREAK = re.compile("&nbsp;?|&#0*160;|&#[xX]0*[aA]0;|\u00a0")
_LESS_THAN = re.compile(r"<(?![\s=])")  # followed by these, it can't begin a tag


class Spelling(NamedTuple):
    """Whether the three signs of markup are written as themselves in text, and what a no-break space is written as."""

    has_ampersands: bool = False
    has_less_than: bool = False
    has_greater_than: bool = False
    no_break: str = "&nbsp;"

    def written(self, text: str) -> str:
        """Return a text as HTML from which a browser reads just that text."""
        if "&" in text and not (self.has_ampersands and decoded(text) == text):
            text = text.replace("&", "&amp;")
        if "<" in text:
            text = _LESS_THAN.sub("&lt;", text) if self.has_less_than else text.replace("<", "&lt;")
        if ">" in text and not self.has_greater_than:
            text = text.replace(">", "&gt;")
        return text.replace("\u00a0", self.no_break)


def spelling(texts: Iterable[str]) -> Spelling:
    """Return how some texts, given as HTML, are written."""
    found = list(texts)
    no_break = next((match[0] for raw in found if (match := _NO_BREAK.search(raw))), "&nbsp;")
    return Spelling(
        _is_bare(found, "&", "&amp") and any("&" in decoded(raw) for raw in found if "&" in raw),
        _is_bare(found, "<", "&lt"),
        _is_bare(found, ">", "&gt"),
        no_break,
    )


def _is_bare(texts: Iterable[str], sign: str, reference: str) -> bool:
    return any(sign in raw for raw in texts) and not any(reference in raw for raw in texts)
