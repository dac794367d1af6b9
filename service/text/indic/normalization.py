"""Normal forms of the scripts of India: one way to write each letter.

From indic-nlp-library 0.92 (`indic_normalize.py`, MIT), by which the models' training texts were normalized. The copy
of it in indic-nlp-library-itt 0.1.1 differs by mistake: it writes "5:" as "\\1" and a visarga, and the nukta of letters
such as U+0958 as "\\u093C" in six characters.
"""

import unicodedata
from collections.abc import Mapping

from service.text.indic.languages import BLOCKS
from service.text.indic.rewriting import Rule, letters

_MARKS = (
    letters(dict.fromkeys("\ufeff\ufffe\u2060\u00ad", "")),
    Rule("\u200b", " "),
    letters(dict.fromkeys("\u200c\u200d", "")),
)
QUOTES = (letters({"\ufeff": "", "…": "..."}), Rule("''", '"'))  # those that are left of IndicProcessor's own rules
_PIPE = {"|": "।"}


def _own_dandas(script: str, *others: str) -> dict[str, str]:
    start = BLOCKS[script]
    return {chr(start + 0x64): "।", chr(start + 0x65): "॥", **dict.fromkeys(others, "।")}


def _decomposed(composed: str) -> dict[str, str]:
    return {
        letter: "".join(chr(int(code, 16)) for code in unicodedata.decomposition(letter).split()) for letter in composed
    }


def _composed(signs: str) -> dict[str, str]:
    """Compose pairs of signs that Unicode has as one."""
    return {pair: sign for sign, pair in _decomposed(signs).items()}


_CHILLUS = {
    base + "\u0d4d\u200d": chillu
    for base, chillu in zip("\u0d23\u0d28\u0d30\u0d32\u0d33\u0d15", "\u0d7a\u0d7b\u0d7c\u0d7d\u0d7e\u0d7f", strict=True)
}
_VOWELS_OF_GURMUKHI = {
    "\u0a05\u0a3e": "\u0a06",
    "\u0a72\u0a3f": "\u0a07",
    "\u0a72\u0a40": "\u0a08",
    "\u0a73\u0a41": "\u0a09",
    "\u0a73\u0a42": "\u0a0a",
    "\u0a72\u0a47": "\u0a0f",
    "\u0a05\u0a48": "\u0a10",
    "\u0a73\u0a4b": "\u0a13",
    "\u0a05\u0a4c": "\u0a14",
}
_FIRST = {"Mlym": (letters(_CHILLUS),), "Guru": (letters(_VOWELS_OF_GURMUKHI),)}  # before the marks of all scripts

_LETTERS: dict[str, tuple[Mapping[str, str], ...]] = {
    "Deva": (
        {"\u0972": "\u090f"},
        _decomposed("\u0929\u0931\u0934\u0958\u0959\u095a\u095b\u095c\u095d\u095e\u095f"),
        _PIPE,
    ),
    "Guru": (_decomposed("\u0a33\u0a36\u0a59\u0a5a\u0a5b\u0a5e"), _own_dandas("Guru", "|")),
    "Gujr": (_own_dandas("Gujr"),),
    "Orya": (
        {"\u0b05\u0b3e": "\u0b06", "\u0b0f\u0b57": "\u0b10", "\u0b13\u0b57": "\u0b14"},
        _decomposed("\u0b5c\u0b5d"),
        {**_own_dandas("Orya", "\u0b7c"), "\u0b35": "\u0b2c"},
        {"\u0b47\u0b56": "\u0b58", **_composed("\u0b4b\u0b4c")},
    ),
    "Beng": (
        _decomposed("\u09dc\u09dd\u09df"),
        _own_dandas("Beng", "|", "\u09f7"),
        _composed("\u09cb\u09cc"),
    ),
    "Taml": (_own_dandas("Taml"), _composed("\u0b94\u0bca\u0bcb\u0bcc")),
    "Telu": (_own_dandas("Telu"), _composed("\u0c48")),
    "Knda": (_own_dandas("Knda"), _composed("\u0cc0\u0cc7\u0cc8\u0cca"), _composed("\u0ccb")),
    "Mlym": (_own_dandas("Mlym"), _composed("\u0d4a\u0d4b\u0d4c"), {"\u0d57": "\u0d4c"}),
}


def normalization(script: str) -> tuple[Rule, ...]:
    """Return the rules for a script among `BLOCKS`. A colon after one of its letters is taken for a visarga."""
    start = BLOCKS[script]
    visarga = Rule(f"([{chr(start)}-{chr(start + 0x7F)}]):", rf"\1{chr(start + 0x03)}")
    return (*_FIRST.get(script, ()), *_MARKS, *QUOTES, *map(letters, _LETTERS[script]), visarga)
