"""Distribution of words over lines of about equal lengths, and over cues in given proportions; tags have no width."""

import re
import unicodedata
from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate, chain, pairwise

from service.documents.inline import Kind, Piece, partners_of
from service.text.long_segments import is_one_character

_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_SIGN = re.compile(rf"(?:(?!{_UNSPACED.pattern})\w)+|.")
_WORD = re.compile("[^ ]+| ")
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
    """Divide pieces into as many runs of words as there are lengths, in about their proportions; none is empty.

    A cut closes pairs and opens them again. If there are fewer words than runs, the last one is repeated.
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
    every = _words(pieces)
    runs = (list(chain.from_iterable(every[start:end])) for start, end in pairwise(_bounds(every, lengths)))
    return [run[1:] if run and run[0].text == " " else run for run in runs]


def _bounds(every: Sequence[Word], lengths: Sequence[int]) -> list[int]:
    """Return where runs of words begin, and the end: each cut is between the places of its neighbours."""
    num_runs = min(len(lengths), len(every))
    ends = [0, *accumulate(len(_text(word)) for word in every)]
    scale = (ends[-1] + 1) / sum(lengths)
    goals = [goal * scale - 1 for goal in accumulate(lengths, initial=0)]
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
    """Return the words of pieces, or characters where words have no spaces between them.

    Each has the space before it, then what opens, and the tags in it and after it; none is without text.
    """
    is_unspaced = 2 * len(_UNSPACED.findall(_text(pieces))) > len(_text(pieces))
    found: list[Word] = [[]]
    opened: Word = []
    has_text = is_apart = False  # the last one has, and there is a space after it
    for piece in pieces:
        texts = (_SIGN if is_unspaced else _WORD).findall(_SPACE.sub(" ", piece.text))
        for part in [Piece(Kind.TEXT, text=text) for text in texts] if piece.kind is Kind.TEXT else [piece]:
            if part.kind is Kind.OPEN:
                opened.append(part)
            elif part.text == " ":
                is_apart = True
            else:
                if (is_apart or is_unspaced) and part.kind is not Kind.CLOSE:
                    if has_text:
                        found.append([])
                    found[-1] += [Piece(Kind.TEXT, text=" ")] * is_apart
                    has_text = is_apart = False
                found[-1] += (*opened, part)
                opened.clear()
                has_text |= part.kind is Kind.TEXT
    found[-1] += opened
    if len(found) > 1 and not has_text:
        found[-2:] = [found[-2] + found[-1]]
    return found


def _cost(before: Word, after: Word) -> float:
    text, following = _text(before), _text(after).lstrip()
    if text and following and (is_one_character(text[-1], following[0]) or _is_closing(following)):
        return 1
    last = text.rstrip("\"'”’»」』)")[-1:]
    is_between_pairs = before[-1].kind is Kind.CLOSE and any(piece.kind is Kind.OPEN for piece in after[:2])
    if is_between_pairs or (last and last in ".!?…。！？।؟"):
        return 0
    return _AFTER_SENTENCE - _AFTER_COMMA if last and last in ",;:，、；：،" else _AFTER_SENTENCE


def _is_closing(text: str) -> bool:
    return all(unicodedata.category(sign) in ("Pe", "Pf", "Po") and sign not in "&@#*§¡¿" for sign in text)


def _text(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces)
