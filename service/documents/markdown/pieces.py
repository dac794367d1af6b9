"""The pieces of a sentence of Markdown, and the texts within its markup: titles of links, descriptions of images."""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from service.documents.document import has_words
from service.documents.inline import Kind, Piece
from service.documents.markdown.spans import ATTRIBUTES, KEPT, KIND, SPAN, compiled

if TYPE_CHECKING:
    from markdown_it.token import Token

_HTML_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]*)(?:[\s/].*)?>", re.DOTALL)
_ANY_TAG = re.compile(r"<[^<>]*>")
_VOID = ("area", "img", "input", "wbr", "embed")
_TITLE = re.compile(
    r"""[ \t\n](?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|\(((?:[^()\\]|\\.)*)\))[ \t\n]*\)\Z""", re.DOTALL
)
_DESCRIPTION = re.compile(r"!\[([^\[\]\\`<&$*_{]*?)(\|\d+(?:x\d+)?)?\]")
_LINE_START = re.compile(r"[|:][ \t]")  # a line of a verse, or a caption of a table
_LINE_END = re.compile(r"\s\^[A-Za-z0-9-]{1,60}[ ]*\Z")  # the name of a block
_MAX_NAME = 80
_REFERENCE = re.compile(r"\](?:\[\])?")
_NO_SIGN = re.compile(r"[^\s,;:/+-]")  # what would be escaped, or translated
_SIGN = re.compile(r"[+/-]{1,3}")
_RAISED = re.compile(r"[~^]|<su[bp](?:\s[^<>]*)?>", re.IGNORECASE)
_RAISED_TEXT = re.compile(r"(?!.*[^\W\d_]{4})\S{1,12}")
_MAX_RAISED = 12  # pieces
# The last word of a text if it is one that signs are added to: a letter or two, a number, several capitals or digits.
_FORMULA = re.compile(r"(?<![^\W_])(?:[^\W_]{1,2}|(?=[^\W_]*[A-Z0-9][^\W_]*[A-Z0-9])[^\W_]{1,20}|\d{1,20})\Z")
_FORMULA_END = re.compile(r"(?:[~^]|</su[bp]\s*>)[^\W_]*\Z", re.IGNORECASE)
_TAG = re.compile(r"</?([A-Za-z][\w.:-]*)")
_WORD_START = re.compile(r"[^\W_]+")


class Inner(NamedTuple):
    """A text within markup: its stretch of the text of its block, the sign that ends it, and what follows it.

    The stretch of a description whose words are the label of a reference ends behind that label, which is `suffix`.
    """

    start: int
    end: int
    text: str
    quote: str
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """The pieces of a block, in which `\\0N\\0` stands for the translation of the text N of `inner`."""

    pieces: list[Piece]
    inner: list[Inner]


def sentence(block: "Token", *, is_cell: bool, has_inner: bool = True) -> Sentence:
    """Return the pieces of a block's text; in a cell of a table, pipes in markup are escaped."""
    reader = _Reader(block.content, is_cell, has_inner)
    return Sentence(joined(reader.pieces(block)), reader.inner)


class _Reader:
    def __init__(self, source: str, is_cell: bool, has_inner: bool) -> None:
        self._source = source
        self._is_cell = is_cell
        self._has_inner = has_inner
        self._labels: list[int] = []  # where those of open links start
        self.inner: list[Inner] = []

    def pieces(self, block: "Token") -> Iterator[Piece]:
        children = iter(block.children or ())
        for token in children:
            span: Any = token.meta.get(SPAN) or (0, 0)
            raw = self._raw(*span)
            match token.type:
                case "text" | "text_special":
                    yield Piece(Kind.TEXT, text=token.content)
                case "softbreak" if self._is_kept_line_end(*span):
                    yield Piece(Kind.BREAK)
                case "softbreak":
                    yield Piece(Kind.TEXT, text=" ")
                case "hardbreak":
                    yield Piece(Kind.BREAK, "\\" if raw.startswith("\\") else "  ")
                case "code_inline":
                    yield Piece(Kind.KEPT, raw, token.content)
                case "link_open" if token.info == "auto":
                    yield Piece(Kind.KEPT, raw, next(children).content)
                    next(children)
                case "html_inline":
                    yield _of_html(raw)
                case "image":
                    yield Piece(Kind.MARK, self._image(*span))
                case "link_open":
                    self._labels.append(span[1])
                    yield Piece(Kind.OPEN, raw)
                case "link_close":
                    yield Piece(Kind.CLOSE, self._link_end(self._labels.pop(), *span))
                case _ if token.type == KEPT:
                    shown = html.unescape(_ANY_TAG.sub("", raw)) if raw.startswith("<") else token.content
                    yield Piece(token.meta[KIND], raw, shown)
                case _:
                    yield Piece(Kind.OPEN if token.nesting > 0 else Kind.CLOSE, raw or token.markup)

    def _is_kept_line_end(self, start: int, end: int) -> bool:
        before = max(0, start - _MAX_NAME)
        return bool(_LINE_START.match(self._source, end) or _LINE_END.search(self._source, before, start))

    def _raw(self, start: int, end: int, texts: Sequence[Inner] = ()) -> str:
        """Return a stretch of the source, on one line, with signs of the texts in it."""
        output: list[str] = []
        for text in texts:
            output += (self._source[start : text.start], f"\0{len(self.inner)}\0")
            self.inner.append(text)
            start = text.end
        output.append(self._source[start:end])
        raw = "".join(output).replace("\n", " ")
        return raw.replace("|", r"\|") if self._is_cell else raw

    def _link_end(self, label: int, start: int, end: int) -> str:
        if _REFERENCE.fullmatch(self._source, start, end):  # the text is the label, which stays as it is
            return f"][{self._raw(label, start)}]"
        return self._raw(start, end, self._titles(start, end))

    def _image(self, start: int, end: int) -> str:
        match = _DESCRIPTION.match(self._source, start, end) if self._has_inner else None
        texts: list[Inner] = []
        if match and has_words(match[1]):
            label_end = match.end() - 1
            is_label = _REFERENCE.fullmatch(self._source, label_end, end) is not None
            suffix = f"{match[2] or ''}][{self._raw(start + 2, label_end)}]" if is_label else ""
            texts.append(Inner(match.start(1), end if is_label else match.end(1), match[1], "]", suffix))
        return self._raw(start, end, texts + self._titles(start, end))

    def _titles(self, start: int, end: int) -> list[Inner]:
        match = _TITLE.search(self._source, start, end) if self._has_inner else None
        if match is None or match.lastindex is None or not has_words(match[match.lastindex]):
            return []
        return [Inner(*match.span(match.lastindex), match[match.lastindex], "\"')"[match.lastindex - 1])]


