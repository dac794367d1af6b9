"""Roles of HTML's tokens: blocks, parts of a sentence, and tags that may move within their sentence."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from service.domain.checkpoint import checkpoint, paced
from service.text.markup.elements import (
    BLOCKS,
    OPAQUE_BLOCKS,
    OPAQUE_MARKS,
    PROTECTED,
    PROTECTED_CLASSES,
    READINGS,
    UNNESTABLE,
    VOID,
)
from service.text.markup.lexer import FOREIGN, Token, TokenKind, attributes
from service.text.markup.neighbours import separated
from service.text.markup.parts import Part, Role
from service.text.markup.templates import TemplateKind, has_tag

_EMPTY_LINE = re.compile(r"\r?\n(?:[ \t]*+\r?\n)++|\r?\n(?=[ \t]*+(?:[-*+•]|\d{1,3}[.)])[ \t])")
_MAY_BE_UNTRANSLATED = re.compile(
    "|".join(["translate", *sorted({name for _, name in PROTECTED_CLASSES})]), re.IGNORECASE
)
_TRANSLATED = re.compile(r"translate\s*=\s*[\"']?yes", re.IGNORECASE)
_ROLES_OF_TEMPLATES = {
    TemplateKind.OUTPUT.value: Role.KEPT,
    TemplateKind.CONTROL.value: Role.LINE_BREAK,
    TemplateKind.COMMENT.value: Role.MARK,
}


def parts(html: str, tokens: Sequence[Token]) -> list[Part]:
    """Assign each token a role; an element whose content is not translated becomes one part, tags included.

    Inline elements from which a browser would build another tree than is written (unclosed, stray or crossing tags, a
    link in a link) become boundaries, as do all elements around them: so text moves only where every tag has a partner,
    and the tree does not depend on the text. So do links after one that is still open, which a browser ends there,
    unless text comes first, and those that are all of a paragraph together (`neighbours`).
    """
    reading = _Reading(html, tokens)
    index = 0
    while index < len(tokens):
        if index % 64 == 0:
            checkpoint()
        index = reading.add_part(index)
    found = reading.parts()
    if not any(token.name in BLOCKS for token in tokens):
        found = _lines(html, found)
    return separated(html, list(paced(found)))


class _Reading:
    """The parts of a document so far; later tokens may make boundaries of open ones.

    `_resumed`: where untranslated regions go on, after a translated element, and end; `_lasting_links`: tags of links
    beyond their paragraph.
    """

    def __init__(self, html: str, tokens: Sequence[Token]) -> None:
        self._html, self._tokens = html, tokens
        self._partners = _partners(html, tokens)
        self._starts = {end: start for start, end in self._partners.items()}
        self._roles: list[Role] = []  # one for each part,
        self._spans: list[tuple[int, int]] = []  # with its first token and the one after it
        self._open: list[tuple[int, str]] = []  # parts that are start tags without end tags so far, and their names
        self._num_open: Counter[str] = Counter()  # by name
        self._resumed: list[tuple[int, int]] = []
        self._lasting_links: set[int] = set()

    def add_part(self, index: int) -> int:
        """Read the part that starts at a token; return the token after it."""
        token = self._tokens[index]
        role, following = self._region(index)
        is_unit = role is Role.KEPT or token.name in READINGS
        if is_unit and any(map(self._is_in_its_kind, self._tokens[index:following])):
            role = Role.BOUNDARY
        elif role is Role.OPEN and not self._is_in_its_kind(token):
            self._open.append((len(self._roles), token.name))
            self._num_open[token.name] += 1
        elif role is Role.CLOSE and self._open and self._open[-1][1] == token.name:
            self._open.pop()
            self._num_open[token.name] -= 1
        elif role in (Role.OPEN, Role.CLOSE):
            role = Role.BOUNDARY
        if role is Role.BOUNDARY:
            self._end_paragraph(index, following)
        self._roles.append(role)
        self._spans.append((index, following))
        return following

    def parts(self) -> Iterable[Part]:
        """Yield the parts, once all have been read."""
        self._forget_open()
        for role, (first, end) in zip(self._roles, self._spans, strict=True):
            yield Part(role, self._tokens[first].start, self._tokens[end - 1].end)

    def _region(self, index: int) -> tuple[Role, int]:
        while self._resumed and index >= self._resumed[-1][1]:
            self._resumed.pop()
        if self._resumed and index >= self._resumed[-1][0]:
            role, following = Role.BOUNDARY, self._resumed.pop()[1]
        else:
            role, following = _role(self._html, self._tokens, index, self._partners)
        translated = _translated_again(self._html, self._tokens, index, following, self._partners)
        if translated is None:
            return role, following
        end = self._partners[translated] + 1
        if end < following:
            self._resumed.append((end, following))
        return Role.BOUNDARY, translated

    def _is_in_its_kind(self, token: Token) -> bool:
        """Return whether a token starts an element within one of its name, where a browser would end that."""
        if token.kind is not TokenKind.START or token.name not in UNNESTABLE:
            return False
        return self._num_open[token.name] > 0 or (token.name == "a" and bool(self._lasting_links))

    def _end_paragraph(self, index: int, following: int) -> None:
        """Make boundaries of all that is open, and note the links in the boundary that last beyond it."""
        self._forget_open()
        for each in range(index, following):
            if self._tokens[each].name != "a":
                continue
            if self._tokens[each].kind is TokenKind.START and self._partners.get(each, len(self._tokens)) >= following:
                self._lasting_links.add(each)
            elif each in self._starts:
                self._lasting_links.discard(self._starts[each])

    def _forget_open(self) -> None:
        for part, name in self._open:
            self._roles[part] = Role.BOUNDARY
            if name == "a":
                self._lasting_links.add(self._spans[part][0])
        self._open.clear()
        self._num_open.clear()


def _lines(html: str, found: Iterable[Part]) -> Iterator[Part]:
    """Split parts at empty lines and before items of a list, for texts of programs: pages have elements instead."""
    for part in found:
        start = part.start
        for match in _EMPTY_LINE.finditer(html, part.start, part.end) if part.role is Role.TEXT else ():
            if start < match.start():
                yield Part(Role.TEXT, start, match.start())
            yield Part(Role.LINE_BREAK, *match.span())
            start = match.end()
        if start < part.end:
            yield part._replace(start=start)


def _role(html: str, tokens: Sequence[Token], index: int, partners: Mapping[int, int]) -> tuple[Role, int]:
    """Return the role of the part that starts at a token, and the index of the token after that part."""
    token, partner = tokens[index], partners.get(index)
    role = _role_of_token(token)
    if token.kind is TokenKind.TEMPLATE and has_tag(html[token.start : token.end]):
        return Role.BOUNDARY, index + 1
    if token.kind is TokenKind.START and token.name == "input" and _is_control(html[token.start : token.end]):
        return Role.LINE_BREAK, index + 1
    if token.kind is not TokenKind.START or token.name in VOID:
        return role, index + 1
    if token.name in READINGS:
        if partner is None:
            return _unclosed_reading(tokens, index)
        if _is_whole(html, tokens, index, partners):
            return Role.MARK, partner + 1
        return Role.BOUNDARY, index + 1
    if token.name == "rb" and partner is None:
        return Role.MARK, index + 1
    if token.name in FOREIGN and html.endswith("/>", token.start, token.end):
        return Role.MARK, index + 1
    if token.name in OPAQUE_MARKS and partner is not None:
        return Role.MARK, partner + 1
    is_opaque = token.name in OPAQUE_MARKS or token.name in OPAQUE_BLOCKS
    if not is_opaque and not _is_untranslated(html, token):
        return role, index + 1
    if role is Role.OPEN and not is_opaque and partner is not None and _is_whole(html, tokens, index, partners):
        return Role.KEPT, partner + 1
    return Role.BOUNDARY, _end_of_region(tokens, index, partner)


def _is_whole(html: str, tokens: Sequence[Token], start: int, partners: Mapping[int, int]) -> bool:
    """Return whether the content of an inline element may be in a sentence: all its tags must be paired."""
    names: list[str] = [tokens[start].name]
    unnestable = UNNESTABLE.intersection(names)  # those of `names` that are in it
    index = start + 1
    while index < partners[start]:
        token, partner = tokens[index], partners.get(index)
        role = _role_of_token(token)
        is_empty = token.name in FOREIGN and html.endswith("/>", token.start, token.end)
        if role is Role.OPEN and not is_empty and token.name in OPAQUE_MARKS:
            if partner is None or partner > partners[start]:
                return False
            index = partner
        elif role is Role.OPEN and not is_empty:
            if token.name in unnestable:
                return False
            names.append(token.name)
            unnestable |= UNNESTABLE.intersection((token.name,))
        elif role is Role.CLOSE:
            if names.pop() != token.name or not names:
                return False
            unnestable -= {token.name}
        elif role is Role.BOUNDARY or (role is Role.KEPT and has_tag(html[token.start : token.end])):
            return False
        index += 1
    return names == [tokens[start].name]


def _translated_again(
    html: str, tokens: Sequence[Token], start: int, end: int, partners: Mapping[int, int]
) -> int | None:
    """Return the first element that is to be translated within an untranslated part, if there is one."""
    if end - start < 3 or tokens[start].name in OPAQUE_MARKS | OPAQUE_BLOCKS:
        return None
    if not _TRANSLATED.search(html, tokens[start].end, tokens[end - 1].start):
        return None
    for index in range(start + 1, end):
        if tokens[index].kind is not TokenKind.START or partners.get(index, end) >= end:
            continue
        found = attributes(html[tokens[index].start : tokens[index].end]).get("translate", "no").strip().lower()
        if found in ("", "yes"):
            return index
    return None


def _is_control(tag: str) -> bool:
    """Return whether an input separates the texts on its sides, as a box or a button does."""
    return attributes(tag).get("type", "").strip().lower() in ("button", "checkbox", "radio", "reset", "submit")


def _unclosed_reading(tokens: Sequence[Token], start: int) -> tuple[Role, int]:
    """Return the role of a reading without an end tag, and the index of the token that ends it."""
    index = start + 1
    while index < len(tokens) and tokens[index].kind is TokenKind.TEXT:
        index += 1
    ends = index < len(tokens) and tokens[index].name in READINGS | {"rb", "ruby"}
    return (Role.MARK, index) if ends else (Role.BOUNDARY, start + 1)


def _role_of_token(token: Token) -> Role:
    match token.kind:
        case TokenKind.TEMPLATE:
            return _ROLES_OF_TEMPLATES[token.name]
        case TokenKind.TEXT:
            return Role.TEXT
        case TokenKind.OTHER:
            return Role.MARK
        case TokenKind.RAW:
            return Role.BOUNDARY
    if token.name in BLOCKS:
        return Role.BOUNDARY
    is_start = token.kind is TokenKind.START
    if token.name in VOID:
        if not is_start:
            return Role.BOUNDARY
        return Role.LINE_BREAK if token.name == "br" else Role.MARK
    return Role.OPEN if is_start else Role.CLOSE


def _partners(html: str, tokens: Sequence[Token]) -> dict[int, int]:
    """Map each start tag to its end tag, if any: the nearest one with its name that is not taken."""
    waiting: dict[str, list[int]] = {}
    partners: dict[int, int] = {}
    for index, token in paced(enumerate(tokens)):
        if token.kind is TokenKind.START:
            if token.name in FOREIGN and html.endswith("/>", token.start, token.end):
                continue
            waiting.setdefault(token.name, []).append(index)
        elif token.kind is TokenKind.END and (starts := waiting.get(token.name)):
            partners[starts.pop()] = index
    return partners


def _end_of_region(tokens: Sequence[Token], start: int, partner: int | None) -> int:
    """Return the index after an untranslated element; an unclosed one ends with its paragraph."""
    if partner is not None:
        return partner + 1
    if tokens[start].name in ("body", "html"):
        return len(tokens)
    for index in range(start + 1, len(tokens)):
        if tokens[index].kind in (TokenKind.START, TokenKind.END) and tokens[index].name in BLOCKS:
            return index
    return len(tokens)


def _is_untranslated(html: str, token: Token) -> bool:
    if token.name in PROTECTED:
        return True
    if not _MAY_BE_UNTRANSLATED.search(html, token.start, token.end):
        return False
    found = attributes(html[token.start : token.end])
    classes = found.get("class", "").split()
    return (
        found.get("translate", "").strip().lower() == "no"
        or "notranslate" in classes
        or any((token.name, each) in PROTECTED_CLASSES for each in classes)
    )
