"""Language codes: matching a caller's BCP 47 code to the served ones, and their spellings and names.

Models bring codes of their own: `eng_Latn`, `cmn_Hans`, `pt_br`. langcodes relates codes by IANA's registry and
Unicode's CLDR. Its class `Language` keeps every code that it ever saw, so for untrusted callers' codes only its parser
and its tables are used.
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
from language_data.population_data import LANGUAGE_WRITING_POPULATION

from service.domain.errors import Public

_LONGEST_CODE = 64
_PLAIN = re.compile("[A-Za-z]{2,3}([-_][A-Za-z]{4})?([-_]([A-Za-z]{2}|[0-9]{3}))?")
_WELL_FORMED = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*")

# Languages that are also called by the code of a group in which they are the main one: "zh" means "cmn".
_MACROLANGUAGES = NORMALIZED_MACROLANGUAGES | {"nb": "no"}
_SAME_SCRIPTS = {"Hang": "Kore"}  # Korean is written in Hangul, with or without Chinese characters

# Distance of a served code from the requested one; CLDR's distances for regions are between 1 and 5.
_SAME_TAG = 1
_OTHER_SUBTAGS = 1  # variants, extensions
_MACROLANGUAGE = 2
_UNLIKELY_SCRIPT = 20
_SIMILAR = 10  # CLDR's distance up to which a language is worth suggesting


def is_well_formed(code: str) -> bool:
    """Return whether `code` looks like a BCP 47 code: a language and optional subtags, such as `pt-BR`."""
    return len(code) <= _LONGEST_CODE and _WELL_FORMED.fullmatch(code) is not None


def is_language(code: str) -> bool:
    """Return whether `code` is that of a language that has one of two letters, such as `en` or `zh-TW`."""
    language = re.split("[-_]", code)[0]
    return len(language) == 2 and _PLAIN.fullmatch(code) is not None and VALIDITY.fullmatch(language) is not None


def primary(code: str) -> str:
    """Return the language of a code, in small letters, without subtags."""
    return re.split("[-_]", code.lower())[0]


def in_message(code: str) -> str:
    """Return a code for an error, shown to operators too unless it may contain the caller's own text."""
    return Public(repr(code)) if _PLAIN.fullmatch(code) else code


def folded(code: str) -> str:
    """Return the same key for codes that differ only in case and in `_` versus `-`."""
    return code.replace("_", "-").casefold()


def canonical(code: str) -> str:
    """Return the BCP 47 spelling: the shortest language code, and the script only if it is not the likely one.

    "eng_Latn" becomes "en", "zho_Hant" "zh-Hant", "pt_br" "pt-BR". An invalid code is returned unchanged.
    """
    tag = _parse(code)
    return code if tag is None else _spelled(tag, NORMALIZED_MACROLANGUAGES.get(tag.language, tag.language))


def language_of(code: str) -> str:
    """Return the language without script and region: "zh" for "zho_Hant". An invalid code is returned unchanged."""
    tag = _parse(code)
    return code if tag is None else NORMALIZED_MACROLANGUAGES.get(tag.language, tag.language)


def script_of(code: str) -> str:
    """Return the ISO 15924 code of the script that a language is written in, such as "Latn"; empty if unknown."""
    tag = _parse(code)
    return "" if tag is None else _script(tag)


def num_readers(code: str) -> int:
    """Return how many people read and write a language, by CLDR; 0 if that is not known."""
    return LANGUAGE_WRITING_POPULATION.get(canonical(code)) or LANGUAGE_WRITING_POPULATION.get(language_of(code)) or 0


def is_same(code: str, other: str) -> bool:
    """Return whether two codes mean the same language in the same script, whatever the region."""
    return script_of(code) == script_of(other) and bool(ServedLanguages([other]).find(code))


def display_name(code: str, in_language: str) -> str:
    """Return a name such as "German (Austria)" for `display_name("de-AT", "en")`; English if there is none in
    `in_language`.

    An invalid code is returned unchanged. The first call loads the names, which is slow.
    """
    if _parse(code) is None:
        return code
    from langcodes import Language  # loads the names of language_data, so only callers that need them pay

    requested = _parse(in_language) if is_well_formed(in_language) else None
    display_language = "en"
    if requested is not None:  # langcodes keeps every code it sees: show it only the languages of its tables
        choices = (_joined(requested.language, _script(requested)), requested.language)
        display_language = next((choice for choice in choices if choice in LIKELY_SUBTAGS), display_language)
    return Language.get(canonical(code)).display_name(display_language)


@dataclass(frozen=True, slots=True)
class ServedCode:
    """One of the served codes, in its own spelling, and its distance from the requested one; 0 is the same code."""

    code: str
    distance: int


