"""A checkpoint's language by the code that people write: "en" means `eng_Latn`, as it does to the server."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from export.importers.options import ImportOptions
from service.bundle.manifest_parts import Language, LanguagePair
from service.domain.errors import counted
from service.text.languages import ServedLanguages, display_name

_MOST_NAMED = 5


def chosen_language(asked: str, codes: Collection[str], flag: str, problems: list[str]) -> str | None:
    """Return the one of `codes` that `asked`, given with `flag`, means; or `None`, and add why to `problems`."""
    if found := ServedLanguages(codes).find(asked):
        return found[0].code
    near = " or ".join(_near(asked, codes)) or f"a code such as {', '.join(sorted(codes)[:_MOST_NAMED])}"
    problems.append(f"{flag} is {asked!r}, none of the model's {counted(len(codes), 'language')}; did you mean {near}?")
    return None


def asked_languages(
    options: ImportOptions, codes: Collection[str], problems: list[str]
) -> tuple[str | None, str | None]:
    """Return the ones of a model's `codes` that are asked for as source and as target, `None` if any."""
    asked = {"--source-language": options.source_language, "--target-language": options.target_language}
    source, target = (code and chosen_language(code, codes, flag, problems) for flag, code in asked.items())
    return source or None, target or None


def chosen_directions(
    every: Mapping[str, Language], source: str | None, target: str | None
) -> tuple[tuple[LanguagePair, ...], tuple[Language, ...]]:
    """Return the pairs from a source, into a target, or both, of a model of many languages; or these, if any will do.

    The second value are languages each of which is translated into every other one.
    """
    if source is None and target is None:
        return (), tuple(every.values())
    sources = [each for code, each in every.items() if code == source or (source is None and code != target)]
    targets = [each for code, each in every.items() if code == target or (target is None and code != source)]
    return tuple(one.to(other) for one in sources for other in targets), ()


def prefixed_pairs(
    source: str, target_prefixes: Mapping[str, int], asked: str, problems: list[str], begin: tuple[int, ...] = ()
) -> tuple[LanguagePair, ...]:
    """Return a pair for each target of Marian's models with several, or only for the one that `asked` means.

    `target_prefixes` maps their codes to the id of `>>xx<<`, with which the source then begins, after `begin`.
    """
    chosen: Collection[str] = target_prefixes
    if asked:
        only = chosen_language(asked, target_prefixes, "--target-language", problems)
        chosen = () if only is None else (only,)
    return tuple(LanguagePair(source, code, source_prefix_ids=(*begin, target_prefixes[code])) for code in chosen)


def _near(asked: str, codes: Collection[str]) -> list[str]:
    """Return codes of related languages, and of those whose code or English name is written alike."""
    nearest = ServedLanguages(codes).nearest(asked)
    by_name = {display_name(code, "en").casefold(): code for code in codes}
    alike = [by_name[name] for name in get_close_matches(asked.casefold(), by_name, _MOST_NAMED)]
    written_alike = get_close_matches(asked, codes, _MOST_NAMED)
    return list(dict.fromkeys([*filter(None, [nearest]), *alike, *written_alike]))[:_MOST_NAMED]
