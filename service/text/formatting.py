"""Final punctuation and the case of the first letter, as the source has them."""

import re
from collections.abc import Sequence

from service.text.terms import capitalized

_CLOSING = "\"'“”‘’»›)]}」』）】"
# Marks that mean the same, in one spelling. Greek's question mark is a semicolon.
_SAME = str.maketrans("。।॥۔！？؟;；؛：，،、", "....!?????:,,,")
_KEPT = "\ufffc"  # the sign for an object in a text
_FINAL = re.compile(r"[.!?…。！？।॥؟۔:;,，：；、]+$")


def preserve_formatting(
    source: str,
    translated: str,
    kept_source: Sequence[tuple[int, int]] = (),
    kept: Sequence[tuple[int, int]] = (),
) -> str:
    """Let a translation begin and end as its source does, as DeepL's option of this name.

    The first letter becomes a capital or small one if the source's first letter is one and both are letters with case.
    Final punctuation is the source's, with other languages' forms of the same marks left as they are.

    `kept_source` and `kept` are the parts of either that are protected, from start to before end, in any order: they
    are no text. No letter or mark in them counts or is changed. The case of a letter that follows one says nothing
    about beginnings, so it only counts if such a part is before the first letter of both or of neither.
    """
    source = _masked(source, kept_source)
    masked = _masked(translated, kept)
    if not any(map(str.isalpha, source)) or not masked.strip():
        return translated
    text, closing = _apart(masked)
    source_text, _ = _apart(source)
    final, source_final = _FINAL.search(text), _FINAL.search(source_text)
    end = len(text)
    if _meaning(final) != _meaning(source_final):
        end = len(text[: final.start()].rstrip()) if final else end
        closing = (source_final[0] if source_final else "") + closing
    return _first_letter(source, masked[:end], translated[:end]) + closing


def _masked(text: str, kept: Sequence[tuple[int, int]]) -> str:
    """The text, as long as it is, with a sign that is no letter, mark or space for each character of what is kept."""
    parts: list[str] = []
    done = 0
    for start, end in sorted(kept):
        parts += (text[done:start], _KEPT * (end - start))
        done = end
    return "".join((*parts, text[done:]))


def _meaning(final: re.Match[str] | None) -> str:
    return final[0].replace("…", "...").translate(_SAME) if final else ""


def _apart(text: str) -> tuple[str, str]:
    """A text and what closes it behind its punctuation: quotation marks, brackets and white space."""
    stripped = text.rstrip()
    core = stripped.rstrip(_CLOSING)
    return (core, text[len(core) :]) if _FINAL.search(core) else (stripped, text[len(stripped) :])


def _first_letter(source: str, masked: str, translated: str) -> str:
    wanted = next(position for position, character in enumerate(source) if character.isalpha())
    position = next((position for position, character in enumerate(masked) if character.isalnum()), None)
    if position is None or (_KEPT in source[:wanted]) != (_KEPT in masked[:position]):
        return translated
    first, rest = translated[:position], translated[position:]
    if source[wanted].isupper():
        return first + capitalized(rest)
    following = masked[position + 1 : position + 2]
    is_word_in_capitals = following.isupper() or not following.isalpha()
    if source[wanted].islower() and not is_word_in_capitals and len(rest[0].lower()) == 1:
        return first + rest[0].lower() + rest[1:]
    return translated
