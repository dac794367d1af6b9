"""Signs that belong to the word beside them: superscripts and subscripts, digits, and signs of notes in an element.

The model would take them for words of the sentence, and translate or move them. So a formula (`H<sub>2</sub>O`,
`10 m<sup>2</sup>`, `1<sup>st</sup>`) is copied as a whole, with its tags, and a note (`word<sup>1</sup>`) is a mark
behind its word, which the model never sees.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from service.domain.checkpoint import checkpoint
from service.text.markup.parts import Part, Role, element_name, partners, shown
from service.text.words import UNSPACED

_RAISED = frozenset({"sub", "sup"})
_LONGEST = 24  # characters of such a sign, and of what it belongs to on each side
_LONGEST_HTML = 2_000  # and of it with its tags,
_MOST_PARTS = 24  # and parts of these
_WORD = rf"(?:[^\W_{UNSPACED}]|(?<=\d)[.,](?=\d)|&(?!nbsp|\w*sp;)[A-Za-z]{{2,8}};){{1,{_LONGEST}}}+"
_BEGINNING, _END = re.compile(_WORD), re.compile(_WORD + r"\Z")
_PART_OF_FORMULA = re.compile(r"[\w+\-−–@.]{1,24}")
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


class _Side(NamedTuple):
    """A word beside a sign: how many parts it is in, its outer position in the HTML, and its text."""

    num_parts: int
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
            left = _word_beside(html, result, part.start, is_left=True)
            right = _word_beside(html, parts[last + 1 : last + 1 + _MOST_PARTS], parts[last].end, is_left=False)
            nearby = (shown(html[each.start : each.end], each.role) for each in reversed(result[-_MOST_PARTS:]))
            role = _role_of(sign, left.text, right.text, next(filter(None, nearby), "")[-1:].strip())
            if role is Role.MARK:
                result.append(Part(role, part.start, parts[last].end))
                index = last + 1
                continue
            if role is Role.KEPT:
                outer = result[len(result) - left.num_parts :][:1]
                del result[len(result) - left.num_parts :]
                if outer and outer[0].start < left.position:
                    result.append(Part(Role.TEXT, outer[0].start, left.position))
                result.append(Part(role, left.position, right.position))
                index = last + 1 + right.num_parts
                if right.position < parts[index - 1].end:
                    index -= 1
                    parts[index] = Part(Role.TEXT, right.position, parts[index].end)
                continue
        result.append(part)
        index += 1
    return result


def short_text(html: str, parts: Sequence[Part]) -> str:
    """Return the text of an element's parts, if that may be a sign; nothing if it is too long."""
    if len(parts) > _MOST_PARTS or parts[-1].end - parts[0].start > _LONGEST_HTML:
        return ""
    text = "".join(shown(html[part.start : part.end], part.role) for part in parts)
    return text if len(text) <= _LONGEST or text.isspace() else ""


def _sign(html: str, parts: Sequence[Part], start: int, ends: Mapping[int, int]) -> _Sign | None:
    last = ends[start]
    text = short_text(html, parts[start:last])
    if not text or any(map(str.isspace, text)):
        return None
    names = [element_name(html, part) for part in parts[start:last] if part.role is Role.OPEN]
    index, is_raised = start, False
    while parts[index].role is Role.OPEN and all(part.role is Role.CLOSE for part in parts[ends[index] : last + 1]):
        is_raised |= element_name(html, parts[index]) in _RAISED
        index += 1
    sign = _Sign(text, is_raised, "a" in names)
    return sign if is_raised or sign.is_number or sign.is_note or text in _JOINTS else None


def _word_beside(html: str, parts: Sequence[Part], position: int, *, is_left: bool) -> _Side:
    """Return the word at a position, which is the end of `parts` or their start; it may have elements in it."""
    near = parts[-_MOST_PARTS:] if is_left else parts[:_MOST_PARTS]
    ends = partners(near)
    num_parts, text = 0, ""
    while num_parts < len(near) and len(text) < _LONGEST:
        index = len(near) - 1 - num_parts if is_left else num_parts
        part, other = near[index], ends.get(index, index)
        if part.role is Role.TEXT and is_left:
            found = _END.search(html[max(part.start, part.end - 4 * _LONGEST) : part.end])
        elif part.role is Role.TEXT:
            found = _BEGINNING.match(html[part.start : min(part.end, part.start + 4 * _LONGEST)])
        elif part.role is Role.KEPT or other != index:
            first, last = sorted((index, other))
            part = Part(Role.KEPT, near[first].start, near[last].end)
            found = _PART_OF_FORMULA.fullmatch(short_text(html, near[first : last + 1]))
        else:
            break
        if not found:
            break
        num_parts += abs(other - index) + 1
        text = found[0] + text if is_left else text + found[0]
        length = len(found[0]) if part.role is Role.TEXT else part.end - part.start
        position = part.end - length if is_left else part.start + length
        if length < part.end - part.start:
            break
    return _Side(num_parts, position, text)


def _role_of(sign: _Sign, left: str, right: str, before: str) -> Role | None:
    """Return a sign's role: a mark, kept with the words that touch it, or neither (`None`); `before` is the character
    before it, if that is no white space."""
    if sign.is_note or (sign.is_raised and sign.is_link and len(sign.text) <= 4):
        return Role.MARK if before or sign.is_raised else None
    if sign.text in _JOINTS:
        return Role.KEPT if left and right and (sign.text == "@" or "@" in left) else None
    if not left and not right:
        is_short = len(sign.text) <= 2 or not any(map(str.isalpha, sign.text))
        return Role.MARK if sign.is_raised and is_short else None
    if all(_is_word(text) for text in (left, right) if text):
        if _CHARGE.fullmatch(sign.text) and len(left) <= 3:
            return Role.KEPT
        return None if left and right and not sign.is_number else Role.MARK
    return Role.KEPT


def _is_word(text: str) -> bool:
    """Return whether a text seems to be a word of a sentence, and not part of a formula, a unit or a number."""
    return len(text) > 1 and text.isalpha() and text.lower() not in _UNITS and text[1:] == text[1:].lower()
