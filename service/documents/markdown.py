"""Markdown: CommonMark (https://spec.commonmark.org) with GitHub's tables and strikethrough.

Headings, paragraphs, items and cells are texts; a paragraph becomes one line, but for its hard line breaks. Emphasis
and links move with their words. Front matter, code, addresses, images and definitions of links stay as they are; blocks
of HTML are read as HTML.
"""

import bisect
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from service.documents.document import Document, DocumentOptions, DocumentText, Slot, Spliced
from service.documents.encodings import decoded
from service.documents.inline import InlineText, Kind, Piece

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_SPAN = "span"  # key of a token's position, from its start to before its end, in the text of its block
_LINE_END = re.compile(r"\r\n?|\n")
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(?:.*\n)*?(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)")
_FOOTNOTE = re.compile(r"\[\^[^\]\s]{1,60}\]:?")
_HTML_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)(?:\s[^<>]*)?>")
_SPECIAL = re.compile(r"""[\\`*\[\]~]|<(?=[A-Za-z/!?])|(?<![^\W_])_|_(?![^\W_])|&(?=\#?[A-Za-z0-9]{1,32};)""")
_BLOCK_START = re.compile(r"(?:[#>+=-]|~~~|(\d{1,9})[.)](?=\s|\Z))")
_LINE_ENDS = re.compile(r"(?<![ \t])[ \t]*+[\r\n]+[ \t]*")  # with the blanks around them
_VOID = ("area", "img", "input", "wbr", "embed")


def read(data: bytes, _: DocumentOptions) -> Document:
    """Read Markdown in UTF-8.

    Raises:
        DocumentError: it is not UTF-8.
    """
    source, encode = decoded(data)
    reader = _Reader(source)
    slots = list(reader.slots())
    notes = [f"{reader.num_left} texts were left as they are: their lines begin in an unusual way."]
    return Spliced(source, slots, encode, notes if reader.num_left else ())


