"""Translations as Markdown: escapes translated text, and restores the original markup."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from service.documents.inline import InlineText, Kind, Piece
from service.documents.markdown import blocks, spans

_SPECIAL = re.compile(
    r"""[\\`*\[^]|~(?=~|\Z)|(?<=~)~|\A~|<(?=[A-Za-z/!?%]|\Z)|(?<![^\W_])_|_(?![^\W_])|&(?=\#?[A-Za-z0-9]{1,32};)""",
    re.VERBOSE,
)
_TRIGGER = re.compile(r"[$:=+%{~]")  # what might start a construct of `spans`, once all of the line is there
_BLOCK_START = re.compile(
    r"(?:\#{1,6}(?=\s|\Z)|[+-](?=[\s-]|\Z)|>|=+\s*\Z|[:|%](?=\s)|:::|!!!|===|\?\?\?|(\d{1,9})[.)](?=\s|\Z))"
)
_MAYBE_MATH = re.compile(r"(?<![\d\\])\$(?=[^\s$]).{1,2000}?(?<!\s)\$(?!\d)")  # to some readers, as prices
_LINE_OF_MATH = re.compile(r"(?<![\d\\])\$(?=[^\s$])")  # that may end in another line
_LINE_ENDS = re.compile(r"(?<![ \t])[ \t]*+[\r\n]+[ \t]*")  # with the blanks around them
_INNER = re.compile("\0(\\d+)\0")
_BLANKS = " \t\r\n"
_EMPHASIS = re.compile(r"[*_~=^+]+")
_BRACKETLESS = str.maketrans("[]|", "()/")  # for texts of links that know no escapes
_IN_ROLE = str.maketrans("`<>", "'()")  # which knows none, either


@dataclass(frozen=True, slots=True)
class Frame:
    """The surroundings of a text: the `ending` of its lines, and the `prefix` of those after the first.

    `quote` is the sign that ends the text, if any; `pipe`, `space` and `dollar` are how a pipe that would end the text
    or make a table, a no-break space and a dollar are written. With `is_line` the text starts a line, where signs start
    blocks; with `is_mdx` braces are JavaScript.
    """

    ending: str = "\n"
    prefix: str = ""
    quote: str = ""
    pipe: str = "|"
    space: str = "\u00a0"
    dollar: str = "$"
    is_line: bool = True
    is_mdx: bool = False


def plain(frame: Frame, translation: str) -> str:
    """Write a text that has no markup, such as a title, between its signs."""
    text = " ".join(translation.replace("\0", "").split())
    special = r"[\\\[\]<`*_~$^{]" if frame.quote == "]" else r"[\\<`$]"
    text = re.sub(special + r"|&(?=\#?[A-Za-z0-9]{1,32};)", lambda match: "\\" + match[0], text)
    if text.endswith("\\"):  # some parsers take the next quotation mark for escaped
        text = text.removesuffix("\\\\") + "&#92;"
    if frame.quote != "]":
        text = text.replace(frame.quote, "\\" + frame.quote).replace("(", r"\(" if frame.quote == ")" else "(")
    return text.replace("|", frame.pipe)


def written(inline: InlineText, frame: Frame, translation: str, *inner: str) -> str:
    """Return the Markdown of a translation; `inner` are the written texts that its markup contains."""
    first = next(iter(inline.pieces(inline.text)), None)
    writer = _Writer(frame, tight(_unblocked(inline.pieces(translation.replace("\0", "")), first)))
    text = _INNER.sub(lambda match: inner[int(match[1])], writer.written())
    return re.sub(r"(?<=\s)(#+)\Z", r"\\\1", text)  # which would close a heading


def _unblocked(pieces: list[Piece], first: Piece | None) -> list[Piece]:
    """Remove a tag at the start where the source has none: it might start a block of HTML."""
    if len(pieces) > 1 and pieces[0].raw.startswith("<") and pieces[0].kind is Kind.MARK and pieces[0] != first:
        return [pieces[1], pieces[0], *pieces[2:]]
    return pieces


def tight(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Move white space out of pairs where necessary, and drop empty emphasis."""
    waiting: list[Piece] = []  # starts of pairs without anything in them so far
    space = ""
    for piece in pieces:
        text = piece.text if piece.kind is Kind.TEXT else ""
        if piece.kind is Kind.TEXT:
            stripped = text.lstrip(_BLANKS)
            space = space or text[: len(text) - len(stripped)]
            text = stripped
            if not text:
                continue
        if piece.kind is Kind.OPEN:
            waiting.append(piece)
            continue
        if piece.kind is Kind.CLOSE:
            if waiting and _EMPHASIS.fullmatch(piece.raw):
                waiting.pop()
                continue
            if waiting and space:
                yield Piece(Kind.TEXT, text=space)
                space = ""
            yield from waiting
            yield piece
        else:
            if space:
                yield Piece(Kind.TEXT, text=space)
            yield from waiting
            stripped = text.rstrip(_BLANKS)
            yield piece._replace(text=stripped) if text else piece
            space = text[len(stripped) :]
        waiting = []
    if space:
        yield Piece(Kind.TEXT, text=space)


class _Within(NamedTuple):
    """The pairs around a text: the sign of the innermost, and what they all ask of it."""

    sign: str
    has_brackets: bool = False
    knows_no_escapes: bool = False
    is_raised: bool = False

    def and_in(self, sign: str) -> "_Within":
        return _Within(
            sign,
            self.has_brackets or sign.endswith("["),
            self.knows_no_escapes or sign.startswith(("[[", ":")),
            self.is_raised or sign == "^",
        )


class _Writer:
    """Writes one text. What is written depends on what is before and after it, so all is put on a line in order."""

    def __init__(self, frame: Frame, pieces: Iterable[Piece]) -> None:
        self._frame = frame
        self._pieces = [*pieces, Piece(Kind.TEXT)]
        self._is_split = any(each.kind is Kind.BREAK for each in self._pieces) and (
            sum(each.text.count("$") for each in self._pieces if each.kind is Kind.TEXT) > 1
        )
        self._lines: list[str] = []
        self._line = ""
        self._is_text = False  # the line starts with a text
        self._triggers: list[int] = []  # places in the line
        self._path = [_Within("", has_brackets=frame.quote == "]")]  # pairs that are open

    def written(self) -> str:
        for piece, following in zip(self._pieces, self._pieces[1:], strict=False):
            if piece.kind is Kind.TEXT:
                self._add_text(piece.text, following)
            elif piece.kind is Kind.BREAK and not piece.raw.startswith("<"):
                self._lines += (self._finished().rstrip(" \t"), piece.raw, self._frame.ending, self._frame.prefix)
                self._line, self._triggers = "", []
            else:
                self._add_markup(piece, following)
        return "".join((*self._lines, self._finished()))

    def _finished(self) -> str:
        """Return the line, with signs escaped that would be read as markup."""
        is_mdx, done = self._frame.is_mdx, 0
        output: list[str] = []
        for place in self._triggers:
            is_construct = spans.found(self._line, place, len(self._line), is_mdx=is_mdx) is not None
            if is_construct or (_LINE_OF_MATH if self._is_split else _MAYBE_MATH).match(self._line, place):
                output += (self._line[done:place], "\\")
                done = place
        line = "".join((*output, self._line[done:]))
        if not self._is_text or not blocks.opens(line, is_mdx=is_mdx):
            return line
        # An escaped bracket alone on its line starts display mathematics for some readers.
        return f"&#{ord(line[1])};{line[2:]}" if line.startswith("\\") else "\\" + line

    def _add_text(self, text: str, following: Piece) -> None:
        text = _LINE_ENDS.sub(" ", text)
        within = self._path[-1]
        if within.sign.endswith("`"):
            self._line += text.translate(_IN_ROLE).replace("|", self._frame.pipe)
            return
        if within.knows_no_escapes:
            text = text.translate(_BRACKETLESS)
        text = _SPECIAL.sub(lambda match: "\\" + match[0], text)
        if within.has_brackets:
            text = text.replace("]", r"\]")
        if within.is_raised:
            text = text.replace(" ", r"\ ")
        text = text.replace("|", self._frame.pipe).replace("\u00a0", self._frame.space).replace("$", self._frame.dollar)
        if self._frame.quote == '"':
            text = text.replace('"', "&quot;")
        if not self._line:
            self._is_text = self._frame.is_line or bool(self._lines)
            text = text.lstrip(_BLANKS)
            if self._is_text and (match := _BLOCK_START.match(text)):
                place = match.end(1) if match[1] else 0
                text = f"{text[:place]}\\{text[place:]}"
        elif self._line.endswith("]") and (text.startswith(("(", "{")) or (text[:1] == ":" and self._line[0] == "[")):
            text = "\\" + text
        if text.endswith("!") and following.raw.startswith("["):
            text = f"{text[:-1]}\\{text[-1]}"
        for match in _TRIGGER.finditer(text):
            if not text.endswith("\\", 0, match.start()):
                self._triggers.append(len(self._line) + match.start())
        self._line += text

    def _add_markup(self, piece: Piece, following: Piece) -> None:
        raw = piece.raw
        after = (following.raw or _SPECIAL.sub(r"\\\g<0>", following.text[:2]) or " ")[:2]
        if not self._line:
            self._is_text = False
        match piece.kind:
            case Kind.OPEN:
                is_first = not self._path[-1].sign or not self._line.endswith(self._path[-1].sign)
                if is_first and _needs_space(raw, self._line[-1:], after):
                    raw = " " + raw
                self._path.append(self._path[-1].and_in(piece.raw))
            case Kind.CLOSE:
                if len(self._path) > 1:
                    self._path.pop()
                if following.kind is not Kind.CLOSE and _needs_space(raw, after, self._line[-1:]):
                    raw += " "
            case _ if not _is_recognized(raw, before := self._line[-1:], after):
                is_before = bool(before) and not _is_recognized(raw, before, " ")
                is_after = not is_before or not _is_recognized(raw, " ", after)
                raw = f"{' ' * is_before}{raw}{' ' * is_after}"
        self._line += raw


def _needs_space(sign: str, outside: str, inside: str) -> bool:
    if not _EMPHASIS.fullmatch(sign) or not outside or outside[0].isspace():
        return False
    if outside[0] == sign[0]:
        return True
    return not _is_punctuation(outside[0]) and (sign[0] == "_" or _is_punctuation(inside[:1], with_symbols=True))


def _is_recognized(raw: str, before: str, after: str) -> bool:
    if raw.startswith("`"):
        return before != "`" and not after.startswith("`")
    if sign := _EMPHASIS.match(raw):
        return not any(_needs_space(sign[0], outside, "`") for outside in (before, after))
    if spans.ends(raw) != len(raw):
        return True
    return spans.ends(before + raw + after, len(before)) == len(before) + len(raw)


def _is_punctuation(character: str, *, with_symbols: bool = False) -> bool:
    """Return whether a sign is punctuation; symbols beyond ASCII are for some parsers only, and nothing is for none."""
    category = unicodedata.category(character) if character else ""
    return category.startswith("P") or (category.startswith("S") and (with_symbols or character.isascii()))
