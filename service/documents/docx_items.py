"""The parts of a paragraph of a Word document, in order: which of them are a field, and which tags have a partner."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from service.documents.inline import Kind, partners_of


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a paragraph, by itself: for text, `raw` is a run of it alone.

    `kind` is `None` for what no text may move across. `field` is "begin", "separate" or "end" of a field, or
    "instruction". It is from `start` to before `end` of the source; if that is within a run, `splits_before` and
    `splits_after` say so, and `properties` are the run's. One that `is_in_place` is never moved: `raw` and `raw_after`
    are written around it.
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
    """Return a field as one item; its result comes after its item `separate`."""
    text = "".join(each.text for each in field[separate:] if each.kind is Kind.TEXT)
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