class _Reader:
    """The blocks of one document."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(source))]
        self._cursor = 0  # all before it belongs to earlier texts
        self.num_left = 0

    def slots(self) -> Iterator[Slot]:
        """Yield the texts in order."""
        parser = _parser()
        front = _FRONT_MATTER.match(self._source)
        skipped = bisect.bisect_left(self._starts, front.end()) if front else 0
        begin = front.end() if front else 0
        is_in_table = False
        for token in parser.parse(self._source[begin:]):
            if token.type in ("table_open", "table_close"):
                is_in_table = token.nesting > 0
            if token.map is None:
                continue
            first, end = token.map[0] + skipped, token.map[1] + skipped
            if token.type == "html_block":
                start = self._starts[first]
                stop = self._starts[end] if end < len(self._starts) else len(self._source)
                if _LINE_END.sub("\n", self._source[start:stop]).strip() == token.content.strip():
                    from service.documents import html  # slow to import, and few documents need it

                    yield from html.slots(self._source[start:stop], start, first + 1)
            elif token.type == "inline" and token.content:
                yield from self._slot(token, first, is_in_table)

    def _slot(self, token: "Token", first: int, is_in_table: bool) -> Iterator[Slot]:
        inline = InlineText(_pieces(token, is_in_table=is_in_table))
        lines = token.content.split("\n")
        found = self._found(lines, first, is_in_table)
        if found is None:
            self.num_left += inline.has_words
            return
        start, end = found
        self._cursor = end
        if inline.has_words:
            prefix = self._prefix(first + 1, lines[1]) if len(lines) > 1 else ""
            ending = "\r\n" if "\r\n" in self._source[start:end] else "\n"
            written = functools.partial(_written, inline, ending, prefix, is_in_table)
            yield Slot(start, end, DocumentText(inline.text, inline.mime_type, f"line {first + 1}"), written)

    def _found(self, lines: Sequence[str], first: int, is_in_table: bool) -> tuple[int, int] | None:
        """Return where the lines of a block are in the source, without what marks the block."""
        if first + len(lines) > len(self._starts):
            return None
        start, end = self._line(first)
        start = max(start, self._cursor)
        if is_in_table:
            pattern = re.escape(lines[0]).replace(r"\|", r"\\?\|")
            match = re.compile(pattern).search(self._source, start, end)
            return match.span() if match else None
        position = self._source.find(lines[0], start, end)
        if len(lines) == 1:
            return (position, position + len(lines[0])) if position >= 0 else None
        last_start, last_end = self._line(first + len(lines) - 1)
        stop = len(self._source[last_start:last_end].rstrip()) + last_start
        if position < 0 or not self._source.endswith(lines[-1].rstrip(), last_start, stop):
            return None
        return position, stop

    def _line(self, number: int) -> tuple[int, int]:
        start = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._source)
        return start, start + len(self._source[start:end].rstrip("\r\n"))

    def _prefix(self, number: int, line: str) -> str:
        """Return what marks a line as one of its block: indentation and signs of quotation."""
        start, end = self._line(number)
        text = self._source[start:end]
        return text[: max(0, text.rfind(line))]


def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # slow to import

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.disable(["text_join", "fragments_join"])  # they would join tokens whose positions differ
    for name in ("newline", "escape", "backticks", "link", "image", "autolink", "html_inline"):
        rule = next(each.fn for each in parser.inline.ruler.__rules__ if each.name == name)
        parser.inline.ruler.at(name, _located(rule))
    return parser


def _located(rule: "Callable[[StateInline, bool], bool]") -> "Callable[[StateInline, bool], bool]":
    """Return the rule of a parser with the positions of its tokens noted in them."""

    def located(state: "StateInline", silent: bool) -> bool:
        start, num_tokens, has_pending = state.pos, len(state.tokens), bool(state.pending)
        if not rule(state, silent):
            return False
        if not silent:
            new = state.tokens[num_tokens:]
            if has_pending and new:
                del new[0]  # the text before
            if new and new[0].type == "link_open" and new[0].info != "auto":
                end = state.md.helpers.parseLinkLabel(state, start, True)
                new[0].meta[_SPAN] = start, start + 1
                new[-1].meta[_SPAN] = end, state.pos
            elif new:
                new[0].meta[_SPAN] = start, state.pos
        return True

    return located


def _pieces(block: "Token", *, is_in_table: bool) -> Iterator[Piece]:
    source = block.content
    children = iter(block.children or ())
    for token in children:
        span: Any = token.meta.get(_SPAN)
        raw = source[slice(*span)] if span else ""
        if is_in_table:
            raw = raw.replace("|", r"\|")
        match token.type:
            case "text" | "text_special":
                yield from _with_footnotes(token.content)
            case "softbreak":
                yield Piece(Kind.TEXT, text=" ")
            case "hardbreak":
                yield Piece(Kind.BREAK, "\\" if raw.startswith("\\") else "  ")
            case "code_inline":
                yield Piece(Kind.KEPT, raw.replace("\n", " "), token.content)
            case "link_open" if token.info == "auto":
                yield Piece(Kind.KEPT, raw, next(children).content)
                next(children)
            case "html_inline":
                yield _of_html(raw)
            case "image":
                yield Piece(Kind.MARK, raw.replace("\n", " "))
            case "link_open":
                yield Piece(Kind.OPEN, raw)
            case "link_close":
                yield Piece(Kind.CLOSE, raw.replace("\n", " "))
            case _ if token.nesting > 0:
                yield Piece(Kind.OPEN, token.markup)
            case _:
                yield Piece(Kind.CLOSE, token.markup)


def _with_footnotes(text: str) -> Iterator[Piece]:
    done = 0
    for match in _FOOTNOTE.finditer(text):
        yield Piece(Kind.TEXT, text=text[done : match.start()])
        yield Piece(Kind.MARK, match[0])
        done = match.end()
    yield Piece(Kind.TEXT, text=text[done:])


def _of_html(raw: str) -> Piece:
    match = _HTML_TAG.fullmatch(raw)
    if match is None or raw.endswith("/>") or match[2].lower() in _VOID:
        return Piece(Kind.MARK, raw.replace("\n", " "))
    if match[2].lower() == "br":
        return Piece(Kind.BREAK, raw)
    return Piece(Kind.CLOSE if match[1] else Kind.OPEN, raw.replace("\n", " "))


def _written(inline: InlineText, ending: str, prefix: str, is_in_table: bool, translation: str) -> str:
    lines: list[str] = []
    output: list[str] = []  # of the last line
    is_at_start = True
    for piece in _tight(inline.pieces(translation)):
        if piece.kind is Kind.TEXT:
            text = _LINE_ENDS.sub(" ", piece.text)
            written = _escaped(text, is_in_table=is_in_table)
            if is_at_start and (match := _BLOCK_START.match(written)):
                place = match.end(1) if match[1] else 0
                written = f"{written[:place]}\\{written[place:]}"
            output.append(written)
            is_at_start &= not text.strip()
        elif piece.kind is Kind.BREAK and not piece.raw.startswith("<"):
            lines += ("".join(output).rstrip(" \t"), piece.raw, ending)
            output = [prefix]
            is_at_start = True
        else:
            output.append(piece.raw)
            is_at_start = False
    written = "".join((*lines, *output))
    return re.sub(r"(?<=\s)(#+)\Z", r"\\\1", written)  # which would close a heading


def _tight(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield the pieces with the white space at the borders of emphasis outside of it, where it has to be."""
    every = list(pieces)
    for index, piece in enumerate(every):
        if piece.kind is not Kind.TEXT or not piece.text:
            continue
        before, after = every[index - 1 : index], every[index + 1 : index + 2]
        text = piece.text
        if before and before[0].kind is Kind.OPEN and text[0].isspace():
            every[index - 1] = Piece(Kind.OPEN, " " + before[0].raw)
            text = text.lstrip()
        if after and after[0].kind is Kind.CLOSE and text[-1:].isspace():
            every[index + 1] = Piece(Kind.CLOSE, after[0].raw + " ")
            text = text.rstrip()
        every[index] = Piece(Kind.TEXT, text=text)
    yield from every


def _escaped(text: str, *, is_in_table: bool) -> str:
    text = _SPECIAL.sub(lambda match: "\\" + match[0], text)
    return text.replace("|", r"\|") if is_in_table else text
