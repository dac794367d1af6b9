"""Raised and lowered signs, which stay with what they belong to: `H₂O`, `m²`, `word¹`."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

_WORD_BEFORE = re.compile(r"[^\W_]{1,40}\Z")
_WORD_AFTER = re.compile(r"[^\W_]{1,40}")
_MAX_RAISED = 12  # characters
# A unit of measurement, the name of a quantity, a number, or a chemical formula.
_SHORT = re.compile(r"\w{1,2}|\d{1,40}|(?:[A-Z][a-z]?){2,20}")
_TRADE_MARKS = ("TM", "SM", "R", "C", "®", "™", "©")


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
        unit = _unit(parts, index, units[-1] if units else None)
        if unit is not None:
            units.append(unit)
            index = unit.last + 1
            continue
        if _is_mark(part[0]):
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


def _unit(parts: Sequence[tuple[str, bool] | None], index: int, last: Unit | None) -> Unit | None:
    """Return the word that the sign at `index` is in; none if it is a mark behind a word."""
    before = parts[index - 1] if index else None
    word = _WORD_BEFORE.search(before[0]) if before and not before[1] else None
    if word is None:
        return None
    start = word.start()
    if last and last.last == index - 1:
        start = max(start, last.last_character)
    end, character = index, 0
    is_inside = False
    while end < len(parts):
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
        is_inside = True
        character = after.end()
        if character < len(part[0]):
            break
        end, character = end + 1, 0
    if end == index:
        return None
    if not character:
        end -= 1
        found = parts[end]
        assert found is not None
        character = len(found[0])
    if not is_inside and not _SHORT.fullmatch(word[0]):
        return None
    sign = parts[index]
    assert sign is not None
    if sign[0].isalpha() and (sign[0] in _TRADE_MARKS or word.end() - start > 1 or not word[0].isalpha()):
        return None
    return Unit(index - 1, start, end, character)


def _is_sign(text: str) -> bool:
    return 0 < len(text.strip()) <= _MAX_RAISED and not any(map(str.isspace, text.strip()))


def _is_mark(text: str) -> bool:
    return _is_sign(text) and (text.strip() in _TRADE_MARKS or not text.strip().isalpha())
