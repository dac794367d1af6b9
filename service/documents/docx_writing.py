"""Paragraphs of Word documents as pieces to translate, and translations as runs."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from service.documents.document import Doubt, Edit
from service.documents.docx_items import Item
from service.documents.inline import FormattedText, Kind, Piece, is_letters
from service.documents.xml_source import as_raw

_SPACES = re.compile(r"[\t\n\r]+")
_IN_PLACE = "\0"  # begins what is written of a piece that stays where it is in the source
NO_BREAK_HYPHEN = "\u2011"
_HYPHENED = re.compile(r"[\w\u2011-]*\u2011[\w\u2011-]*")
_RAISED = re.compile(r'vertAlign\s[^<>]*?val="(?:superscript|subscript)"')
_HYPHENABLE = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text of a paragraph, `w` being the prefix of WordprocessingML.

    `before` and `after` are what is written around it. What stays where it is in the source, such as an anchored box,
    cuts it into stretches.
    """

    text: FormattedText
    w: str
    before: str
    after: str
    hyphened: frozenset[str]  # words with hyphens at which no line ends, written with usual ones

    def stretches(self, translation: str) -> list[str]:
        """Return what is written of a translation in each stretch."""
        output = [self.before]
        for formatting, piece in self.text.runs(translation):
            is_run = piece.kind is Kind.TEXT and piece.text
            output.append(run_of(self.w, formatting, self._hyphened(piece.text)) if is_run else piece.raw)
        return "".join((*output, self.after)).split(_IN_PLACE)

    def _hyphened(self, text: str) -> str:
        def word(match: re.Match[str]) -> str:
            is_hyphened = match[0].casefold() in self.hyphened
            return match[0].replace("-", NO_BREAK_HYPHEN) if is_hyphened else match[0]

        return _HYPHENABLE.sub(word, text) if self.hyphened else text


def sentence(items: Sequence[Item], w: str, before: str, after: str) -> Sentence:
    """Return the text of items of a paragraph."""
    runs = list(_runs(items))
    words = (word for _, piece in runs if piece.kind is Kind.TEXT for word in _HYPHENED.findall(piece.text))
    hyphened = {word.replace(NO_BREAK_HYPHEN, "-").casefold() for word in words}
    if hyphened:
        runs = [(formatting, _with_usual_hyphens(piece)) for formatting, piece in runs]
    return Sentence(FormattedText(runs, _is_raised), w, before, after, frozenset(hyphened))


def _with_usual_hyphens(piece: Piece) -> Piece:
    is_text = piece.kind is Kind.TEXT
    return piece._replace(text=piece.text.replace(NO_BREAK_HYPHEN, "-")) if is_text else piece


def joined(items: Sequence[Item]) -> list[Item]:
    """Return the items with neighbouring texts of the same formatting as one.

    The letters of an ordinal get the formatting of its number: another language has others, or none.
    """
    every: list[Item] = []
    for _, group in itertools.groupby(enumerate(items), lambda each: _formatting(*each)):
        item = _joined([each for _, each in group])
        before = every[-1] if every else item
        is_text = {before.kind, item.kind} == {Kind.TEXT}
        if is_text and _is_raised(item.properties) and before.text[-1:].isdigit() and is_letters(item.text):
            item = replace(item, properties=before.properties)
        every.append(item)
    return every


def _formatting(index: int, item: Item) -> str | int:
    """Return what neighbouring texts have in common that are written as one run; of anything else its own number."""
    return item.properties if item.kind is Kind.TEXT else index


def _joined(items: Sequence[Item]) -> Item:
    return replace(
        items[0],
        end=items[-1].end,
        raw="".join(item.raw for item in items),
        text="".join(item.text for item in items),
        splits_after=items[-1].splits_after,
    )


def run_of(w: str, properties: str, text: str) -> str:
    """Return a run of a text."""
    raw = as_raw(_SPACES.sub(" ", text)).replace(
        as_raw(NO_BREAK_HYPHEN), f'</{w}t><{w}noBreakHyphen/><{w}t xml:space="preserve">'
    )
    return f'<{w}r>{properties}<{w}t xml:space="preserve">{raw}</{w}t></{w}r>'.replace(
        f'<{w}t xml:space="preserve"></{w}t>', ""
    )


def _is_raised(properties: str) -> bool:
    return _RAISED.search(properties) is not None


def _runs(items: Iterable[Item]) -> Iterator[tuple[str | None, Piece]]:
    """Yield pieces with their formatting; white space has that of the text before it, unless this is raised."""
    current: str | None = None
    for item in items:
        assert item.kind is not None
        if item.kind is Kind.TEXT:
            formatting = item.properties if item.text.strip() else current
            current = current if _is_raised(item.properties) else formatting
            yield formatting, Piece(item.kind, text=item.text)
            continue
        if item.kind in (Kind.OPEN, Kind.CLOSE, Kind.BREAK):
            current = None
        raw = f"{item.raw}{_IN_PLACE}{item.raw_after}" if item.is_in_place else item.raw
        yield current, Piece(item.kind, raw, item.text)


def trimmed(items: Sequence[Item]) -> Sequence[Item]:
    """Return the items without those before and after all others that stay where they are."""
    start, end = 0, len(items)
    while start < end and items[start].is_in_place:
        start += 1
    while start < end and items[end - 1].is_in_place:
        end -= 1
    return items[start:end]


def separate(item: Item | None) -> Item:
    """Return a line break for what is between two elements, if there is anything."""
    return replace(item, kind=Kind.BREAK) if item else Item(Kind.BREAK, 0, 0)


def first_stretch(text: Sentence, translation: str) -> str:
    """Return what is written of a translation before all that stays in its place."""
    return text.stretches(translation)[0]


def other_stretches(text: Sentence, borders: Sequence[int], translation: str, _: Doubt | None) -> Iterator[Edit]:
    """Yield what is written after it; `borders` are where each stretch starts and ends in the source."""
    for index, stretch in enumerate(text.stretches(translation)):
        if index:
            yield Edit(borders[2 * index], borders[2 * index + 1], stretch)
