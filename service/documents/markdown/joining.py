"""Pieces of a sentence that stay together, as one piece: what a translator could take apart, and must not."""

import re
from collections.abc import Iterable, Sequence

from service.documents.inline import Kind, Piece
from service.documents.markdown.spans import ATTRIBUTES, compiled

_NO_SIGN = re.compile(r"[^\s,;:/+-]")  # what would be escaped, or translated
_SIGN = re.compile(r"[+/-]{1,3}")
_RAISED = re.compile(r"[~^]|<su[bp](?:\s[^<>]*)?>", re.IGNORECASE)
_RAISED_TEXT = re.compile(r"(?!.*[^\W\d_]{4})\S{1,12}")
_MAX_RAISED = 12  # pieces
# The last word of a text if it is one that signs are added to: a letter or two, a number, several capitals or digits.
_FORMULA = re.compile(r"(?<![^\W_])(?:[^\W_]{1,2}|(?=[^\W_]*[A-Z0-9][^\W_]*[A-Z0-9])[^\W_]{1,20}|\d{1,20})\Z")
_FORMULA_END = re.compile(r"(?:[~^]|</su[bp]\s*>)[^\W_]*\Z", re.IGNORECASE)
_TAG = re.compile(r"</?([A-Za-z][\w.:-]*)")
_WORD_START = re.compile(r"[^\W_]+")


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces with those joined that stay together.

    These are markup with nothing but kept text in it, kept texts with only a sign between as in
    `<kbd>Ctrl</kbd>+<kbd>S</kbd>`, signs that are raised or lowered, and lists of attributes with what they belong to.
    """
    done: list[Piece] = []
    openings: list[int] = []
    num_fixed = 0  # pieces up to the last one with something to translate
    for piece in _balanced(pieces):
        last = done[-1] if done else Piece(Kind.TEXT)
        first = len(done)
        if piece.kind is Kind.OPEN:
            openings.append(first)
        elif piece.kind is Kind.CLOSE and openings:
            first = openings.pop()
        elif first > 1 and piece.kind is done[-2].kind is Kind.KEPT and _SIGN.fullmatch(last.text):
            first -= 2
        done.append(piece)
        is_whole = first < len(done) - 1
        if last.kind is not Kind.TEXT and compiled(ATTRIBUTES).fullmatch(piece.raw):
            done[-2:] = [last._replace(raw=last.raw + piece.raw)]
        elif piece.kind is Kind.TEXT and (rest := _WORD_START.match(piece.text)) and _is_formula(last):
            done[-2:] = [_one(Kind.KEPT, [last, *_text(rest[0])]), *_text(piece.text[rest.end() :])]
        elif is_whole and first and piece.kind is Kind.CLOSE and _RAISED.fullmatch(done[first].raw):
            _join_raised(done, first)
        elif is_whole and first >= num_fixed and any(each.kind is Kind.KEPT for each in done[first:]):
            done[first:] = [_one(Kind.KEPT, done[first:])]
        is_free = piece.kind in (Kind.KEPT, Kind.OPEN, Kind.CLOSE) or not (piece.raw or _NO_SIGN.search(piece.text))
        num_fixed = num_fixed if is_free else len(done)
    return done


def _balanced(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces with tags that have no partner, such as the word in `Array<String>`, as marks."""
    every = list(pieces)
    path: list[tuple[int, str]] = []  # pairs that are open: their index, and their name if they are tags
    num_open: dict[str, int] = {}

    def unpair(index: int, name: str) -> None:
        every[index] = every[index]._replace(kind=Kind.ORDERED)
        num_open[name] -= 1

    for index, piece in enumerate(every):
        name = match[1].lower() if (match := _TAG.match(piece.raw)) else ""
        if piece.kind is Kind.OPEN:
            path.append((index, name))
            num_open[name] = num_open.get(name, 0) + 1
        elif piece.kind is Kind.CLOSE:
            if name and not num_open.get(name):
                every[index] = piece._replace(kind=Kind.ORDERED)
                continue
            while path and path[-1][1] not in ("", name):
                unpair(*path.pop())
            if path and path[-1][1] == name:
                num_open[path.pop()[1]] -= 1
            else:  # it was opened before emphasis, and this is in it
                every[index] = piece._replace(kind=Kind.ORDERED)
    for index, name in path:
        unpair(index, name)
    return every


def _join_raised(done: list[Piece], first: int) -> None:
    """Join a raised sign with the word before, if that is one of a formula; else it is a mark at that word."""
    raised, before = done[first:], done[first - 1]
    is_simple = len(raised) < _MAX_RAISED and all(each.kind in (Kind.TEXT, Kind.OPEN, Kind.CLOSE) for each in raised)
    if not is_simple or not _RAISED_TEXT.fullmatch("".join(each.text for each in raised)):
        return
    if _is_formula(before):
        done[first - 1 :] = [_one(Kind.KEPT, [before, *raised])]
    elif before.kind is Kind.TEXT and (word := _FORMULA.search(before.text)):
        done[first - 1 :] = [*_text(before.text[: word.start()]), _one(Kind.KEPT, [*_text(word[0]), *raised])]
    elif not before.text[-1:].isspace():
        done[first:] = [_one(Kind.MARK, raised)]


def _is_formula(piece: Piece) -> bool:
    return piece.kind is Kind.KEPT and _FORMULA_END.search(piece.raw) is not None


def _text(text: str) -> list[Piece]:
    return [Piece(Kind.TEXT, text=text)] if text else []


def _one(kind: Kind, pieces: Sequence[Piece]) -> Piece:
    return Piece(kind, "".join(each.raw or each.text for each in pieces), "".join(each.text for each in pieces))
