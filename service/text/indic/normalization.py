"""Normal forms of the scripts of India: one way to write each letter.

From indic-nlp-library 0.92 (`indic_normalize.py`, MIT), by which the models' training texts were normalized. The copy
of it in indic-nlp-library-itt 0.1.1 differs by mistake: it writes "5:" as "\\1" and a visarga, and the nukta of letters
such as U+0958 as "\\u093C" in six characters.
"""

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
    """Return the dandas that a block reserves places for, and other signs used for one."""
    start = BLOCKS[script]
    return {chr(start + 0x64): "।", chr(start + 0x65): "॥", **dict.fromkeys(others, "।")}


def _with_nukta(nukta: str, composed: Mapping[str, str]) -> dict[str, str]:
    return {letter: base + nukta for letter, base in composed.items()}


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
        _with_nukta(
            "\u093c",
            dict(
                zip(
                    "\u0929\u0931\u0934\u0958\u0959\u095a\u095b\u095c\u095d\u095e\u095f",
                    "\u0928\u0930\u0933\u0915\u0916\u0917\u091c\u0921\u0922\u092b\u092f",
                    strict=True,
                )
            ),
        ),
        _PIPE,
    ),
    "Guru": (
        _with_nukta(
            "\u0a3c",
            dict(
                zip(
                    "\u0a33\u0a36\u0a59\u0a5a\u0a5b\u0a5e",
                    "\u0a32\u0a38\u0a16\u0a17\u0a1c\u0a2b",
                    strict=True,
                )
            ),
        ),
        _own_dandas("Guru", "|"),
    ),
    "Gujr": (_own_dandas("Gujr"),),
    "Orya": (
        {"\u0b05\u0b3e": "\u0b06", "\u0b0f\u0b57": "\u0b10", "\u0b13\u0b57": "\u0b14"},
        _with_nukta("\u0b3c", {"\u0b5c": "\u0b21", "\u0b5d": "\u0b22"}),
        {**_own_dandas("Orya", "\u0b7c"), "\u0b35": "\u0b2c"},
        {"\u0b47\u0b56": "\u0b58", "\u0b47\u0b3e": "\u0b4b", "\u0b47\u0b57": "\u0b4c"},
    ),
    "Beng": (
        _with_nukta("\u09bc", {"\u09dc": "\u09a1", "\u09dd": "\u09a2", "\u09df": "\u09af"}),
        _own_dandas("Beng", "|", "\u09f7"),
        {"\u09c7\u09be": "\u09cb", "\u09c7\u09d7": "\u09cc"},
    ),
    "Taml": (
        _own_dandas("Taml"),
        {
            "\u0b92\u0bd7": "\u0b94",
            "\u0bc6\u0bbe": "\u0bca",
            "\u0bc7\u0bbe": "\u0bcb",
            "\u0bc6\u0bd7": "\u0bcc",
        },
    ),
    "Telu": (_own_dandas("Telu"), {"\u0c46\u0c56": "\u0c48"}),
    "Knda": (
        _own_dandas("Knda"),
        {
            "\u0cbf\u0cd5": "\u0cc0",
            "\u0cc6\u0cd5": "\u0cc7",
            "\u0cc6\u0cd6": "\u0cc8",
            "\u0cc6\u0cc2": "\u0cca",
        },
        {"\u0cca\u0cd5": "\u0ccb"},
    ),
    "Mlym": (
        _own_dandas("Mlym"),
        {"\u0d46\u0d3e": "\u0d4a", "\u0d47\u0d3e": "\u0d4b", "\u0d46\u0d57": "\u0d4c"},
        {"\u0d57": "\u0d4c"},
    ),
}


def normalization(script: str) -> tuple[Rule, ...]:
    """Return the rules for a script among `BLOCKS`. A colon after one of its letters is taken for a visarga."""
    start = BLOCKS[script]
    visarga = Rule(f"([{chr(start)}-{chr(start + 0x7F)}]):", rf"\1{chr(start + 0x03)}")
    return (*_FIRST.get(script, ()), *_MARKS, *QUOTES, *map(letters, _LETTERS[script]), visarga)
