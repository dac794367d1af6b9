"""Raised and lowered signs, which stay with what they belong to: `H₂O`, `m²`, `word¹`."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from service.text.raised_signs import Sign, Use, use_of

_WORD_BEFORE = re.compile(r"[^\W_]{1,40}\Z")
_WORD_AFTER = re.compile(r"[^\W_]{1,40}")
_MAX_RAISED = 12  # characters
_REGISTERED = ("R", "C")
_MOST_PARTS = 24  # of a word

P = TypeVar("P")


class Unit(NamedTuple):
    """What is one word: from a character of a part to before one of another part."""

    first: int
    first_character: int
    last: int
    last_character: int


def units_of(parts: Sequence[tuple[str, bool] | None]) -> tuple[list[Unit], list[int]]:
    """Return the words that have raised or lowered signs in them, and which of the other such signs are marks.

    Each of `parts` is a text, with whether it is raised or lowered, or `None` for anything else. A mark is the number
    of a note or the like: it follows its word, and nothing of it is translated. Letters that are neither, such as those
    of an ordinal, are in no answer.
    """
    units: list[Unit] = []
    marks: list[int] = []
    index = 0
    while index < len(parts):
        part = parts[index]
        if part is None or not part[1]:
            index += 1
            continue
        unit, use = _unit(parts, index, units[-1] if units else None)
        if unit is not None and use is Use.PART:
            units.append(unit)
            index = unit.last + 1
            continue
        if use is Use.MARK:
            marks.append(index)
        index += 1
    return units, marks


def merged(
    pieces: Sequence[P],
    texts: Sequence[tuple[str, bool] | None],
    cut: Callable[[P, int, int], P],
    joined: Callable[[Sequence[P]], P],
    as_mark: Callable[[P], P],
) -> list[P]:
    """Return pieces with `joined` ones for the units of their texts, which `units_of` describes, and with the marks.

    `cut` returns the part of a piece from one character of its text to before another one.
    """
    units, marks = units_of(texts)
    all_marks = frozenset(marks)
    by_first = {unit.first: unit for unit in reversed(units)}
    output: list[P] = []
    index, begin = 0, 0  # the next piece, and what is taken of its text
    while index < len(pieces):
        piece, text = pieces[index], texts[index]
        unit = by_first.get(index)
        if unit is None:
            if begin and text is not None:
                piece = cut(piece, begin, len(text[0]))
            output.append(as_mark(piece) if index in all_marks else piece)
            index, begin = index + 1, 0
            continue
        assert text is not None
        if begin < unit.first_character:
            output.append(cut(piece, begin, unit.first_character))
        inner = [cut(piece, unit.first_character, len(text[0])), *pieces[index + 1 : unit.last]]
        output.append(joined([*inner, cut(pieces[unit.last], 0, unit.last_character)]))
        index, begin = unit.last, unit.last_character
        last = texts[index]
        if last is not None and begin == len(last[0]) and index not in by_first:
            index, begin = index + 1, 0
    return output


def _unit(parts: Sequence[tuple[str, bool] | None], index: int, last: Unit | None) -> tuple[Unit | None, Use | None]:
    """Return the word that the sign at `index` is in, if there is one before it, and what the sign is for."""
    before = parts[index - 1] if index else None
    text_before = before[0] if before and not before[1] else ""
    word = _WORD_BEFORE.search(text_before)
    start = word.start() if word else len(text_before)
    if last and last.last == index - 1:
        start = max(start, last.last_character)
    left, right = text_before[start:], ""
    end, character = index, 0
    while end < min(len(parts), index + _MOST_PARTS):
        part = parts[end]
        if part is None:
            break
        if part[1]:
            if not _is_sign(part[0]):
                break
            end, character = end + 1, 0
            continue
        after = _WORD_AFTER.match(part[0])
        if after is None:
            break
        right = right or after[0]
        character = after.end()
        if character < len(part[0]):
            break
        end, character = end + 1, 0
    sign = parts[index]
    if end == index or sign is None:
        return None, None
    if not character:
        end -= 1
        found = parts[end]
        assert found is not None
        character = len(found[0])
    raised = Sign(sign[0].strip())
    is_letters = raised.text.isalpha() and not raised.is_note and raised.text not in _REGISTERED
    if is_letters and (len(left) > 1 or not left.isalpha()):
        return None, None  # of an ordinal, or a word
    unit = Unit(index - 1, start, end, character) if left else None
    return unit, use_of(raised, left, right, text_before[-1:].strip())


def _is_sign(text: str) -> bool:
    return 0 < len(text.strip()) <= _MAX_RAISED and not any(map(str.isspace, text.strip()))
