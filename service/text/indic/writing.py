"""Input of IndicTrans2's models, and their output as people read it, by language.

The steps are those of `IndicProcessor` (IndicTransToolkit 1.1.1, MIT), but URLs, e-mail addresses and numbers are
protected by the service, as with other models, with `SYMBOLS` in their places.
"""

import functools
import re

from service.text.indic.english import ENGLISH_WORDS, english_joined
from service.text.indic.languages import BLOCKS, ENGLISH, conversion, rules_script, script_of
from service.text.indic.normalization import normalization
from service.text.indic.rewriting import Rule, letters, rewritten
from service.text.indic.urdu import URDU
from service.text.indic.words import WORDS, WORDS_OF_URDU, joined

SYMBOLS = tuple(f"<ID{number}>" for number in range(1, 17))

_NBSP = "\u00a0"
_PUNCTUATION: tuple[Rule, ...] = (
    Rule(r"\r", ""),
    Rule(r"\(\s*", "("),
    Rule(r"(?<!\s)\s+\)", ")"),
    Rule(r"\s:\s?", ":"),
    Rule(r"\s;\s?", ";"),
    letters({**dict.fromkeys("`´‘‚’", "'"), **dict.fromkeys("„“”«»", '"'), **dict.fromkeys("–—", "-")}),
    Rule(f"{_NBSP}([%?!;])", r"\1"),
    Rule(f"(nº|,){_NBSP}", r"\1 "),
    Rule(f"{_NBSP}ºC", " ºC"),
    Rule(r" {2,}", " "),
    Rule(r"\) ([.!:?;,])", r")\1"),
    Rule(r"(\d) %", r"\1%"),
    Rule(r'"([,.]+)', r'\1"'),
    Rule(rf"(\d){_NBSP}(\d)", r"\1.\2"),
)
_ZEROS = "\u0966\u09e6\u0a66\u0ae6\u0b66\u0ce6\u06f0\uabf0\u1c50"  # digits of the scripts; Tamil's are left
_DIGITS = letters(
    {chr(ord(zero) + digit): str(digit) for zero in _ZEROS for digit in range(10)}
    | {chr(0x0C66 + digit): str(digit) for digit in range(1, 10)}  # Telugu's zero is left, Arabic's other ones too
    | {"\u0660": "0"}
)
_SPACES: tuple[Rule, ...] = (Rule(r"\s+", " "), Rule(r"\A | \Z", ""))
_HALANT = Rule(" \u094d ", "\u094d")  # apart from its letter after what was between them is gone

_OF_ARABIC: tuple[Rule, ...] = (Rule(" ([؟۔،])", r"\1"), Rule("\u066e\u06ea", "\u0620"))
_OF_ODIA: tuple[Rule, ...] = (Rule("\u0b2f\u0b3c", "\u0b5f"),)
# How models write a symbol: with other brackets or spaces, or "ID" by its sound.
_SYMBOL = Rule(
    r"[<\[] ?(?:ID|id|आईडी|आयडी|आइडि|ऐटि|ऐडि|आ[ईयइ] ?\. ?डी ?\.|آ[یئ]ی? ڈی|ꯑꯥꯏꯗꯤ|ᱟᱭᱰᱤ(?: ᱾)?) ?(\d{1,2}) ?[>\]]",
    r"<ID\1>",
)


@functools.cache
def reading(code: str) -> tuple[Rule, ...]:
    """Return the rules by which a model reads texts in a language, whose script is known."""
    script, like = script_of(code), rules_script(code)
    first = (*_PUNCTUATION, _DIGITS, *_SPACES)
    if script == "Latn":
        return (*first, *ENGLISH_WORDS)
    if script == "Arab":
        return (*first, *URDU, *WORDS_OF_URDU)
    in_devanagari = (conversion(script, "Deva"), _HALANT) if script in BLOCKS else ()
    return (*first, *normalization(like), *WORDS, *in_devanagari)


def written(output: str, code: str) -> str:
    """Return a model's output as people write the language."""
    script, like = script_of(code), rules_script(code)
    text = rewritten(output, _OF_ARABIC if script == "Arab" else _OF_ODIA if code == "ory_Orya" else ())
    text = _SYMBOL.pattern.sub(_SYMBOL.writing, text)
    if code == ENGLISH:
        return english_joined(text)
    if like in BLOCKS:
        text = rewritten(text, (conversion("Deva", like),))
    return joined(text)


def settled(output: str) -> str:
    """Return the beginning of a model's output that later words do not change once both are `written`."""
    words = output.split(" ")[:-1]  # the last one may go on
    while words:
        last = words[-1]
        if not any(map(str.isalnum, last)) or last.startswith("&"):  # punctuation may be put together with what follows
            words.pop()
            continue
        text = " ".join(words)
        opened = max(text.rfind("<"), text.rfind("["))  # of a symbol, perhaps
        if opened < 0 or re.search(r"[>\]]", text[opened:]):
            return text
        words = text[:opened].split(" ")
    return ""
