"""Separation of words and punctuation for models, and joining for people, from indic-nlp-library 0.92 (MIT):
`indic_tokenize.py` and `indic_detokenize.py`."""

import re
import string

from service.text.indic.rewriting import Rule, rewritten

# Without the backslash, which escapes the bracket after it where the library lists them.
ASCII_MARKS = re.escape(string.punctuation.replace("\\", ""))
_MARKS = "।॥\uaaf1\uaaf0\uabeb\uabec\uabed\uabee\uabef\u1c7e\u1c7f"
_MARKS_OF_URDU = "\u0609\u060a\u060c\u061e\u066a\u066b\u066c\u066d\u06d4"
SPACES: tuple[Rule, ...] = (Rule(r"[ ]+", " "), Rule(r"\A +| +\Z", ""))


def _number(found: re.Match[str]) -> str:
    """Join a number, date or section into one word; at the start of a text, like the library, leave it."""
    return found[0].replace(" ", "") if found.start() else found[0]


_NUMBERS = Rule(r"([0-9]+ [,.:/] )+[0-9]+", _number)

WORDS: tuple[Rule, ...] = (Rule(f"([{ASCII_MARKS}{_MARKS}])", r" \1 "), *SPACES, _NUMBERS)
WORDS_OF_URDU: tuple[Rule, ...] = (Rule(f"([{ASCII_MARKS}{_MARKS_OF_URDU}])", r" \1 "), *SPACES)

_TOGETHER: tuple[Rule, ...] = (
    _NUMBERS,
    Rule(r" ([-/\\]) ", r"\1"),
    Rule(r" ([!%)\]},.:;>?।॥])", r"\1"),
    Rule(r"([#$(\[{<@]) ", r"\1"),
)


def joined(text: str) -> str:
    """Return a text with its punctuation at the words that it belongs to; of two quotation marks, the second closes."""
    text = rewritten(text, _TOGETHER)
    for mark in "'\"`":
        text = re.sub(f"( ?){mark}( ?)", _Quotes(mark), text)
    return text


class _Quotes:
    """Writes a text's quotation marks of one kind: the first one opens, the next one closes, and so on."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._is_open = False

    def __call__(self, found: re.Match[str]) -> str:
        self._is_open = not self._is_open
        return f"{found[1]}{self._mark}" if self._is_open else f"{self._mark}{found[2]}"
