"""Paragraphs of Word documents: their parts in order, fields, the texts to translate, and translations as runs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from service.documents.document import Doubt, Edit
from service.documents.inline import FormattedText, Kind, Piece, partners_of
from service.documents.xml_source import as_raw

_SPACES = re.compile(r"[\t\n\r]+")
_IN_PLACE = "\0"  # begins what is written of a piece that stays where it is in the source
NO_BREAK_HYPHEN = "\u2011"
_HYPHENED = re.compile(r"[\w\u2011-]*\u2011[\w\u2011-]*")
_RAISED = re.compile(r'vertAlign\s[^<>]*?val="(?:superscript|subscript)"|\sbaseline="-?[1-9]')
# What a program found out about the language of the old text, in which words that look the same may differ.
_CHECKED = re.compile(
    r"""\s(?:lang|altLang|dirty|err|smtClean|noProof)\s*=\s*(?:"[^"]*"|'[^']*')|<(?:\w+:)?(?:lang|noProof)(?:\s[^<>]*)?/>"""
)
_NOTHING = re.compile(r"<([\w:]+)\s*(?:/>|>\s*</\1>)")
_HYPHENABLE = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a paragraph, from `start` to before `end` of the source; a text's `raw` is a run of it alone.

    `kind` is `None` for a barrier: text never moves across it. `field` is "begin", "separate" or "end" of a field, or
    "instruction". Within a run with `properties`, it `splits_before` or `splits_after` that. One that `is_in_place` is
    never moved: `raw` and `raw_after` are written around it.
    """

    kind: Kind | None
    start: int
    end: int
    raw: str = ""
    text: str = ""
    properties: str = ""
    field: str = ""
    splits_before: bool = False
    splits_after: bool = False
    is_in_place: bool = False
    raw_after: str = ""
    is_code: bool = False


def with_fields(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items, each field as one: a link as a pair around its text, another one as kept text.

    The marks of a field that begins or ends in another paragraph or element are borders of texts.
    """
    ends = _ends_of_fields(items)
    links: set[int] = set()  # where those end whose text is being read
    index = 0
    while index < len(items):
        item = items[index]
        end = ends.get(index)
        if index in links:
            yield replace(item, kind=Kind.CLOSE, field="")
        elif end is None:
            yield replace(item, kind=None) if item.field else item
        else:
            separate = _separator(items, index, end)
            opening = items[index : separate + 1]
            instruction = "".join(each.text for each in opening if each.field == "instruction")
            if instruction.split()[:1] == ["HYPERLINK"] and separate < end:
                raw = "".join(each.raw for each in opening)
                yield replace(item, kind=Kind.OPEN, end=opening[-1].end, raw=raw, field="")
                links.add(end)
                index = separate
            else:
                yield _kept(items[index : end + 1], separate - index)
                index = end
        index += 1


def _kept(field: Sequence[Item], separate: int) -> Item:
    """Return a field as one item; its result follows its item `separate`."""
    text = "".join(each.text for each in field[separate:] if each.kind in (Kind.TEXT, Kind.KEPT))
    return replace(
        field[0],
        kind=Kind.KEPT if text.strip() else Kind.MARK,
        end=field[-1].end,
        raw="".join(each.raw for each in field),
        text=text,
        field="",
        splits_after=field[-1].splits_after,
        properties=field[-1].properties,
    )


def _ends_of_fields(items: Sequence[Item]) -> dict[int, int]:
    """Map where each field begins to where it ends, if that is in the same text and element."""
    ends: dict[int, int] = {}
    begun: list[tuple[int, int]] = []  # where each open field begins, and at which depth
    whole: list[tuple[int, int]] = []  # those of them that no border of a text or end of an element is in
    depth = 0
    for index, item in enumerate(items):
        depth += (item.kind is Kind.OPEN) - (item.kind is Kind.CLOSE)
        if item.kind is None or item.is_in_place:
            whole.clear()
        while whole and whole[-1][1] > depth:
            whole.pop()
        if item.field == "begin":
            begun.append((index, depth))
            whole.append(begun[-1])
        elif item.field == "end" and begun:
            start = begun.pop()
            if whole and whole[-1] == start:
                whole.pop()
                if start[1] == depth:
                    ends[start[0]] = index
    return ends