def _of_html(raw: str) -> Piece:
    match = _HTML_TAG.fullmatch(raw)
    if match and match[2].lower() == "br":
        return Piece(Kind.BREAK, raw)
    if match is None or raw.endswith("/>") or match[2].lower() in _VOID:
        return Piece(Kind.MARK, raw)
    return Piece(Kind.CLOSE if match[1] else Kind.OPEN, raw)


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Join pieces that stay together: markup around kept text only, kept texts with only a sign between
    (`<kbd>Ctrl</kbd>+<kbd>S</kbd>`), superscripts and subscripts, lists of attributes with their owners."""
    done: list[Piece] = []
    openings: list[int] = []
    num_fixed = 0  # pieces up to the last one with something to translate
    for piece in _balanced(pieces):
        last = done[-1] if done else Piece(Kind.TEXT)
        first = len(done)
        if piece.kind is Kind.OPEN:
            openings.append(first)
        elif piece.kind is Kind.CLOSE and openings:
            first = openings.pop()
        elif first > 1 and piece.kind is done[-2].kind is Kind.KEPT and _SIGN.fullmatch(last.text):
            first -= 2
        done.append(piece)
        is_whole = first < len(done) - 1
        if last.kind is not Kind.TEXT and compiled(ATTRIBUTES).fullmatch(piece.raw):
            done[-2:] = [last._replace(raw=last.raw + piece.raw)]
        elif piece.kind is Kind.TEXT and (rest := _WORD_START.match(piece.text)) and _is_formula(last):
            done[-2:] = [_one(Kind.KEPT, [last, *_text(rest[0])]), *_text(piece.text[rest.end() :])]
        elif is_whole and first and piece.kind is Kind.CLOSE and _RAISED.fullmatch(done[first].raw):
            _join_raised(done, first)
        elif is_whole and first >= num_fixed and any(each.kind is Kind.KEPT for each in done[first:]):
            done[first:] = [_one(Kind.KEPT, done[first:])]
        is_free = piece.kind in (Kind.KEPT, Kind.OPEN, Kind.CLOSE) or not (piece.raw or _NO_SIGN.search(piece.text))
        num_fixed = num_fixed if is_free else len(done)
    return done


def _balanced(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces with tags that have no partner, such as the word in `Array<String>`, as marks."""
    every = list(pieces)
    path: list[tuple[int, str]] = []  # pairs that are open: their index, and their name if they are tags
    num_open: dict[str, int] = {}

    def unpair(index: int, name: str) -> None:
        every[index] = every[index]._replace(kind=Kind.ORDERED)
        num_open[name] -= 1

    for index, piece in enumerate(every):
        name = match[1].lower() if (match := _TAG.match(piece.raw)) else ""
        if piece.kind is Kind.OPEN:
            path.append((index, name))
            num_open[name] = num_open.get(name, 0) + 1
        elif piece.kind is Kind.CLOSE:
            if name and not num_open.get(name):
                every[index] = piece._replace(kind=Kind.ORDERED)
                continue
            while path and path[-1][1] not in ("", name):
                unpair(*path.pop())
            if path and path[-1][1] == name:
                num_open[path.pop()[1]] -= 1
            else:  # it was opened before emphasis, and this is in it
                every[index] = piece._replace(kind=Kind.ORDERED)
    for index, name in path:
        unpair(index, name)
    return every


def _join_raised(done: list[Piece], first: int) -> None:
    """Join a superscript with the word before, if that is one of a formula; else it is a mark at that word."""
    raised, before = done[first:], done[first - 1]
    is_simple = len(raised) < _MAX_RAISED and all(each.kind in (Kind.TEXT, Kind.OPEN, Kind.CLOSE) for each in raised)
    if not is_simple or not _RAISED_TEXT.fullmatch("".join(each.text for each in raised)):
        return
    if _is_formula(before):
        done[first - 1 :] = [_one(Kind.KEPT, [before, *raised])]
    elif before.kind is Kind.TEXT and (word := _FORMULA.search(before.text)):
        done[first - 1 :] = [*_text(before.text[: word.start()]), _one(Kind.KEPT, [*_text(word[0]), *raised])]
    elif not before.text[-1:].isspace():
        done[first:] = [_one(Kind.MARK, raised)]


def _is_formula(piece: Piece) -> bool:
    return piece.kind is Kind.KEPT and _FORMULA_END.search(piece.raw) is not None


def _text(text: str) -> list[Piece]:
    return [Piece(Kind.TEXT, text=text)] if text else []


def _one(kind: Kind, pieces: Sequence[Piece]) -> Piece:
    return Piece(kind, "".join(each.raw or each.text for each in pieces), "".join(each.text for each in pieces))
