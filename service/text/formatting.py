"""Transfer of the source's final punctuation and first letter's case."""

import re
from collections.abc import Sequence

from service.text.spans import masked
from service.text.terms import capitalized

_CLOSING = "\"'“”‘’»›)]}」』）】"
# Marks of the same meaning, mapped to one form. The Greek question mark is a semicolon.
_SAME = str.maketrans("。।॥۔！？؟;；؛：，،、", "....!?????:,,,")
_KEPT = "\ufffc"  # Unicode's object replacement character
_FINAL = re.compile(r"[.!?…。！？।॥؟۔:;,，：；、]+$")


def preserve_formatting(
    source: str,
    translated: str,
    kept_source: Sequence[tuple[int, int]] = (),
    kept: Sequence[tuple[int, int]] = (),
) -> str:
    """Make a translation begin and end as its source does, like DeepL's option of this name.

    The first letter takes the case of the source's first letter if both are cased letters. Final punctuation is the
    source's; other languages' forms of the same marks are left as they are.

    `kept_source` and `kept` are the protected parts of each, from start to before end, in any order: they are not text.
    Letters and marks in them are neither considered nor changed. The case of a letter after a protected part is no
    evidence of how a sentence begins, so it counts only if such a part precedes the first letter of both or of neither.
    """
    source = masked(source, sorted(kept_source), _KEPT)
    text_only = masked(translated, sorted(kept), _KEPT)
    if not any(map(str.isalpha, source)) or not text_only.strip():
        return translated
    text, closing = _apart(text_only)
    source_text, _ = _apart(source)
    final, source_final = _FINAL.search(text), _FINAL.search(source_text)
    end = len(text)
    if _meaning(final) != _meaning(source_final):
        end = len(text[: final.start()].rstrip()) if final else end
        closing = (source_final[0] if source_final else "") + closing
    return _first_letter(source, text_only[:end], translated[:end]) + closing


def _meaning(final: re.Match[str] | None) -> str:
    return final[0].replace("…", "...").translate(_SAME) if final else ""


def _apart(text: str) -> tuple[str, str]:
    """Split off the quotation marks, brackets and white space after a text's final punctuation."""
    stripped = text.rstrip()
    core = stripped.rstrip(_CLOSING)
    return (core, text[len(core) :]) if _FINAL.search(core) else (stripped, text[len(stripped) :])


def _first_letter(source: str, text_only: str, translated: str) -> str:
    wanted = next(position for position, character in enumerate(source) if character.isalpha())
    position = next((position for position, character in enumerate(text_only) if character.isalnum()), None)
    if position is None or (_KEPT in source[:wanted]) != (_KEPT in text_only[:position]):
        return translated
    first, rest = translated[:position], translated[position:]
    if source[wanted].isupper():
        return first + capitalized(rest)
    following = text_only[position + 1 : position + 2]
    is_word_in_capitals = following.isupper() or not following.isalpha()
    if source[wanted].islower() and not is_word_in_capitals and len(rest[0].lower()) == 1:
        return first + rest[0].lower() + rest[1:]
    return translated
