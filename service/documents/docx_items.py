"""The parts of a paragraph of a Word document, in order: which of them are a field, and which tags have a partner."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from service.documents.inline import Kind


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a paragraph, by itself: for text, `raw` is a run of it alone.

    `kind` is `None` for what no text may move across. `field` is "begin", "separate" or "end" of a field, or
    "instruction". It is from `start` to before `end` of the source; if that is within a run, `splits_before` and
    `splits_after` say so, and `properties` are the run's.
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


def with_fields(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items, each field as one: a link as a pair around its text, another one as kept text.

    The marks of a field that begins or ends in another paragraph or element are borders of texts.
    """
    index = 0
    while index < len(items):
        item = items[index]
        if not item.field:
            yield item
            index += 1
            continue
        end = _end_of_field(items, index) if item.field == "begin" else None
        if end is None:
            yield replace(item, kind=None)
            index += 1
            continue
        whole = items[index : end + 1]
        separate = _separator(whole)
        instruction = "".join(each.text for each in whole[:separate] if each.field == "instruction")
        if instruction.split()[:1] == ["HYPERLINK"] and separate < len(whole) - 1:
            opening = whole[: separate + 1]
            raw = "".join(each.raw for each in opening)
            yield replace(opening[0], kind=Kind.OPEN, end=opening[-1].end, raw=raw, field="")
            yield from with_fields(whole[separate + 1 : -1])
            yield replace(whole[-1], kind=Kind.CLOSE, field="")
        else:
            raw = "".join(each.raw for each in whole)
            text = "".join(each.text for each in whole[separate:] if each.kind is Kind.TEXT)
            kept = replace(item, kind=Kind.KEPT if text.strip() else Kind.MARK, raw=raw, text=text, field="")
            yield replace(kept, end=whole[-1].end, splits_after=whole[-1].splits_after, properties=whole[-1].properties)
        index = end + 1


def _end_of_field(items: Sequence[Item], start: int) -> int | None:
    """Return where a field ends; `None` if that is not in the same text and element."""
    depth = fields = 0
    for index in range(start, len(items)):
        item = items[index]
        depth += (item.kind is Kind.OPEN) - (item.kind is Kind.CLOSE)
        fields += (item.field == "begin") - (item.field == "end")
        if item.kind is None or depth < 0:
            return None
        if fields == 0:
            return index if depth == 0 else None
    return None


def _separator(field: Sequence[Item]) -> int:
    """Return the index of the mark between a field's instruction and its result; of its end, if it has none."""
    depth = 0
    for index, item in enumerate(field):
        depth += (item.field == "begin") - (item.field == "end")
        if depth == 1 and item.field == "separate":
            return index
    return len(field) - 1


def balanced(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Yield the items between tags without a partner among them."""
    path: list[int] = []
    single: set[int] = set()
    for index, item in enumerate(items):
        if item.kind is Kind.OPEN:
            path.append(index)
        elif item.kind is Kind.CLOSE:
            if path:
                path.pop()
            else:
                single.add(index)
    single.update(path)
    part: list[Item] = []
    for index, item in enumerate(items):
        if index in single:
            yield part
            part = []
        else:
            part.append(item)
    yield part