def _separator(items: Sequence[Item], start: int, end: int) -> int:
    """Return the index of the mark between a field's instruction and its result; of its end, if it has none."""
    depth = 0
    for index in range(start, end):
        field = items[index].field
        depth += (field == "begin") - (field == "end")
        if depth == 1 and field == "separate":
            return index
    return end


def balanced(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Yield the items between tags without a partner among them."""
    partners = partners_of(items)
    part: list[Item] = []
    for index, item in enumerate(items):
        if item.kind in (Kind.OPEN, Kind.CLOSE) and index not in partners:
            yield part
            part = []
        else:
            part.append(item)
    yield part


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

    def first_stretch(self, translation: str) -> str:
        """Return the part of a translation that is written before everything that stays in its place."""
        return self._stretches(translation)[0]

    def other_stretches(self, borders: Sequence[int], translation: str, _: Doubt | None) -> Iterator[Edit]:
        """Yield the other parts; `borders` are the start and end of each stretch in the source."""
        for index, stretch in enumerate(self._stretches(translation)):
            if index:
                yield Edit(borders[2 * index], borders[2 * index + 1], stretch)

    def _stretches(self, translation: str) -> list[str]:
        return f"{self.before}{self.text.written(self._run, translation)}{self.after}".split(_IN_PLACE)

    def _run(self, formatting: str, text: str) -> str:
        return run_of(self.w, formatting, self._hyphened(text))

    def _hyphened(self, text: str) -> str:
        def word(match: re.Match[str]) -> str:
            is_hyphened = match[0].casefold() in self.hyphened
            return match[0].replace("-", NO_BREAK_HYPHEN) if is_hyphened else match[0]

        return _HYPHENABLE.sub(word, text) if self.hyphened else text


def sentence(items: Sequence[Item], w: str, before: str, after: str) -> Sentence:
    runs = list(_runs(items))
    text = "".join(piece.text if piece.kind is Kind.TEXT else " " for _, piece in runs)
    hyphened = {word.replace(NO_BREAK_HYPHEN, "-").casefold() for word in _HYPHENED.findall(text)}
    if hyphened:
        runs = [(formatting, _with_usual_hyphens(piece)) for formatting, piece in runs]
    return Sentence(FormattedText(runs, is_raised), w, before, after, frozenset(hyphened))


def _with_usual_hyphens(piece: Piece) -> Piece:
    is_text = piece.kind is Kind.TEXT
    return piece._replace(text=piece.text.replace(NO_BREAK_HYPHEN, "-")) if is_text else piece


def run_of(w: str, properties: str, text: str) -> str:
    raw = as_raw(_SPACES.sub(" ", text)).replace(
        as_raw(NO_BREAK_HYPHEN), f'</{w}t><{w}noBreakHyphen/><{w}t xml:space="preserve">'
    )
    return f'<{w}r>{properties}<{w}t xml:space="preserve">{raw}</{w}t></{w}r>'.replace(
        f'<{w}t xml:space="preserve"></{w}t>', ""
    )


def is_raised(properties: str) -> bool:
    return _RAISED.search(properties) is not None


def unchecked(properties: str) -> str:
    """Return a run's formatting without what is said of the language of its text; nothing if that is all."""
    left = _CHECKED.sub("", properties)
    return "" if _NOTHING.fullmatch(left) else left


def _runs(items: Iterable[Item]) -> Iterator[tuple[str, Piece]]:
    for item in items:
        assert item.kind is not None
        raw = f"{item.raw}{_IN_PLACE}{item.raw_after}" if item.is_in_place else item.raw
        yield item.properties, Piece(item.kind, raw, item.text, is_code=item.is_code)


def trimmed(items: Sequence[Item]) -> Sequence[Item]:
    """Return the items without those before and after all others that stay where they are."""
    start, end = 0, len(items)
    while start < end and items[start].is_in_place:
        start += 1
    while start < end and items[end - 1].is_in_place:
        end -= 1
    return items[start:end]


def separate(item: Item | None) -> Item:
    return replace(item, kind=Kind.BREAK) if item else Item(Kind.BREAK, 0, 0)