class ServedLanguages:
    """The codes of the languages that something serves. Immutable."""

    def __init__(self, codes: Iterable[str]) -> None:
        self._codes = {folded(code): code for code in reversed(list(codes))}  # of equal ones the first stays
        self._by_language: dict[str, list[tuple[str, _Tag]]] = {}
        for code in sorted(self._codes.values()):
            tag = _parse(code)
            if tag is not None:
                for language in _languages(tag):
                    self._by_language.setdefault(language, []).append((code, tag))

    def find(self, code: str) -> list[ServedCode]:
        """Return the served codes that `code` may mean, the nearest first; all are of the same language and script.

        Case, and `-` versus `_`, make no difference. The same code comes before another spelling of the same language,
        then another region. A code without a script may match an unlikely script if there is no other match.
        """
        same = self._codes.get(folded(code))
        requested = _parse(code)
        near = self._of_language(requested) if requested is not None else []
        found = [
            ServedCode(each, distance)
            for each, tag in near
            if each != same and requested is not None and (distance := _distance(requested, tag)) is not None
        ]
        found.sort(key=lambda each: (each.distance, each.code))
        return [ServedCode(same, 0), *found] if same is not None else found

    def nearest(self, code: str) -> str | None:
        """Return a served code to suggest if `code` is not served: another script, or a similar language."""
        requested = _parse(code)
        if requested is None:
            return None
        if near := self._of_language(requested):
            return near[0][0]
        distances = LANGUAGE_DISTANCES.get(requested.language, {})
        similar = sorted(
            (distance, language)
            for language, distance in distances.items()
            if distance <= _SIMILAR and language in self._by_language
        )
        return self._by_language[similar[0][1]][0][0] if similar else None

    def spellings(self) -> dict[str, str]:
        """Map served codes to the spellings shown to callers: canonical, unless two would then look the same."""
        spellings = {code: canonical(code) for code in self._codes.values()}
        for spell in (_exact_spelling, str):
            taken = list(spellings.values())
            spellings = {
                code: spelling if taken.count(spelling) == 1 else spell(code) for code, spelling in spellings.items()
            }
        return spellings

    def _of_language(self, requested: "_Tag") -> list[tuple[str, "_Tag"]]:
        """Return the served codes of this language: the same, its macrolanguage, or a member of it."""
        served = self._by_language
        listed = [entry for language in _languages(requested) for entry in served.get(language, [])]
        return [
            (code, tag)
            for code, tag in dict.fromkeys(listed)
            if tag.language in _languages(requested) or requested.language in _languages(tag)
        ]


@dataclass(frozen=True, slots=True)
class _Tag:
    """A code's subtags after deprecated and three-letter ones were replaced; empty if absent."""

    language: str
    script: str
    region: str
    others: tuple[str, ...]


def _parse(code: str) -> _Tag | None:
    """Parse a code; return `None` if it is invalid. Invalid codes, which may be megabytes long, are not kept."""
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
                kinds.update(parse_tag(LANGUAGE_REPLACEMENTS.get(value, value)))  # "sh" becomes "sr-Latn"
            elif kind == "extlang":
                kinds.update(parse_tag(LANGUAGE_REPLACEMENTS[f"{kinds['language']}-{value}"]))  # "zh-yue" becomes "yue"
            elif kind == "territory":
                kinds[kind] = TERRITORY_REPLACEMENTS.get(value.lower(), value)
            elif kind in kinds:
                kinds[kind] = value
            else:
                others.append(value)
    except (LanguageTagError, KeyError):
        return None
    # An invalid region is ignored. This also bounds what langcodes keeps about regions.
    region = kinds["territory"] if VALIDITY.match(kinds["territory"]) else ""
    return _Tag(kinds["language"], kinds["script"], region, tuple(others))


def _languages(tag: _Tag) -> tuple[str, ...]:
    macrolanguage = _MACROLANGUAGES.get(tag.language)
    return (tag.language,) if macrolanguage is None else (tag.language, macrolanguage)


@functools.lru_cache(maxsize=4096)
def _likely(tag: _Tag) -> tuple[str, str]:
    """Return the script and region that CLDR infers from a tag; empty where unknown."""
    for language in _languages(tag):
        for subtag in filter(None, (tag.region, tag.script)):
            if (known := LIKELY_SUBTAGS.get(f"{language}-{subtag}")) is not None:
                return known.split("-")[1], known.split("-")[2]
        if (known := LIKELY_SUBTAGS.get(language)) is not None:
            return known.split("-")[1], known.split("-")[2]
    return "", ""


def _script(tag: _Tag) -> str:
    script = tag.script or _likely(tag)[0]
    return _SAME_SCRIPTS.get(script, script)


def _distance(requested: _Tag, served: _Tag) -> int | None:
    """Return the distance between two codes of one language; `None` if their scripts differ."""
    script, served_script = _script(requested), _script(served)
    distance = _SAME_TAG if requested.language == served.language else _MACROLANGUAGE
    if script and served_script and script != served_script:
        if requested.script or requested.region:
            return None
        distance += _UNLIKELY_SCRIPT
    region, served_region = requested.region or _likely(requested)[1], served.region or _likely(served)[1]
    distance += tuple_distance_cached(
        (served.language, served_script, region), (served.language, served_script, served_region)
    )
    return distance + _OTHER_SUBTAGS * (requested.others != served.others)


def _spelled(tag: _Tag, language: str) -> str:
    is_likely = _script(tag) == _script(_Tag(language, "", tag.region, ()))
    return _joined(language, "" if is_likely else tag.script, tag.region, *tag.others)


def _exact_spelling(code: str) -> str:
    """Like `canonical`, but never replace a language by the code of its group."""
    tag = _parse(code)
    return code if tag is None else _spelled(tag, tag.language)


def _joined(*subtags: str) -> str:
    return "-".join(filter(None, subtags))
