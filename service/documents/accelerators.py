"""Accelerators in labels: the letter that chooses an item of a menu, after a sign: `&File`, `_File`, `~File`, `&&File`.

The sign is removed before translation and put before a letter afterwards, if possible the same: it is unique there.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.documents.inline import Kind, Piece
from service.text.placeholders import find_placeholders

_SIGN = re.compile(r"(&&|[&_~])(?=[^\W_])|__|~~")  # the last two are signs that are shown
_EMPHASIS = re.compile(r"(?<!_)_(?!\w)")  # the end of what Markdown begins with the same sign
_WORD_START = re.compile(r"(?<!\w)[^\W_]")
_WORD = re.compile(r"\w*")
SIGNS = "&_~"
_MAX_WORDS = 12  # of a label
_MAX_CHARACTERS = 200
_EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL")


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A sign, and the letter after it."""

    sign: str
    letter: str


def without_accelerator(pieces: Sequence[Piece], signs: str = SIGNS) -> tuple[list[Piece], Accelerator | None]:
    """Return the pieces of a text without the sign of its accelerator; a text with several has none.

    A single sign of `signs` counts within words, too, as in `prox&y`; with several, none is certain.
    """
    every = list(pieces)
    label = "".join(piece.text for piece in every if piece.kind is Kind.TEXT)
    if len(label) > _MAX_CHARACTERS or label.count(" ") >= _MAX_WORDS:
        return every, None
    found = [
        (index, match.start(), match[1])
        for index, piece in enumerate(every)
        if piece.kind is Kind.TEXT
        for match in _SIGN.finditer(piece.text)
        if match[1]
        and match[1][0] in signs
        and _is_accelerator(piece.text, match.start(), match.end(), is_sure=len(signs) == 1)
    ]
    if len(found) != 1 or (found[0][2] == "_" and _EMPHASIS.search(label)):
        return every, None
    [(index, place, sign)] = found
    text = every[index].text
    rest = text[place + len(sign) :]
    every[index] = Piece(Kind.TEXT, text=text[:place] + rest)
    return every, Accelerator(sign, rest[0])


def with_accelerator(pieces: Sequence[Piece], accelerator: Accelerator) -> list[Piece]:
    """Return the pieces of a translation with the sign before one of its letters; after it where scripts have none."""
    every = list(pieces)
    best = min(_places(every, accelerator.letter.casefold()), default=None)
    if best is None:
        return every
    _, index, place = best
    text = every[index].text
    if unicodedata.name(text[place], "").startswith(_EAST_ASIAN):
        last = max(i for i, piece in enumerate(every) if piece.kind is Kind.TEXT and not piece.text.isspace())
        text = every[last].text
        end = _end(text)
        added = f"({accelerator.sign}{accelerator.letter.upper()})"
        every[last] = Piece(Kind.TEXT, text=text[:end] + added + text[end:])
    else:
        every[index] = Piece(Kind.TEXT, text=text[:place] + accelerator.sign + text[place:])
    return every


def _end(text: str) -> int:
    end = len(text)
    while end and (text[end - 1].isspace() or text[end - 1] in ".…:：。"):
        end -= 1
    return end


def _is_accelerator(text: str, place: int, end: int, *, is_sure: bool) -> bool:
    """Return whether a sign is that of an accelerator, and not a part of a name, a path or a query."""
    before, after = text[place - 1 : place], text[end]
    word = _WORD.match(text, end)
    assert word is not None
    following = text[word.end() : word.end() + 1]
    if following in ("=", ";", "/", "("):
        return False
    start = place
    while start and text[start - 1].isalnum():
        start -= 1
    if start < place and not (after.islower() and (is_sure or text[start].isupper())):
        return False  # two names, or two words
    if text[place] == "&":
        return not before.isdigit()
    is_free = not start or text[start - 1] in " \t\n([{\"'“„«-/…"
    return is_free and after.isalpha() and "_" not in word[0] and (start == place or word[0].islower())


def _places(pieces: Sequence[Piece], letter: str) -> Iterator[tuple[int, int, int]]:
    """Yield possible places of the sign: how bad each is, from 0, the piece, and the position in it."""
    for index, piece in enumerate(pieces):
        if piece.kind is not Kind.TEXT:
            continue
        starts = {match.start() for match in _WORD_START.finditer(piece.text)}
        taken = {place for span in find_placeholders(piece.text) for place in range(*span)}
        for place, character in enumerate(piece.text):
            if not character.isalnum() or place in taken:
                continue
            if character.casefold() == letter:
                yield (0 if place in starts else 1), index, place
            elif place in starts:
                yield (2 if character.isalpha() else 3), index, place
