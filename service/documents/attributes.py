"""Attributes of HTML that a reader sees or hears, and those that name the language of a page."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from service.documents.document import Edit, has_words
from service.text.markup.lexer import Token, TokenKind, attribute_values, tokens

_OF_ANY = frozenset(
    {"aria-description", "aria-label", "aria-placeholder", "aria-roledescription", "aria-valuetext", "placeholder"}
)
_TITLE_IS_NO_TEXT = frozenset({"link", "script", "style"})
_OF_ELEMENTS = frozenset(
    {
        *(("img", "alt"), ("area", "alt"), ("input", "alt"), ("th", "abbr"), ("table", "summary")),
        *(("optgroup", "label"), ("option", "label"), ("track", "label")),
    }
)
_BUTTONS = frozenset({"button", "reset", "submit"})
_META = frozenset(
    {
        *("description", "keywords", "application-name", "apple-mobile-web-app-title", "title", "abstract"),
        *("og:title", "og:description", "og:site_name", "og:image:alt"),
        *("twitter:title", "twitter:description", "twitter:image:alt"),
    }
)
_BEFORE_VALUE = frozenset("\"'=\t\n\f\r ")
_QUOTES = {'"': "&quot;", "'": "&#39;"}


class Value(NamedTuple):
    """The value of an attribute: where in the HTML it is, without quotation marks, and what `raw` text is there."""

    start: int
    end: int
    raw: str
    quote: str  # empty if there are no quotation marks

    def written(self, translation: str) -> str:
        """Return what is to be in the place of the value, for a translation as HTML."""
        if translation == self.raw:
            return self.raw
        quote = self.quote or '"'
        value = translation.replace(quote, _QUOTES[quote])
        return value if self.quote else f"{quote}{value}{quote}"


def translatable_values(html: str, token: Token) -> Iterator[Value]:
    """Yield the values of a start tag's attributes that have something to translate."""
    values = {name: span for name, *span in attribute_values(html[token.start : token.end])}

    def text(name: str) -> str:
        start, end = values.get(name, (0, 0))
        return html[token.start + start : token.start + end].strip().lower()

    if text("translate") == "no" or "notranslate" in text("class").split():
        return
    for name, (start, end) in values.items():
        is_shown = (
            name in _OF_ANY
            or (name == "title" and token.name not in _TITLE_IS_NO_TEXT)
            or (token.name, name) in _OF_ELEMENTS
            or (token.name == "input" and name == "value" and text("type") in _BUTTONS)
            or (token.name == "meta" and name == "content" and {text("name"), text("property")} & _META)
        )
        raw = html[token.start + start : token.start + end]
        if is_shown and _is_text(raw):
            before = html[token.start + start - 1]
            yield Value(token.start + start, token.start + end, raw, before if before in _QUOTES else "")


def _is_text(raw: str) -> bool:
    """Return whether there is anything but code in a value."""
    found = list(tokens(raw))
    return all(token.kind in (TokenKind.TEXT, TokenKind.TEMPLATE) for token in found) and any(
        token.kind is TokenKind.TEXT and has_words(re.sub(r"&\w+;", "", raw[token.start : token.end]))
        for token in found
    )


def language_edits(html: str, found: Sequence[Token], target: str) -> Iterator[Edit]:
    """Yield the changes that make `target` the language that a page names for itself."""
    page = next((token for token in found if token.kind is TokenKind.START and token.name == "html"), None)
    if page is None or not target:
        return
    names: set[str] = set()
    for name, start, end in attribute_values(html[page.start : page.end]):
        if name in ("lang", "xml:lang") and name not in names:
            value = target if html[page.start + start - 1] in _BEFORE_VALUE else f'="{target}"'
            yield Edit(page.start + start, page.start + end, value)
        names.add(name)
    if not names & {"lang", "xml:lang"}:
        place = page.start + len("<html")
        yield Edit(place, place, f' lang="{target}"')
