"""Sentences with markup of any format, handed to the translator as HTML with inline tags, and taken back.

Each piece of markup becomes a tag with its number: `<span id="1">` for a pair, `<sup id="2">` for one around a
superscript or subscript, `<img id="3">` for a mark without text, `<code id="4">` for text that stays, `<br id="5">` for
a line break. Tags are matched by number, so the source's markup is written, whatever the translator made of them.
"""

import enum
import html
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from service.documents.document import DocumentText, MimeType, has_words

_TAG = re.compile(r"""<(/?)(span|sup|img|code|br)(?:\s+id=["']?(\d{1,9})["']?)?\s*/?>""", re.IGNORECASE)
_SINGLE_LETTER = re.compile(r"(?<![^\W_])[^\W\d_]\Z")
_SIGN_OF_LETTERS = re.compile("TM|SM|R|C")


class Kind(enum.Enum):
    """The kind of a piece."""

    TEXT = "text"
    OPEN = "open"  # the start of a pair
    CLOSE = "close"
    MARK = "mark"  # markup without text that belongs to a word
    ORDERED = "ordered"  # a mark that stays before and after the same other ordered marks
    KEPT = "kept"  # text that stays as it is, with its markup
    BREAK = "break"  # a line break; no text moves across it


_TAGS = {Kind.OPEN: "span", Kind.KEPT: "code", Kind.BREAK: "br", Kind.MARK: "img", Kind.ORDERED: "img"}


class Piece(NamedTuple):
    """A piece: markup as written in the document, or decoded text, which is that of `TEXT` or what `KEPT` shows.

    A pair that `is_raised` may hold a sign that belongs to a word. `KEPT` that `is_code` is not a field.
    """

    kind: Kind
    raw: str = ""
    text: str = ""
    is_raised: bool = False
    is_code: bool = False


class AnyPiece(Protocol):
    """The fields of a piece that determine its place among others."""

    @property
    def kind(self) -> Kind | None: ...

    @property
    def text(self) -> str: ...

    @property
    def is_code(self) -> bool: ...


class InlineText:
    """A sentence with markup.

    With `is_strict` each pair comes back exactly once, even an empty one; else a pair without text is left out, and one
    that a translation splits is repeated.
    """

    def __init__(self, pieces: Iterable[Piece], *, is_strict: bool = False) -> None:
        self._before, self._pieces, self._after = framed(pieces)
        self._is_strict = is_strict
        self._closings = {start: end for start, end in partners_of(self._pieces).items() if start < end}
        self.text, self.mime_type = self._text_and_type()

    def document_text(self, place: str) -> DocumentText:
        return DocumentText(self.text, self.mime_type, place)

    @property
    def has_words(self) -> bool:
        return any(piece.kind is Kind.TEXT and has_words(piece.text) for piece in self._pieces)

    def pieces(self, translation: str) -> list[Piece]:
        """Return a translation's pieces within the source's outer pieces and white space; missing markup comes last."""
        translation = translation.strip()
        if self.mime_type is MimeType.TEXT:
            return [*self._before, Piece(Kind.TEXT, text=translation), *self._after]
        ordered = iter([piece for piece in self._pieces if piece.kind is Kind.ORDERED])
        found = [next(ordered) if piece.kind is Kind.ORDERED else piece for piece in self._found(translation)]
        return [*self._before, *found, *self._after]

    def _text_and_type(self) -> tuple[str, MimeType]:
        if all(piece.kind is Kind.TEXT for piece in self._pieces):
            return "".join(piece.text for piece in self._pieces), MimeType.TEXT
        output: list[str] = []
        names: list[str] = []  # of the tags that are open
        for number, piece in enumerate(self._pieces):
            match piece.kind:
                case Kind.TEXT:
                    output.append(html.escape(piece.text, quote=False))
                case Kind.OPEN:
                    names.append("sup" if piece.is_raised else "span")
                    output.append(f'<{names[-1]} id="{number}">')
                case Kind.CLOSE:
                    output.append(f"</{names.pop()}>")
                case kind:
                    output.append(f'<{_TAGS[kind]} id="{number}">')
                    if kind is Kind.KEPT:
                        output.append(f"{html.escape(piece.text, quote=False)}</code>")
        return "".join(output), MimeType.HTML

    def _found(self, translation: str) -> Iterator[Piece]:
        used: set[int] = set()
        path: list[int | None] = []
        done = 0
        is_kept = False  # within an element whose text is the source's
        for tag in _TAG.finditer(translation):
            if tag.start() > done and not is_kept:
                yield Piece(Kind.TEXT, text=html.unescape(translation[done : tag.start()]))
            done = tag.end()
            name = tag[2].lower().replace("sup", "span")
            if name == "code":
                is_kept = not tag[1]
            if name == "span" and tag[1]:
                number = path.pop() if path else None
                if number is not None:
                    yield self._pieces[self._closings[number]]
                continue
            number = self._number(name, tag[3])
            is_new = number is not None and (number not in used or (name == "span" and not self._is_strict))
            if name == "span":
                path.append(number if is_new else None)
            if number is not None and is_new:
                used.add(number)
                yield self._pieces[number]
        if done < len(translation) and not is_kept:
            yield Piece(Kind.TEXT, text=html.unescape(translation[done:]))
        for number in reversed(path):
            if number is not None:
                yield self._pieces[self._closings[number]]
        for number, piece in enumerate(self._pieces):
            if number in used or piece.kind in (Kind.TEXT, Kind.CLOSE):
                continue
            if piece.kind is not Kind.OPEN:
                yield piece
            elif self._is_strict:
                yield piece
                yield self._pieces[self._closings[number]]

    def _number(self, name: str, digits: str | None) -> int | None:
        """Return the number of the piece that a tag stands for; `None` if there is none of its kind."""
        number = int(digits) if digits else len(self._pieces)
        if number >= len(self._pieces):
            return None
        return number if _TAGS.get(self._pieces[number].kind) == name else None


