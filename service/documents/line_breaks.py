"""Words over lines of about equal lengths, and over cues in given proportions; tags have no width."""

import re
import unicodedata
from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from service.documents.inline import Kind, Piece, partners_of
from service.text.long_segments import is_one_character

_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_SIGN = re.compile(rf"(?:(?!{_UNSPACED.pattern})\w)+|.")
_SPACE = re.compile(r"[^\S\u00a0\u2007\u202f]+")  # at which a line may be broken
# By how much of the whole a cut may be further from its place to be after a mark.
_AFTER_SENTENCE, _AFTER_COMMA = 0.1, 0.05

Word = list[Piece]


def broken_lines(pieces: Sequence[Piece], write: Callable[[str], str], num_lines: int) -> list[str]:
    """Return at most `num_lines` lines of about equal lengths; `write` encodes text."""
    lines = (
        "".join(write(piece.text) if piece.kind is Kind.TEXT else piece.raw for piece in run).strip()
        for run in _runs(pieces, [1] * num_lines)
    )
    return [line for line in lines if line]


def shares(pieces: Sequence[Piece], lengths: Sequence[int]) -> list[list[Piece]]:
    """Return pieces in as many runs of words as there are lengths, in about their proportions; none is empty.

    Pairs that a cut is in are closed before it and opened again after it. If there are fewer words than runs, the last
    one is repeated.
    """
    if len(lengths) == 1:
        return [list(pieces)]
    closings = {id(pieces[start]): pieces[end] for start, end in partners_of(pieces).items()}
    found: list[list[Piece]] = []
    is_open: list[Piece] = []
    for run in _runs(pieces, lengths):
        opened = list(is_open)
        for piece in run:
            if piece.kind is Kind.OPEN:
                is_open.append(piece)
            elif piece.kind is Kind.CLOSE and is_open:
                is_open.pop()
        found.append([*opened, *run, *(closings[id(piece)] for piece in reversed(is_open))])
    return found + [found[-1]] * (len(lengths) - len(found))


def _runs(pieces: Sequence[Piece], lengths: Sequence[int]) -> list[list[Piece]]:
    """Return pieces in runs of words, at most one for each length, in about their proportions."""
    is_unspaced = _is_unspaced(pieces)
    joint = [] if is_unspaced else [Piece(Kind.TEXT, text=" ")]
    every = _without_bare_tags(_characters(pieces) if is_unspaced else _words(pieces), joint)
    bounds = _bounds(every, lengths)
    return [_joined(every[start:end], joint) for start, end in pairwise(bounds)]


def _joined(every: Sequence[Word], joint: Word) -> list[Piece]:
    return [piece for word in every for piece in (*joint, *word)][len(joint) :]


def _bounds(every: Sequence[Word], lengths: Sequence[int]) -> list[int]:
    """Return where runs of words begin, and the end: each cut is between the places of its neighbours."""
    num_runs = min(len(lengths), len(every))
    ends = [0, *accumulate(_width(word) + 1 for word in every)]
    goals = [goal / sum(lengths) * ends[-1] for goal in accumulate(lengths, initial=0)]
    bounds = [0]
    for run in range(1, num_runs):
        latest = len(every) - (num_runs - run)
        first = max(bounds[-1] + 1, min(latest, bisect(ends, goals[run - 1])))
        last = max(first, min(latest, bisect(ends, goals[run + 1])))
        goal = goals[run]
        places = range(first, last + 1)
        bounds.append(min(places, key=lambda at: abs(ends[at] - goal) + ends[-1] * _cost(every[at - 1], every[at])))
    return [*bounds, len(every)]


def _words(pieces: Sequence[Piece]) -> list[Word]:
    """Return the words of pieces, each with the tags in it and after it, and what opens before it.

    White space is between them.
    """
    found: list[Word] = [[]]
    for piece in pieces:
        if piece.kind is not Kind.TEXT:
            found[-1].append(piece)
            continue
        for index, part in enumerate(_SPACE.split(piece.text)):
            if index:
                opened = len(found[-1])
                while opened and found[-1][opened - 1].kind is Kind.OPEN:
                    opened -= 1
                found.append(found[-1][opened:])
                del found[-2][opened:]
            if part:
                found[-1].append(Piece(Kind.TEXT, text=part))
    return found


def _cost(before: Word, after: Word) -> float:
    text, following = _text(before), _text(after)
    if text and following and (is_one_character(text[-1], following[0]) or _is_closing(following)):
        return 1
    last = text.rstrip("\"'”’»」』)")[-1:]
    if (last and last in ".!?…。！？।؟") or (before[-1].kind is Kind.CLOSE and after[0].kind is Kind.OPEN):
        return 0
    return _AFTER_SENTENCE - _AFTER_COMMA if last and last in ",;:，、；：،" else _AFTER_SENTENCE


def _is_closing(text: str) -> bool:
    return all(unicodedata.category(sign) in ("Pe", "Pf", "Po") and sign not in "&@#*§¡¿" for sign in text)


def _is_unspaced(pieces: Sequence[Piece]) -> bool:
    text = "".join(piece.text for piece in pieces)
    return 2 * len(_UNSPACED.findall(text)) > len(text)


def _characters(pieces: Sequence[Piece]) -> list[Word]:
    """Return what is written without spaces by characters, but words of other scripts."""
    found: list[Word] = []
    for piece in pieces:
        if piece.kind is Kind.TEXT:
            found += ([Piece(Kind.TEXT, text=sign)] for sign in _SIGN.findall(_SPACE.sub(" ", piece.text)))
        else:
            found.append([piece])
    return found


def _without_bare_tags(every: Sequence[Word], joint: Word) -> list[Word]:
    """Return the words, with those without text joined to a neighbour."""
    found: list[Word] = []
    pending: Word = []
    for word in filter(None, every):
        if _text(word).strip():
            found.append(pending + word)
            pending = []
        elif not found or any(piece.kind is Kind.OPEN for piece in word):
            pending += word + joint
        else:
            found[-1] += joint + word
    if pending:
        found[-1:] = [(found[-1] + joint if found else []) + pending]
    return found


def _text(word: Word) -> str:
    return "".join(piece.text for piece in word if piece.kind is Kind.TEXT)


def _width(word: Word) -> int:
    return len(_text(word))
