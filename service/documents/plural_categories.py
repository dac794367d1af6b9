"""Plural forms, made of a sentence for one thing and one for many; each language's categories for whole numbers.

Source: https://www.unicode.org/cldr/charts/latest/supplemental/language_plural_rules.html. All languages have `other`.
Where forms are named, only those of the source are written, with a note on those that are missing.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from service.domain.errors import counted
from service.text.languages import canonical, primary

MAX_FORMS = 6  # of any language: Arabic's
T = TypeVar("T")
_WITHOUT_ONE = "bm bo dz id ig ii ja jv kde kea km ko lkt lo ms my nqo osa sah ses sg su th to vi wo yo yue zh"
_LANGUAGES: Mapping[str, str] = MappingProxyType(
    {
        "zero": "ar blo cy ksh kw lag lv prg",
        "two": "ar br cy dsb ga gd gv he hsb iu kw mt naq sat se sgs sl sma smi smj smn sms",
        "few": "ar be br bs cs cy dsb ga gd gv hr hsb lt mo mt pl ro ru sgs sh shi sk sl sr uk",
        "many": "ar be br cy ga kw mt pl ru uk",
    }
)


def forms_of(one: T, many: T, number: int) -> list[T]:
    """Return `number` forms without names: a single one, and all but the first, are for many."""
    return [one, *[many] * max(number - 1, 1)][-number:]


def notes_of_missing(plurals: Sequence[Collection[str]], target: str) -> list[str]:
    """Return the notes on texts with these categories in the language `target`."""
    language = primary(canonical(target))
    wanted = [category for category, languages in _LANGUAGES.items() if language in languages.split()]
    wanted += ["one"] * (language not in ("", *_WITHOUT_ONE.split()))
    missing = [lacking for found in plurals if (lacking := set(wanted).difference(found))]
    named = ", ".join(sorted(set().union(*missing)))
    lacking_some = counted(len(missing), "text lacks", "texts lack")
    return [f"{lacking_some} plural forms of {language}, {named}: 'other' is used instead."] * bool(missing)
