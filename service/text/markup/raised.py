"""Signs that belong to the word beside them: what is raised or lowered, and digits or a note's sign in an element.

The model would take them for words of the sentence, and translate or move them. So a formula (`H<sub>2</sub>O`,
`10 m<sup>2</sup>`, `1<sup>st</sup>`) is copied as a whole, with its tags, and a note (`word<sup>1</sup>`) is a mark
behind its word, of which the model sees nothing.
"""

import enum
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from service.domain.checkpoint import checkpoint
from service.text.markup.parts import Part, Role, element_name, partners, shown
from service.text.words import UNSPACED

_RAISED = frozenset({"sub", "sup"})
_LONGEST = 24  # characters of such a sign, and of what it belongs to on each side
_MOST_PARTS = 24  # of these
_WORD = rf"(?:[^\W_{UNSPACED}]|(?<=\d)[.,](?=\d)|&(?!nbsp|\w*sp;)[A-Za-z]{{2,8}};){{1,{_LONGEST}}}+"
_BEGINNING, _END = re.compile(_WORD), re.compile(_WORD + r"\Z")
_DIGITS = re.compile(r"[+\-−–]?\d[\d.,\-−–]*")
_NOTE = re.compile(r"\[\w{1,6}\]|\(\d{1,4}\)|[*†‡§¶#®™©℠]{1,4}|(?:TM|SM)")
_JOINTS = frozenset("@.")  # of addresses, which pages hide from programs: `me<span>@</span>here<span>.</span>org`
_CHARGE = re.compile(r"\d*[+\-−–]|[+\-−–]\d+")
# Of several letters, so that they might be words; single letters, and those with a capital within, are none.
_UNITS = frozenset(
    {
        *("mm", "cm", "dm", "km", "nm", "µm", "μm", "pm", "mi", "ft", "yd", "in", "ha", "kg", "mg", "ms", "ns", "ml"),
        *("cl", "dl", "hl", "kb", "mb", "gb", "hz", "pa", "mol", "lb", "oz", "rad", "sr"),
        *("ln", "lim", "max", "min", "mc"),
    }
)


class _Sign(NamedTuple):
    """A sign without white space; one that is neither raised nor a link may still be a number or a note."""

    text: str
    is_raised: bool
    is_link: bool

    @property
    def is_number(self) -> bool:
        return _DIGITS.fullmatch(self.text) is not None

    @property
    def is_note(self) -> bool:
        """Return whether it is written as marks are: `[1]`, `(2)`, `*`, `TM`."""
        return _NOTE.fullmatch(self.text) is not None


class _Use(enum.Enum):
    """What a sign is for."""

    MARK = enum.auto()
    PART = enum.auto()


class _Side(NamedTuple):
    """A word beside a sign: its outermost part, its outer position in the HTML, and its text."""

    part: int
    position: int
    text: str


def glued(html: str, run: Sequence[Part]) -> list[Part]:
    """Return the parts of a text with such signs as marks, or as one that is kept, with the word around them."""
    parts = list(run)
    if not any(part.role is Role.OPEN for part in parts):
        return parts
    ends = partners(parts)
    result: list[Part] = []
    index = 0
    while index < len(parts):
        checkpoint()
        part = parts[index]
        last = ends.get(index, index)
        sign = _sign(html, parts, index, ends) if part.role is Role.OPEN and last > index else None
        if sign is not None:
            left = _left(html, result, part.start)
            right = _right(html, parts, last, ends)
            nearby = (shown(html[each.start : each.end], each.role) for each in reversed(result[-_MOST_PARTS:]))
            use = _use_of(sign, left.text, right.text, next(filter(None, nearby), "")[-1:].strip())
            if use is _Use.MARK:
                result.append(Part(Role.MARK, part.start, parts[last].end))
                index = last + 1
                continue
            if use is _Use.PART:
                outer = result[left.part :][:1]
                del result[left.part :]
                if outer and outer[0].start < left.position:
                    result.append(Part(Role.TEXT, outer[0].start, left.position))
                result.append(Part(Role.KEPT, left.position, right.position))
                index = right.part + 1
                if right.position < parts[right.part].end:
                    index = right.part
                    parts[index] = Part(Role.TEXT, right.position, parts[index].end)
                continue
        result.append(part)
        index += 1
    return result


