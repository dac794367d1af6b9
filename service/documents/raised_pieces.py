"""Pieces of strings with raised and lowered signs, which their tags tell."""

import re
from collections.abc import Callable, Sequence

from service.documents.inline import Kind, Piece
from service.documents.raised import merged

_RAISED = re.compile(r"(?:^|[\"':_-])(?:su[bp](?:erscript|script)?)\b|(?:<|&lt;)su[bp]\b", re.IGNORECASE)


def with_raised(pieces: list[Piece], write: Callable[[str], str]) -> list[Piece]:
    """Return the pieces with what is raised or lowered as a part of its word, or as a mark behind it.

    `write` makes what a file has for a text.
    """

    def joined(parts: Sequence[Piece]) -> Piece:
        raw = "".join(write(piece.text) if piece.kind is Kind.TEXT else piece.raw for piece in parts)
        return Piece(Kind.KEPT, raw, "".join(piece.text for piece in parts))

    every: list[Piece] = []
    pairs: dict[int, list[Piece]] = {}  # by the ids of the pieces that stand for them
    index = 0
    while index < len(pieces):
        pair = pieces[index : index + 3]
        kinds = [piece.kind for piece in pair]
        if kinds == [Kind.OPEN, Kind.TEXT, Kind.CLOSE] and _RAISED.search(pair[0].raw):
            every.append(joined(pair))
            pairs[id(every[-1])] = pair
            index += 3
        else:
            every.append(pieces[index])
            index += 1
    if not pairs:
        return pieces
    texts = [
        (piece.text, id(piece) in pairs) if piece.kind is Kind.TEXT or id(piece) in pairs else None for piece in every
    ]
    found = merged(every, texts, _cut, joined, lambda piece: Piece(Kind.MARK, piece.raw))
    return [part for piece in found for part in pairs.get(id(piece), [piece])]


def _cut(piece: Piece, start: int, end: int) -> Piece:
    return piece if piece.kind is not Kind.TEXT else Piece(Kind.TEXT, text=piece.text[start:end])
