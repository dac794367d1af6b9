"""Text while it is being written: words as soon as they are complete, which together are the whole text."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Protocol

from service.text.scripts import UNSPACED

# Punctuation of Chinese and Japanese stands without spaces too.
_UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}\\u3000-\\u303f\\uff00-\\uffef]")
_JOINERS = "\u200c\u200d"

_LONGEST_WORD = 128  # characters; what is longer is no word, and goes out in parts
_MAX_WINDOW = 64  # tokens that are decoded anew each time
_KEPT = 32  # of them, where the window moves on
_CONTEXT = 8  # characters by which the same place is found again in the text of fewer tokens


class PieceDecoder(Protocol):
    """What a `Tokenizer` can do that is needed here."""

    def decode(self, token_ids: Sequence[int]) -> str: ...  # noqa: D102
    def decode_settled(self, token_ids: Sequence[int]) -> str: ...  # noqa: D102


class IncrementalDecoder:
    """Turns the growing token ids of one sequence into parts of its text, each given out once and for good.

    Parts end where words do: before the space that follows them, so a word goes out with the space before it as soon
    as the next one begins. In scripts without spaces a word is one character with its marks; and of a word that is
    longer than `_LONGEST_WORD` characters the beginning goes out. All parts together are what `Tokenizer.decode`
    makes of all ids.
    """

    def __init__(self, tokenizer: PieceDecoder) -> None:
        self._tokenizer = tokenizer
        self._start = 0  # the first token of the window: only from there on ids are decoded
        self._told = 0  # characters of the window's text that were given out
        self._num_told = 0  # characters that were given out in all

    def feed(self, token_ids: Sequence[int]) -> str:
        """What is new in the text of a sequence that goes on; `token_ids` are all of it so far."""
        window = token_ids[self._start :]
        text = self._tokenizer.decode_settled(window)
        end = _end_of_words(text, self._told)
        part = text[self._told : end]
        self._told = end
        self._num_told += len(part)
        if len(window) > _MAX_WINDOW:
            self._move(token_ids, text)
        return part

    def finish(self, token_ids: Sequence[int]) -> str:
        """The rest of the text, now that these are all token ids."""
        return self._tokenizer.decode(token_ids)[self._num_told :]

    def _move(self, token_ids: Sequence[int], text: str) -> None:
        """Let the window begin later, if the text of what is left in it ends as it did: else its beginning matters."""
        start = len(token_ids) - _KEPT
        shorter = self._tokenizer.decode_settled(token_ids[start:])
        told = len(shorter) - (len(text) - self._told)
        if told >= _CONTEXT and text.endswith(shorter[told - _CONTEXT :]):
            self._start, self._told = start, told


def _end_of_words(text: str, told: int) -> int:
    """Where the last complete word of a text ends; `told` if none ends behind it."""
    end = len(text)
    while end > told and not text[end - 1].isspace():
        end -= 1
    while end > told and text[end - 1].isspace():
        end -= 1
    if _UNSPACED_CHARACTER.search(text, end) or len(text) - end > _LONGEST_WORD:
        for place in range(len(text) - 1, end, -1):
            if _parts_words(text, place) or (place - end >= _LONGEST_WORD and _may_part(text, place)):
                return place
    return end


def _parts_words(text: str, place: int) -> bool:
    """Whether one word ends and another one begins between two characters without a space."""
    return _UNSPACED_CHARACTER.search(text, place - 1, place + 1) is not None and _may_part(text, place)


def _may_part(text: str, place: int) -> bool:
    """Whether no space stands there alone, and no mark that belongs to the character before it."""
    before, after = text[place - 1], text[place]
    is_joined = before in _JOINERS or after in _JOINERS or unicodedata.category(after).startswith("M")
    return not is_joined and not before.isspace()
