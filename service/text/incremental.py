"""Incremental detokenization: words as soon as they are complete; concatenated, they are the whole text."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Protocol

from service.text.indic.tokenizer import IndicTokenizer
from service.text.words import UNSPACED

# Chinese and Japanese punctuation is also written without spaces.
_UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}\\u3000-\\u303f\\uff00-\\uffef]")
_JOINERS = "\u200c\u200d"

_LONGEST_WORD = 128  # characters; anything longer is not a word, and is emitted in parts
_MAX_WINDOW = 64  # tokens that are decoded again each time
_KEPT = 32  # tokens that remain when the window advances
_CONTEXT = 8  # characters by which a position is found again in the text of fewer tokens


class PieceDecoder(Protocol):
    """The part of `Tokenizer` that incremental decoding needs."""

    def decode(self, token_ids: Sequence[int]) -> str: ...
    def decode_settled(self, token_ids: Sequence[int]) -> str: ...


class IncrementalDecoder:
    """Turns the growing token ids of one sequence into parts of its text, each emitted once and never changed.

    Parts end before the space after a word, so a word is emitted as soon as the next one begins; in scripts without
    spaces, after each character with its marks; in words longer than `_LONGEST_WORD` characters, anywhere. All parts
    together begin the text of all ids.
    """

    def __init__(self, tokenizer: PieceDecoder) -> None:
        self._tokenizer = tokenizer
        self._start = 0  # the first token of the window: ids before it are not decoded again
        self._emitted = 0  # characters of the window's text that were emitted

    def feed(self, token_ids: Sequence[int]) -> str:
        """Return the new text of a growing sequence; `token_ids` are all of its ids so far."""
        window = token_ids[self._start :]
        text = self._tokenizer.decode_settled(window)
        end = _end_of_words(text, self._emitted)
        part = text[self._emitted : end]
        self._emitted = end
        # With an IndicTokenizer, what a quotation mark is depends on all before it.
        if len(window) > _MAX_WINDOW and not isinstance(self._tokenizer, IndicTokenizer):
            self._move(token_ids, text)
        return part

    def _move(self, token_ids: Sequence[int], text: str) -> None:
        """Advance the window, unless the ids dropped affect how the text of the remaining ones ends."""
        start = len(token_ids) - _KEPT
        shorter = self._tokenizer.decode_settled(token_ids[start:])
        emitted = len(shorter) - (len(text) - self._emitted)
        if emitted >= _CONTEXT and text.endswith(shorter[emitted - _CONTEXT :]):
            self._start, self._emitted = start, emitted


def _end_of_words(text: str, emitted: int) -> int:
    """Return where the last complete word of a text ends; `emitted` if none ends after it."""
    end = len(text)
    while end > emitted and not text[end - 1].isspace():
        end -= 1
    while end > emitted and text[end - 1].isspace():
        end -= 1
    if _UNSPACED_CHARACTER.search(text, end) or len(text) - end > _LONGEST_WORD:
        for place in range(len(text) - 1, end, -1):
            # One word ends and another begins without a space; or the word is too long.
            is_border = _UNSPACED_CHARACTER.search(text, place - 1, place + 1) or place - end >= _LONGEST_WORD
            if is_border and _may_split(text, place):
                return place
    return end


def _may_split(text: str, place: int) -> bool:
    before, after = text[place - 1], text[place]
    is_joined = before in _JOINERS or after in _JOINERS or unicodedata.category(after).startswith("M")
    return not is_joined and not before.isspace()
