"""An HTML lexer whose tokens cover the input exactly; linear time, never fails.

This is the tokenizer of the HTML standard (https://html.spec.whatwg.org/multipage/parsing.html#tokenization) as far as
it decides where tokens end. In addition, expressions of template languages are tokens (`templates`), and pairs that
callers send as HTML are tags: `<0>` and `</0>` of react-i18next, and `[` and `](address)` of a Markdown link.

The standard library's `html.parser` won't do: in Python 3.11.7 it raises on "<![x", takes quadratic time for tags
without an end, and differs from browsers, and between patch releases, in what tags, comments and ends of scripts are.
"""

import enum
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from service.domain.checkpoint import paced
from service.text.markup.templates import Templates

_SPACE = r"[\t\n\f\r ]"
# Code in a tag may have the signs that would end it.
_CODE = r"(?:<\?[^?<]{0,400}+(?:\?(?!>)[^?<]{0,400}+){0,9}+\?>|<%[^%<]{0,400}+%>)"
_EXPRESSION = rf"(?:{_CODE}|\{{\{{[^{{}}<\"]{{0,400}}+\}}\}})"
_TAG = re.compile(
    rf"""<(/?)([A-Za-z][^\t\n\f\r />]*+)
    (?:{_SPACE}++|/|{_EXPRESSION}|[^\t\n\f\r />][^\t\n\f\r />=]*+
      (?:{_SPACE}*+={_SPACE}*+(?:"(?:[^"<]++|{_CODE}|<)*+(?:"|\Z)|'(?:[^'<]++|{_CODE}|<)*+(?:'|\Z)
        |(?:{_EXPRESSION})++|[^\t\n\f\r >"'][^\t\n\f\r >]*+|(?=>)))?+
    )*+>""",
    re.VERBOSE,
)
_NUMBERED = re.compile(r"<(/?)([0-9]{1,4})[ ]*+(/?)>")
_LINK = re.compile(r"!?\[(?=[^\[\]]{0,500}(\]\([^()\s<>]{1,1000}+(?:[ ]\"[^\"<>\n]{0,300}+\")?\)))")
_SIGN = re.compile(r"[<{]|!?\[|[$#]\{")  # with which something may begin that is no text
_ATTRIBUTE = re.compile(
    rf"""([^\t\n\f\r />][^\t\n\f\r />=]*+)
    (?:{_SPACE}*+={_SPACE}*+(?:"([^"]*+)"|'([^']*+)'|([^\t\n\f\r >"'][^\t\n\f\r >]*+)|(?=>)))?+""",
    re.VERBOSE,
)
_TAG_OPEN = re.compile(r"</?[A-Za-z]")
_COMMENT = re.compile(r"<!--(?:-?>|.*?(?:--!?>|\Z))", re.DOTALL)
_CDATA = re.compile(r"<!\[CDATA\[.*?(?:\]\]>|\Z)", re.DOTALL)
_BOGUS_COMMENT = re.compile(r"<(?:[!?]|/(?![A-Za-z]))[^>]*+(?:>|\Z)")
_SCRIPT_EVENT = re.compile(rf"<!(?=--)|-->|<(/?)script(?={_SPACE}|[/>])", re.IGNORECASE)

_LINK_NAME = "["

RAW_TEXT = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes", "textarea"})
"""Elements whose content is no markup and not to be translated."""

FOREIGN = frozenset({"svg", "math"})
"""Elements of other languages, in which "/>" closes an element."""


class TokenKind(enum.Enum):
    """The kind of a token."""

    TEXT = "text"
    START = "start"
    END = "end"
    OTHER = "other"  # a comment, a doctype, a processing instruction, CDATA
    TEMPLATE = "template"  # an expression of a template language; its name is that of its `TemplateKind`
    RAW = "raw"  # the content of an element in RAW_TEXT, or a tag or comment that is cut off by the end of the input


class Token(NamedTuple):
    """A stretch of HTML, from `start` to before `end` (code points); tags have a lower-case `name`."""

    kind: TokenKind
    start: int
    end: int
    name: str = ""


