"""No-break spaces of a source in its translation: models write plain ones."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

_NO_BREAK = re.compile("[\u00a0\u202f]")
_MARKS = "()[]{}\"'“”„«»‹›.,;:!?…"
_LONGEST = 40  # characters of a word beside a space


def with_no_breaks(source: str, translation: str) -> str:
    """Return a translation with no-break spaces in place of those plain ones that are between the same words.

    Both words are the source's, punctuation aside; or one of them, if it is a number, a name or a sign that both texts
    have once (`10 km`, `§ 5`, `Mr. Smith`). If the source has no other spaces, neither has the translation.
    The length stays the same.
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
    """Yield the position of each of the signs between two words, and the words, to compare."""
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
