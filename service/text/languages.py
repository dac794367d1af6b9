"""Language codes: which of the served ones a caller's BCP 47 code means, how they are spelled and called.

Models bring codes of their own: `eng_Latn`, `cmn_Hans`, `pt_br`. What codes say about each other comes from langcodes,
which has it from IANA's registry and from Unicode's CLDR. Its class `Language` keeps every code that it ever saw, so
here, where strangers choose the codes, only its parser and its tables are used.
"""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from langcodes.data_dicts import (
    LANGUAGE_DISTANCES,
    LANGUAGE_REPLACEMENTS,
    LIKELY_SUBTAGS,
    NORMALIZED_MACROLANGUAGES,
    TERRITORY_REPLACEMENTS,
    VALIDITY,
)
from langcodes.language_distance import tuple_distance_cached
from langcodes.tag_parser import LanguageTagError, parse_tag

from service.domain.errors import Public

_LONGEST_CODE = 64
_PLAIN = re.compile("[A-Za-z]{2,3}([-_][A-Za-z]{4})?([-_]([A-Za-z]{2}|[0-9]{3}))?")
_WELL_FORMED = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*")

# A language that also goes by the code of a group in which it is the main one: "cmn" is meant by "zh".
_MACROLANGUAGES = NORMALIZED_MACROLANGUAGES | {"nb": "no"}
_SAME_SCRIPTS = {"Hang": "Kore"}  # Korean is written in Hangul, with or without Chinese characters

# How far a served code is from what was asked for; CLDR's numbers for regions lie between 1 and 5.
_SAME_TAG = 1
_OTHER_SUBTAGS = 1  # variants, extensions
_MACROLANGUAGE = 2
_UNLIKELY_SCRIPT = 20
_SIMILAR = 10  # CLDR's number up to which a language is worth a hint


def is_well_formed(code: str) -> bool:
    """Whether `code` looks like a BCP 47 code: a language and optional subtags, such as `pt-BR`."""
    return len(code) <= _LONGEST_CODE and _WELL_FORMED.fullmatch(code) is not None


def in_message(code: str) -> str:
    """Return a code as it goes into an error: for operators too if it is a language, a script and a region at most.

    A longer one may hold a word of the caller's.
    """
    return Public(repr(code)) if _PLAIN.fullmatch(code) else code


def folded(code: str) -> str:
    """What codes have in common that differ in upper and lower case and in `_` and `-` only."""
    return code.replace("_", "-").casefold()


def canonical(code: str) -> str:
    """The spelling of BCP 47: the shortest language code, and the script only where it is not the likely one.

    "eng_Latn" is "en", "zho_Hans" is "zh", "zho_Hant" is "zh-Hant", "pt_br" is "pt-BR". A code that is none stays.
    """
    tag = _parse(code)
    return code if tag is None else _spelled(tag, NORMALIZED_MACROLANGUAGES.get(tag.language, tag.language))


def language_of(code: str) -> str:
    """The language alone, without script and region: that of "zho_Hant" is "zh". A code that is none stays."""
    tag = _parse(code)
    return code if tag is None else NORMALIZED_MACROLANGUAGES.get(tag.language, tag.language)


def script_of(code: str) -> str:
    """The ISO 15924 code of the script that a language is written in, such as "Latn"; empty if that is not known."""
    tag = _parse(code)
    return "" if tag is None else _script(tag)


def display_name(code: str, in_language: str) -> str:
    """What people who speak `in_language` call a language: `display_name("de-AT", "en")` is "German (Austria)".

    Names that are not known in that language come in English. The first call takes 0.1 s and 20 MB.
    """
    from langcodes import Language  # its names, from language_data, are loaded here, by who asks for them

    asked = _parse(in_language) if is_well_formed(in_language) else None
    spoken = "en"
    if asked is not None:  # langcodes keeps what it sees: let it see the languages of its tables only
        choices = (_joined(asked.language, _script(asked)), asked.language)
        spoken = next((choice for choice in choices if choice in LIKELY_SUBTAGS), spoken)
    return Language.get(canonical(code)).display_name(spoken)


@dataclass(frozen=True, slots=True)
class ServedCode:
    """One of the served codes, in its own spelling, and how far it is from what was asked for; 0 is the same code."""

    code: str
    distance: int