def tokens(html: str) -> Iterator[Token]:
    """Split `html` into tokens: each starts where the previous one ends."""
    templates = Templates(html)
    done = position = 0
    num_foreign = 0
    title_end = 0  # before it there are no tags
    link_end: Token | None = None
    for _ in paced(itertools.count()):  # most signs may begin nothing, so that there are no tokens to pace
        if (match := _SIGN.search(html, position)) is None:
            break
        position = match.start()
        if link_end is not None and link_end.start <= position:
            token: Token | None = link_end
            link_end = None
        elif match[0][-1] == "[" and title_end <= position and (link := _LINK.match(html, position)):
            token = Token(TokenKind.START, position, link.end(), _LINK_NAME)
            link_end = Token(TokenKind.END, *link.span(1), _LINK_NAME)
        else:
            token = _template(templates, position)
            if token is None and match.end() > position + 1:
                token = _template(templates, match.end() - 1)
            if token is None and match[0] == "<" and title_end <= position:
                token = _markup(html, position, num_foreign > 0)
            if token is not None and link_end is not None and token.end > link_end.start:
                link_end = None  # it is part of the code of that
        if token is None:  # just a sign
            position = match.end()
            continue
        if done < token.start:
            yield Token(TokenKind.TEXT, done, token.start)
        yield token
        done = position = token.end
        name, is_closed = token.name, html.endswith("/>", token.start, token.end)
        if name in FOREIGN:
            opens, closes = token.kind is TokenKind.START and not is_closed, token.kind is TokenKind.END
            num_foreign = max(0, num_foreign + opens - closes)
        if token.kind is not TokenKind.START or (num_foreign and (is_closed or name not in {"script", "style"})):
            continue
        if name == "plaintext":
            position = len(html)
        elif name == "title":
            title_end = _end_of_raw_text(html, done, name)
        elif name in RAW_TEXT:
            position = _end_of_script(html, done) if name == "script" else _end_of_raw_text(html, done, name)
        if done < position:
            yield Token(TokenKind.RAW, done, position)
            done = position
    if link_end is not None:
        if done < link_end.start:
            yield Token(TokenKind.TEXT, done, link_end.start)
        yield link_end
        done = link_end.end
    if done < len(html):
        yield Token(TokenKind.TEXT, done, len(html))


def attributes(tag: str) -> dict[str, str]:
    """Return a start tag's attributes by their lower-case names, values not decoded; the first of a name wins."""
    found: dict[str, str] = {}
    for name, start, end in attribute_values(tag):
        found.setdefault(name, tag[start:end])
    return found


def attribute_values(tag: str) -> Iterator[tuple[str, int, int]]:
    """Yield the name, in lower case, of each attribute of a start tag, and where in the tag its value is."""
    name = re.match(r"<[^\t\n\f\r />]*", tag)
    for match in _ATTRIBUTE.finditer(tag, name.end() if name else 0):
        group = match.lastindex or 1
        yield match[1].lower(), *(match.span(group) if group > 1 else (match.end(), match.end()))


def _template(templates: Templates, start: int) -> Token | None:
    found = templates.at(start)
    return found and Token(TokenKind.TEMPLATE, start, found.end, found.kind.value)


def _markup(html: str, start: int, is_foreign: bool) -> Token | None:
    if match := _NUMBERED.match(html, start):
        kind = TokenKind.OTHER if match[3] else TokenKind.END if match[1] else TokenKind.START
        return Token(kind, start, match.end(), match[2] * (not match[3]))
    if _TAG_OPEN.match(html, start):
        match = _TAG.match(html, start)
        if match is None:  # the input ends within the tag; HTML then drops the attribute
            return Token(TokenKind.RAW, start, len(html))
        return Token(TokenKind.END if match[1] else TokenKind.START, start, match.end(), match[2].lower())
    for pattern in (_COMMENT, _CDATA, _BOGUS_COMMENT) if is_foreign else (_COMMENT, _BOGUS_COMMENT):
        if match := pattern.match(html, start):
            return Token(TokenKind.OTHER if match[0].endswith(">") else TokenKind.RAW, start, match.end())
    return None


def _end_of_raw_text(html: str, start: int, name: str) -> int:
    match = re.compile(rf"</{name}(?={_SPACE}|[/>])", re.IGNORECASE).search(html, start)
    return match.start() if match else len(html)


def _end_of_script(html: str, start: int) -> int:
    """Return where a script ends; an end tag that the script itself writes in a comment does not count."""
    is_comment = is_inner = False
    for match in _SCRIPT_EVENT.finditer(html, start):
        if match[0] == "<!":
            is_comment = True
        elif match[0] == "-->":
            is_comment = is_inner = False
        elif not match[1]:
            is_inner = is_comment
        elif is_inner:
            is_inner = False
        else:
            return match.start()
    return len(html)