class FormattedText:
    """A sentence of runs, each with a formatting. What differs from the most frequent one is in a pair of its own."""

    def __init__(self, runs: Iterable[tuple[str, Piece]], is_raised: Callable[[str], bool] = lambda _: False) -> None:
        """Take pieces with their formatting, which is that of text, and which formatting raises its text."""
        every = _joined(runs, is_raised)
        lengths: Counter[str] = Counter()
        for formatting, piece in every:
            if piece.kind is Kind.TEXT:
                lengths[formatting] += 0 if is_raised(formatting) else len(piece.text.strip())
        self._base = lengths.most_common(1)[0][0]
        self.inline = InlineText(with_raised(self._in_pairs(every, is_raised), lambda each: is_raised(each.text)))

    def written(self, run: Callable[[str, str], str], translation: str) -> str:
        """Return a translation, of which `run` writes the texts, each with its formatting."""
        formats = [self._base]  # outside of all pairs, and in each that is open
        output: list[str] = []
        for piece in self.inline.pieces(translation):
            if piece.kind is Kind.OPEN:
                formats.append(formats[-1] if piece.raw else piece.text)
            elif piece.kind is Kind.CLOSE:
                formats.pop()
            output.append(run(formats[-1], piece.text) if piece.kind is Kind.TEXT and piece.text else piece.raw)
        return "".join(output)

    def _in_pairs(self, runs: Iterable[tuple[str, Piece]], is_raised: Callable[[str], bool]) -> Iterator[Piece]:
        """Add pairs for formattings other than the `text` one.

        White space and marks have that of the text before, in the same pair and line, unless raised; initial white
        space its own.
        """
        current = before = self._base
        is_first = True
        for formatting, piece in runs:
            is_text = piece.kind is Kind.TEXT and (is_first or piece.text.strip() != "")
            is_first &= piece.kind in (Kind.MARK, Kind.ORDERED) or piece.text.isspace()
            if is_text and not is_raised(formatting):
                before = formatting
            elif piece.is_code or piece.kind in (Kind.OPEN, Kind.CLOSE, Kind.BREAK):
                before = self._base
            wanted = formatting if is_text else before
            if wanted != current:
                yield from [Piece(Kind.CLOSE)] * (current != self._base)
                yield from [Piece(Kind.OPEN, text=wanted)] * (wanted != self._base)
                current = wanted
            yield piece
        yield from [Piece(Kind.CLOSE)] * (current != self._base)


def _joined(runs: Iterable[tuple[str, Piece]], is_raised: Callable[[str], bool]) -> list[tuple[str, Piece]]:
    """Join neighbouring texts of one formatting; an ordinal's letters take its number's, as languages differ here."""
    every: list[tuple[str, Piece]] = []
    for (kind, formatting), group in itertools.groupby(runs, lambda run: (run[1].kind, run[0])):
        if kind is not Kind.TEXT:
            every += group
            continue
        text = "".join(piece.text for _, piece in group)
        before = every[-1] if every else ("", Piece(kind))
        is_ordinal = before[1].kind is kind and before[1].text[-1:].isdigit() and is_letters(text)
        every.append((before[0] if is_ordinal and is_raised(formatting) else formatting, Piece(kind, text=text)))
    return every