class ServedLanguages:
    """The codes of the languages that something serves; never changes."""

    def __init__(self, codes: Iterable[str]) -> None:
        self._codes = {folded(code): code for code in reversed(list(codes))}  # of equals the first stays
        self._by_language: dict[str, list[tuple[str, _Tag]]] = {}
        for code in sorted(self._codes.values()):
            tag = _parse(code)
            if tag is not None:
                for language in _languages(tag):
                    self._by_language.setdefault(language, []).append((code, tag))

    def find(self, code: str) -> list[ServedCode]:
        """The served codes that `code` may mean, the nearest first; all are of the same language and script.

        Upper and lower case make no difference, nor do `-` and `_`. The same code comes before the same language
        otherwise spelled, that before another region. A code that says nothing of the script, not even by its region,
        may mean a script that is not its likely one, if nothing else is there.
        """
        same = self._codes.get(folded(code))
        asked = _parse(code)
        near = self._of_language(asked) if asked is not None else []
        found = [
            ServedCode(each, distance)
            for each, tag in near
            if each != same and asked is not None and (distance := _distance(asked, tag)) is not None
        ]
        found.sort(key=lambda each: (each.distance, each.code))
        return [ServedCode(same, 0), *found] if same is not None else found

    def nearest(self, code: str) -> str | None:
        """A served code to point a caller to who asked for `code` in vain: another script, or a similar language."""
        asked = _parse(code)
        if asked is None:
            return None
        if near := self._of_language(asked):
            return near[0][0]
        distances = LANGUAGE_DISTANCES.get(asked.language, {})
        similar = sorted(
            (distance, language)
            for language, distance in distances.items()
            if distance <= _SIMILAR and language in self._by_language
        )
        return self._by_language[similar[0][1]][0][0] if similar else None

    def spellings(self) -> dict[str, str]:
        """Served codes to how callers are told of them: canonical, unless two would then look the same."""
        spellings = {code: canonical(code) for code in self._codes.values()}
        for spell in (_exact_spelling, str):
            taken = list(spellings.values())
            spellings = {
                code: spelling if taken.count(spelling) == 1 else spell(code) for code, spelling in spellings.items()
            }
        return spellings

    def _of_language(self, asked: "_Tag") -> list[tuple[str, "_Tag"]]:
        """Served codes of this language: the same, its macrolanguage, or one that it is the macrolanguage of."""
        served = self._by_language
        listed = [entry for language in _languages(asked) for entry in served.get(language, [])]
        return [
            (code, tag)
            for code, tag in dict.fromkeys(listed)
            if tag.language in _languages(asked) or asked.language in _languages(tag)
        ]


@dataclass(frozen=True, slots=True)
class _Tag:
    """A code's subtags after deprecated and three-letter ones were replaced; empty where it says nothing."""

    language: str
    script: str
    region: str
    others: tuple[str, ...]


def _parse(code: str) -> _Tag | None:
    """Read a code; `None` if it is none, such as one of megabytes, of which nothing should be kept."""
    return _parsed(code) if len(code) <= _LONGEST_CODE else None


@functools.lru_cache(maxsize=4096)
def _parsed(code: str) -> _Tag | None:
    tag = folded(code)
    try:
        subtags = parse_tag(LANGUAGE_REPLACEMENTS.get(tag, tag))
        kinds = {"language": "", "script": "", "territory": ""}
        others = []
        for kind, value in subtags:
            if kind == "language":
                kinds.update(parse_tag(LANGUAGE_REPLACEMENTS.get(value, value)))  # of "sh" comes "sr-Latn"
            elif kind == "extlang":
                kinds.update(parse_tag(LANGUAGE_REPLACEMENTS[f"{kinds['language']}-{value}"]))  # of "zh-yue", "yue"
            elif kind == "territory":
                kinds[kind] = TERRITORY_REPLACEMENTS.get(value.lower(), value)
            elif kind in kinds:
                kinds[kind] = value
            else:
                others.append(value)
    except (LanguageTagError, KeyError):
        return None
    # What is no region says nothing. It also bounds what langcodes keeps about regions.
    region = kinds["territory"] if VALIDITY.match(kinds["territory"]) else ""
    return _Tag(kinds["language"], kinds["script"], region, tuple(others))


def _languages(tag: _Tag) -> tuple[str, ...]:
    macrolanguage = _MACROLANGUAGES.get(tag.language)
    return (tag.language,) if macrolanguage is None else (tag.language, macrolanguage)


@functools.lru_cache(maxsize=4096)
def _likely(tag: _Tag) -> tuple[str, str]:
    """Script and region that CLDR takes as said by what a tag says; empty where it knows none."""
    for language in _languages(tag):
        for said in filter(None, (tag.region, tag.script)):
            if (known := LIKELY_SUBTAGS.get(f"{language}-{said}")) is not None:
                return _script_and_region(known)
        if language in LIKELY_SUBTAGS:
            return _script_and_region(LIKELY_SUBTAGS[language])
    return "", ""


def _script_and_region(tag: str) -> tuple[str, str]:
    _, script, region = tag.split("-")
    return script, region


def _script(tag: _Tag) -> str:
    script = tag.script or _likely(tag)[0]
    return _SAME_SCRIPTS.get(script, script)


def _distance(asked: _Tag, served: _Tag) -> int | None:
    """How far two codes of one language are from each other; `None` if they say different scripts."""
    script, served_script = _script(asked), _script(served)
    distance = _SAME_TAG if asked.language == served.language else _MACROLANGUAGE
    if script and served_script and script != served_script:
        if asked.script or asked.region:
            return None
        distance += _UNLIKELY_SCRIPT
    region, served_region = asked.region or _likely(asked)[1], served.region or _likely(served)[1]
    distance += tuple_distance_cached(
        (served.language, served_script, region), (served.language, served_script, served_region)
    )
    return distance + _OTHER_SUBTAGS * (asked.others != served.others)


def _spelled(tag: _Tag, language: str) -> str:
    is_likely = _script(tag) == _script(_Tag(language, "", tag.region, ()))
    return _joined(language, "" if is_likely else tag.script, tag.region, *tag.others)


def _exact_spelling(code: str) -> str:
    """As `canonical`, but for a language of a group never the group's code."""
    tag = _parse(code)
    return code if tag is None else _spelled(tag, tag.language)


def _joined(*subtags: str) -> str:
    return "-".join(filter(None, subtags))