def _sign(html: str, parts: Sequence[Part], start: int, ends: Mapping[int, int]) -> _Sign | None:
    """Return what the element that starts with a part says, if it may be a sign."""
    last = ends[start]
    if not 1 < last - start < _MOST_PARTS or parts[last].end - parts[start].start > _MOST_PARTS * 80:
        return None
    text = "".join(shown(html[part.start : part.end], part.role) for part in parts[start:last])
    if not text or len(text) > _LONGEST or any(map(str.isspace, text)):
        return None
    names = [element_name(html, part) for part in parts[start:last] if part.role is Role.OPEN]
    index, is_raised = start, False
    while parts[index].role is Role.OPEN and all(part.role is Role.CLOSE for part in parts[ends[index] : last + 1]):
        is_raised |= element_name(html, parts[index]) in _RAISED
        index += 1
    sign = _Sign(text, is_raised, "a" in names)
    return sign if is_raised or sign.is_number or sign.is_note or text in _JOINTS else None


def _left(html: str, parts: Sequence[Part], position: int) -> _Side:
    """Return the word that ends with the last of `parts`; it may have elements in it."""
    index, text = len(parts), ""
    while index and len(text) < _LONGEST and len(parts) - index < _MOST_PARTS:
        part = parts[index - 1]
        if part.role is Role.TEXT:
            raw = html[max(part.start, part.end - 4 * _LONGEST) : part.end]
            if not (match := _END.search(raw)):
                break
            index, position, text = index - 1, part.end - len(match[0]), match[0] + text
            if position > part.start:
                break
            continue
        start = index - 1
        if part.role is Role.CLOSE:
            depth = 1
            while depth and start and index - start < _MOST_PARTS:
                start -= 1
                depth += (parts[start].role is Role.CLOSE) - (parts[start].role is Role.OPEN)
            if depth:
                break
        elif part.role is not Role.KEPT:
            break
        inner = _joined(html, parts[start:index])
        if not inner:
            break
        index, position, text = start, parts[start].start, inner + text
    return _Side(index, position, text)


def _right(html: str, parts: Sequence[Part], last: int, ends: Mapping[int, int]) -> _Side:
    """Return the word that begins after the part `last`; it may have elements in it."""
    index, text, position = last, "", parts[last].end
    while index + 1 < len(parts) and len(text) < _LONGEST and index - last < _MOST_PARTS:
        part = parts[index + 1]
        if part.role is Role.TEXT:
            match = _BEGINNING.match(html[part.start : min(part.end, part.start + 4 * _LONGEST)])
            if not match:
                break
            index, position, text = index + 1, part.start + match.end(), text + match[0]
            if position < part.end:
                break
            continue
        end = ends.get(index + 1, -1) if part.role is Role.OPEN else index + 1
        if part.role not in (Role.OPEN, Role.KEPT) or not index < end < index + _MOST_PARTS:
            break
        inner = _joined(html, parts[index + 1 : end + 1])
        if not inner:
            break
        index, position, text = end, parts[end].end, text + inner
    return _Side(index, position, text)


def _joined(html: str, parts: Sequence[Part]) -> str:
    """Return the text of an element if it is part of a formula, else nothing."""
    if parts[-1].end - parts[0].start > _MOST_PARTS * 80:
        return ""
    text = "".join(shown(html[part.start : part.end], part.role) for part in parts)
    return text if len(text) <= _LONGEST and re.fullmatch(r"[\w+\-−–@.]+", text) else ""


def _use_of(sign: _Sign, left: str, right: str, before: str) -> _Use | None:
    """Return whether a sign is a mark, or a part of the words that touch it, or neither (`None`).

    `before` is the character before it, if that is no white space.
    """
    if sign.is_note or (sign.is_raised and sign.is_link and len(sign.text) <= 4):
        return _Use.MARK if before or sign.is_raised else None
    if sign.text in _JOINTS:
        return _Use.PART if left and right and (sign.text == "@" or "@" in left) else None
    if not left and not right:
        is_short = len(sign.text) <= 2 or not any(map(str.isalpha, sign.text))
        return _Use.MARK if sign.is_raised and is_short else None
    if all(_is_word(text) for text in (left, right) if text):
        if _CHARGE.fullmatch(sign.text) and len(left) <= 3:
            return _Use.PART
        return None if left and right and not sign.is_number else _Use.MARK
    return _Use.PART


def _is_word(text: str) -> bool:
    """Return whether a text seems to be a word of a sentence, and not part of a formula, a unit or a number."""
    return len(text) > 1 and text.isalpha() and text.lower() not in _UNITS and text[1:] == text[1:].lower()
