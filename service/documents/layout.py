"""Splits a string at tabs; beside markup also at line ends, columns and the skeleton of ICU's messages."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from service.documents.document import has_words
from service.documents.inline import AnyPiece, Kind, Piece
from service.text.placeholders.messages import find_messages

# In HTML, as which texts with markup are translated, all white space is one space.
_SPACES = re.compile(r"[ \t\r\n]{2,}+|[\t\n]")
_COLUMNS = re.compile(r"\t|\n[ ]{2}")
_ICU = re.compile(r"\{\s{0,20}[\w.]{1,60}\s{0,20},\s{0,20}(?:plural|select|selectordinal)\s{0,20},")
_MARKUP = "\ufffc"  # stands for a piece of markup: Unicode's object replacement character


P = TypeVar("P", bound=AnyPiece)


def laid_out(pieces: Sequence[Piece], write: Callable[[str], str] = str) -> list[Piece]:
    """Return the pieces of a string with a line break for everything text never moves across; `write` writes its text.

    A plural or a choice within a sentence of plain text is left to the translator.
    """
    if all(piece.kind is Kind.TEXT for piece in pieces):
        text = "".join(piece.text for piece in pieces)
        if not _COLUMNS.search(text) and not _ICU.match(text.lstrip()):
            return list(pieces)
        pieces = [Piece(Kind.TEXT, text=text)]
    return [part for piece in _without_skeleton(pieces, write) for part in _split(piece, write)]


def _split(piece: Piece, write: Callable[[str], str]) -> Iterator[Piece]:
    if piece.kind is not Kind.TEXT:
        yield piece
        return
    done = 0
    for match in _SPACES.finditer(piece.text):
        yield Piece(Kind.TEXT, text=piece.text[done : match.start()])
        yield Piece(Kind.BREAK, write(match[0]))
        done = match.end()
    yield Piece(Kind.TEXT, text=piece.text[done:])


def apart(pieces: Sequence[P], is_element: Callable[[P], bool], separate: Callable[[P | None], P]) -> list[P]:
    """Return pieces with line breaks between elements that stand alone, such as the items of a menu.

    `is_element` recognizes their openings, and `separate` makes a line break of what is between two of them, if
    anything.
    """
    depth = 0
    places: list[int] = []  # of the pieces that are in no pair
    openings: list[int] = []
    for place, piece in enumerate(pieces):
        depth -= piece.kind is Kind.CLOSE
        if depth == 0 and piece.kind is Kind.OPEN:
            openings.append(place)
        elif depth == 0 and piece.kind is not Kind.CLOSE:
            places.append(place)
        depth += piece.kind is Kind.OPEN
    if len(openings) < 2 or depth or not all(is_element(pieces[place]) for place in openings):
        return list(pieces)
    if any(pieces[place].kind is Kind.KEPT or has_words(pieces[place].text) for place in places):
        return list(pieces)
    between = {place for place in places if pieces[place].kind is Kind.TEXT and openings[0] < place < openings[-1]}
    output: list[P] = []
    later = frozenset(openings[1:])
    for place, piece in enumerate(pieces):
        if place in later and pieces[place - 1].kind is Kind.CLOSE:
            output.append(separate(None))
        output.append(separate(piece) if place in between else piece)
    return output


def _without_skeleton(pieces: Sequence[Piece], write: Callable[[str], str]) -> Iterator[Piece]:
    """Yield the pieces with breaks for all of ICU's messages but their texts, which may have markup in them."""
    text = "".join(piece.text if piece.kind is Kind.TEXT else _MARKUP for piece in pieces)
    parts = iter([*find_messages(text), (len(text), len(text), True)] if _ICU.search(text) else ())
    start, end, is_apart = next(parts, (len(text), len(text), True))
    done = stop = 0
    for piece in pieces:
        if piece.kind is not Kind.TEXT:
            yield piece
            done = stop = stop + len(_MARKUP)
            continue
        stop += len(piece.text)
        while start < stop:
            yield Piece(Kind.TEXT, text=text[done:start])
            raw = text[start:end]
            yield Piece(Kind.BREAK, write(raw)) if is_apart else Piece(Kind.KEPT, write(raw), raw)
            done = end
            start, end, is_apart = next(parts)
        yield Piece(Kind.TEXT, text=text[done:stop])
        done = max(done, stop)
