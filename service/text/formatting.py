"""Final punctuation and the case of the first letter, as the source has them."""

import re

from service.text.terms import capitalized

_CLOSING = "\"'“”‘’»›)]}」』）】"
# Marks that mean the same, in one spelling. Greek's question mark is a semicolon.
_SAME = str.maketrans("。।॥۔！？؟;；؛：，،、", "....!?????:,,,")
_FINAL = re.compile(r"[.!?…。！？।॥؟۔:;,，：；、]+$")


def preserve_formatting(source: str, translated: str) -> str:
    """Let a translation begin and end as its source does, as DeepL's option of this name.

    The first letter becomes a capital or small one if the source's first letter is one and both are letters with case.
    Final punctuation is the source's, with other languages' forms of the same marks left as they are.
    """
    if not any(map(str.isalpha, source)) or not translated.strip():
        return translated
    text, closing = _apart(translated)
    source_text, _ = _apart(source)
    final, source_final = _FINAL.search(text), _FINAL.search(source_text)
    if _meaning(final) != _meaning(source_final):
        text = (text[: final.start()].rstrip() if final else text) + (source_final[0] if source_final else "")
    return _first_letter(source, text + closing)


def _meaning(final: re.Match[str] | None) -> str:
    return final[0].replace("…", "...").translate(_SAME) if final else ""


def _apart(text: str) -> tuple[str, str]:
    """A text and what closes it behind its punctuation: quotation marks, brackets and white space."""
    stripped = text.rstrip()
    core = stripped.rstrip(_CLOSING)
    return (core, text[len(core) :]) if _FINAL.search(core) else (stripped, text[len(stripped) :])


def _first_letter(source: str, translated: str) -> str:
    wanted = next(filter(str.isalpha, source))
    position = next((i for i, character in enumerate(translated) if character.isalnum()), None)
    if position is None:
        return translated
    first, rest = translated[:position], translated[position:]
    if wanted.isupper():
        return first + capitalized(rest)
    is_word_in_capitals = rest[1:2].isupper() or not rest[1:2].isalpha()
    if wanted.islower() and not is_word_in_capitals and len(rest[0].lower()) == 1:
        return first + rest[0].lower() + rest[1:]
    return translated
