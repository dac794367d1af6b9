"""Strings of programs as texts to translate: their arguments, their markup, and their accelerator."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from service.documents.accelerators import SIGNS, with_accelerator, without_accelerator
from service.documents.arguments import ArgumentFormat, in_order
from service.documents.document import Doubt
from service.documents.inline import InlineText, Kind, Piece, with_raised
from service.documents.layout import laid_out
from service.text.placeholders import STRING_KINDS

_VOID = re.compile(r"<(?:img|wbr|input)\b|<.*/>\Z", re.IGNORECASE | re.DOTALL)
_BLOCK = re.compile(r"</?(?:br|hr|nl|p|para|div|[uod]l|li|d[dt]|h[1-6]|t[rdh]|table|title|item|list)\b", re.IGNORECASE)
_RAISED = re.compile(r"(?:^|[\"':_-])(?:su[bp](?:erscript|script)?)\b|(?:<|&lt;)su[bp]\b", re.IGNORECASE)


class ProgramString:
    """A string to translate, of which `write` makes what a file has for a text."""

    def __init__(
        self, pieces: Iterable[Piece], kind: ArgumentFormat, write: Callable[[str], str] = str, signs: str = SIGNS
    ) -> None:
        self._kind = kind
        self._write = write
        self._arguments: list[Piece] = []
        parts = (part for piece in pieces for part in self._parts(piece))
        every, self._accelerator = without_accelerator(with_raised(parts, _is_raised), signs)
        self._places = {id(piece): place for place, piece in enumerate(self._arguments)}
        self.inline = InlineText(laid_out(every, write), is_strict=True)
        texts = [piece.text for piece in every if piece.kind is Kind.TEXT]
        # A sign that the source has in a text is no part of an argument there, so it isn't doubled here either.
        self._escaped = [sign for sign in kind.escaped if sign == "'" or not any(sign in text for text in texts)]

    def written(self, translation: str) -> str:
        pieces = self.inline.pieces(translation)
        if self._accelerator is not None:
            pieces = with_accelerator(pieces, self._accelerator)
        arguments = iter(self._ordered(pieces) or [])
        places = self._places
        output = []
        for piece in pieces:
            if piece.kind is Kind.TEXT:
                output.append(self._write(self._escape(piece.text)))
            elif id(piece) in places:
                output.append(self._write(next(arguments, piece.text)))
            else:
                output.append(piece.raw)
        return "".join(output)

    def doubt(self, translation: str, doubt: Doubt | None) -> Doubt | None:
        """Return the doubt about a translation; without one of a call, that its format can't tell its order."""
        is_ordered = len(self._places) < 2 or self._ordered(self.inline.pieces(translation)) is not None
        return doubt if doubt or is_ordered else Doubt(("order",))

    def _ordered(self, pieces: Sequence[Piece]) -> Sequence[str] | None:
        found = [self._places[id(piece)] for piece in pieces if id(piece) in self._places]
        return in_order(self._kind, [piece.text for piece in self._arguments], found)

    def _escape(self, text: str) -> str:
        for sign in self._escaped:
            text = text.replace(sign, sign * 2)
        return text

    def _parts(self, piece: Piece) -> Iterator[Piece]:
        if piece.kind is not Kind.TEXT:
            yield piece
            return
        text, write = piece.text, self._write
        has_path = ":\\" in text  # of a file, with the same signs as an escape
        done = 0
        for match in _pattern(self._kind).finditer(text):
            yield Piece(Kind.TEXT, text=text[done : match.start()])
            done = match.end()
            if match["escape"] and has_path:
                yield Piece(Kind.TEXT, text=match[0])
            elif match["argument"]:
                self._arguments.append(Piece(Kind.KEPT, write(match[0]), match[0]))
                yield self._arguments[-1]
            elif match["ellipsis"] or match["escape"]:
                yield Piece(Kind.BREAK, write(match[0]))
            elif match["tag"]:
                yield Piece(_kind_of(match[0]), write(match[0]))
            elif match["quote"] or match["around"] or self._kind.pattern.search(match[0]):
                start, end = _inner(match[0])
                before, after = match[0][:start], match[0][end:]
                if match["quote"] and "'" in self._kind.escaped:
                    before = after = "''"
                yield Piece(Kind.OPEN, write(before))
                yield from self._parts(Piece(Kind.TEXT, text=match[0][start:end]))
                yield Piece(Kind.CLOSE, write(after))
            else:
                yield Piece(Kind.KEPT, write(match[0]), match[0])
        yield Piece(Kind.TEXT, text=text[done:])


@functools.cache
def _pattern(kind: ArgumentFormat) -> re.Pattern[str]:
    markup = (f"(?P<{name}>{'|'.join(patterns)})" for name, patterns in STRING_KINDS.items())
    argument = f"(?P<quote>''?)(?:{kind.pattern.pattern})(?P=quote)|(?P<argument>{kind.pattern.pattern})"
    return re.compile("|".join((argument, *markup)))


def _inner(markup: str) -> tuple[int, int]:
    """Return where the text in markup is: of an element, a role with a title, a literal, a link, or quotes."""
    if markup.startswith("<"):
        return markup.index(">") + 1, markup.rindex("<")
    if markup.startswith("["):
        return 1, markup.rindex("](")
    start = re.match(r"(?::[\w:+.-]*:)?[`*|']{1,2}", markup)
    end = re.search(r"(?:\s*<[^<>]*>)?[`*|']{1,2}_{0,2}\Z", markup)
    assert start is not None
    assert end is not None
    return start.end(), end.start()


def _kind_of(tag: str) -> Kind:
    if _BLOCK.match(tag):
        return Kind.BREAK
    if _VOID.match(tag):
        return Kind.MARK
    return Kind.CLOSE if tag[1] == "/" else Kind.OPEN


def _is_raised(opening: Piece) -> bool:
    return _RAISED.search(opening.raw) is not None
