"""Transfer of the source's final punctuation, first letter's case and no-break spaces."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from service.text.spans import masked
from service.text.terms import capitalized

_CLOSING = "\"'“”‘’»›)]}」』）】"
# Marks of the same meaning, mapped to one form. The Greek question mark is a semicolon.
_SAME = str.maketrans("。।॥۔！？؟;；؛：，،、", "....!?????:,,,")
_KEPT = "\ufffc"  # Unicode's object replacement character
_FINAL = re.compile(r"[.!?…。！？।॥؟۔:;,，：；、]+$")
_NO_BREAK = re.compile("[\u00a0\u202f]")
_MARKS = "()[]{}\"'“”„«»‹›.,;:!?…"
_LONGEST = 40  # characters of a word beside a space


def preserve_formatting(
    source: str, translated: str, kept_source: Sequence[tuple[int, int]] = (), kept: Sequence[tuple[int, int]] = ()
) -> str:
    """Make a translation begin and end as its source does, like DeepL's option of this name.

    The first letter takes the case of the source's first letter if both are cased. Final punctuation is the source's;
    other languages' forms of the same marks stay.

    `kept_source` and `kept` are protected parts, from start to before end, in any order: nothing in them is considered
    or changed. After a protected part, case is no evidence of how a sentence begins, so it counts only if such a part
    precedes the first letter of both or of neither.
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


def with_no_breaks(source: str, translation: str) -> str:
    """Return a translation of the same length with no-break spaces for plain ones between the same words.

    Both words are the source's, punctuation aside; or one of them, if it is a number, a name or a sign that both texts
    have once (`10 km`, `§ 5`, `Mr. Smith`). If the source has only no-break spaces, so has the translation.
    """
    signs = _NO_BREAK.findall(source.strip())
    if not signs or " " not in translation:
        return translation
    if " " not in source.strip():
        return translation.replace(" ", signs[0])
    befores, afters = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    plain: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, before, after in _gaps(translation, " "):
        befores[before].append(place)
        afters[after].append(place)
        plain[before, after].append(place)
    result = list(translation)
    counts = Counter(map(_plain, source.split()))
    for place, before, after in _gaps(source, "\u00a0\u202f"):
        found = plain.get((before, after), [])
        if not found and _is_fixed(before) and counts[before] == 1 == len(befores.get(before, ())):
            found = befores[before]
        if not found and _is_fixed(after) and counts[after] == 1 == len(afters.get(after, ())):
            found = afters[after]
        if found:
            result[found.pop(0) if len(found) > 1 else found[0]] = source[place]
    return "".join(result)


def _gaps(text: str, signs: str) -> Iterator[tuple[int, str, str]]:
    for match in re.finditer(f"[{signs}]", text):
        place = match.start()
        before = text[max(0, place - _LONGEST) : place].split()
        after = text[place + 1 : place + 1 + _LONGEST].split()
        if before and after and not text[place - 1].isspace() and not text[place + 1].isspace():
            yield place, _plain(before[-1]), _plain(after[0])


def _plain(word: str) -> str:
    digits = "".join(filter(str.isdigit, word))
    return digits if digits and not any(map(str.isalpha, word)) else word.strip(_MARKS) or word


def _is_fixed(word: str) -> bool:
    """Return whether a word is the same in many languages: a number, a sign, a name."""
    return not word.isalpha() or word[0].isupper()