def has_code(pieces: Iterable[AnyPiece]) -> bool:
    return any(piece.is_code and has_words(piece.text) for piece in pieces)


def code(text: str, write: Callable[[str], str]) -> Iterator[Piece]:
    """Yield code, written by `write`, and as text the white space around it, which may separate words."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    for part, is_code in ((text[:start], False), (text[start:end], True), (text[max(start, end) :], False)):
        if part:
            yield Piece(Kind.KEPT if is_code else Kind.TEXT, write(part), part, is_code=is_code)


def framed(every: Iterable[Piece]) -> tuple[list[Piece], list[Piece], list[Piece]]:
    """Return the pieces before, of and after the text: markup and white space around a text never move."""
    pieces = list(_paired(every))
    partners = partners_of(pieces)
    fixed = (Kind.MARK, Kind.ORDERED, Kind.BREAK)
    start, end = 0, len(pieces)
    while start < end:
        first, last = pieces[start], pieces[end - 1]
        if first.kind in fixed or (first.kind is Kind.TEXT and not first.text.strip()):
            start += 1
        elif last.kind in fixed or (last.kind is Kind.TEXT and not last.text.strip()):
            end -= 1
        elif partners.get(start) == end - 1:
            start, end = start + 1, end - 1
        elif partners.get(start) == start + 2 and pieces[start + 1].text.isspace():
            start += 3
        else:
            break
    before, inner, after = list(pieces[:start]), list(pieces[start:end]), list(pieces[end:])
    if inner and inner[0].kind is Kind.TEXT:
        text = inner[0].text
        inner[0] = Piece(Kind.TEXT, text=text.lstrip())
        before += [Piece(Kind.TEXT, text=text[: len(text) - len(text.lstrip())])] * text[0].isspace()
    if inner and inner[-1].kind is Kind.TEXT:
        text = inner[-1].text
        inner[-1] = Piece(Kind.TEXT, text=text.rstrip())
        after = [Piece(Kind.TEXT, text=text[len(text.rstrip()) :])] * text[-1].isspace() + after
    return before, inner, after


def with_raised(pieces: Iterable[Piece], is_raised: Callable[[Piece], bool]) -> list[Piece]:
    """Mark the openings of pairs that are raised or lowered, and contain just a sign.

    Letters are a sign behind a single one, as in `xⁿ`. Others, such as those of an ordinal, are text.
    """
    every = list(pieces)
    for index, (opening, sign, closing) in enumerate(zip(every, every[1:], every[2:], strict=False)):
        kinds = (opening.kind, sign.kind, closing.kind)
        if kinds == (Kind.OPEN, Kind.TEXT, Kind.CLOSE) and is_raised(opening):
            is_behind_letter = index > 0 and _SINGLE_LETTER.search(every[index - 1].text) is not None
            every[index] = opening._replace(is_raised=is_behind_letter or not is_letters(sign.text))
    return every


def is_letters(text: str) -> bool:
    """Return whether a superscript or subscript is letters that are not a sign, unlike `TM`."""
    return text.strip().isalpha() and not _SIGN_OF_LETTERS.fullmatch(text.strip())


def partners_of(pieces: Sequence[AnyPiece]) -> dict[int, int]:
    """Map each opening piece to its closing one, and back."""
    path: list[int] = []
    partners: dict[int, int] = {}
    for index, piece in enumerate(pieces):
        if piece.kind is Kind.OPEN:
            path.append(index)
        elif piece.kind is Kind.CLOSE and path:
            start = path.pop()
            partners[start], partners[index] = index, start
    return partners


def _paired(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Join neighbouring texts, and neighbouring code; tags without a partner become marks."""
    every = [piece for piece in pieces if piece.kind is not Kind.TEXT or piece.text]
    partners = partners_of(every)

    def joins(index: int) -> Kind | int:
        return every[index].kind if every[index].kind is Kind.TEXT or every[index].is_code else index

    for _, group in itertools.groupby(range(len(every)), joins):
        start, *more = group
        piece = every[start]
        if more:
            joined = [every[index] for index in (start, *more)]
            raw, text = ("".join(each) for each in zip(*((each.raw, each.text) for each in joined), strict=True))
            piece = piece._replace(raw=raw, text=text)
        is_single = piece.kind in (Kind.OPEN, Kind.CLOSE) and start not in partners
        yield Piece(Kind.ORDERED, piece.raw) if is_single else piece
