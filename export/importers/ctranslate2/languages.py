"""The languages of a CTranslate2 model: a package names them, tokens of its vocabulary do, or whoever converts it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from export.importers.ctranslate2.settings import Settings
from export.importers.ctranslate2.vocabulary import Vocabulary
from export.importers.language_choice import asked_languages, chosen_directions, prefixed_pairs
from export.importers.options import ImportOptions
from service.bundle.manifest_parts import Language, LanguagePair
from service.text.languages import is_well_formed

_CODE = r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*"
# Tokens of languages before a source and before a translation.
_M2M100, _NLLB = re.compile(rf"__({_CODE})__"), re.compile(r"([a-z]{3}_[A-Z][a-z]{3})")
_MBART = re.compile(r"([a-z]{2})_[A-Z]{2}")
# Tokens of the target's language before a source.
_MADLAD, _MARIAN = re.compile(rf"<2({_CODE})>"), re.compile(rf">>({_CODE})<<")
_LEAST = 2


@dataclass(frozen=True, slots=True)
class Languages:
    """Directions of a model, as `ImportedCheckpoint` has them, and the texts of all tokens of languages."""

    pairs: tuple[LanguagePair, ...] = ()
    any_to_any: tuple[Language, ...] = ()
    tokens: tuple[str, ...] = ()


def read_languages(
    vocabularies: tuple[Vocabulary, Vocabulary],
    settings: Settings,
    metadata: Mapping[str, Any],
    options: ImportOptions,
    problems: list[str],
) -> Languages:
    source, target = vocabularies
    begin = (source.ids[settings.bos_token],) if settings.adds_source_bos else ()
    if metadata:
        return Languages(_of_package(metadata, target, options, begin, problems))
    for pattern in (_M2M100, _NLLB, _MBART, _MADLAD):
        codes = _codes(pattern, target)
        if len(codes) >= _LEAST and all(target.tokens[index] in source.ids for index in codes.values()):
            tokens = {code: target.tokens[index] for code, index in codes.items()}
            if pattern is _MADLAD:
                every = {code: Language(code, begin, (), (source.ids[token],)) for code, token in tokens.items()}
            else:
                every = {
                    code: Language(code, (*begin, source.ids[token]), (codes[code],)) for code, token in tokens.items()
                }
            if settings.start_token is None and pattern is _MBART:
                problems.append("decoder_start_token is null, as in mBART-25; convert that from transformers' folder")
            chosen = chosen_directions(every, *asked_languages(options, every, problems))
            return Languages(*chosen, tuple(tokens.values()))
    if settings.start_token is None:
        problems.append("decoder_start_token is null: what a translation begins with is unknown")
    if len(codes := _codes(_MARIAN, source)) >= _LEAST:
        pairs = _to_each(codes, options, begin, problems)
        return Languages(pairs, (), tuple(source.tokens[index] for index in codes.values()))
    return Languages(_of_options(options, begin, problems))


def _codes(pattern: re.Pattern[str], vocabulary: Vocabulary) -> dict[str, int]:
    """Return the codes of a vocabulary's languages, and the ids of their tokens; the first token of each counts."""
    codes: dict[str, int] = {}
    for token, index in vocabulary.ids.items():
        match = pattern.fullmatch(token)
        if match and is_well_formed(match[1]):
            codes.setdefault(match[1], index)
    return codes


def _of_options(options: ImportOptions, begin: tuple[int, ...], problems: list[str]) -> tuple[LanguagePair, ...]:
    codes = {"source": options.source_language, "target": options.target_language}
    missing = [side for side, code in codes.items() if not is_well_formed(code)]
    problems += [f"nothing in it names the {side} language; give --{side}-language" for side in missing]
    return () if missing else (LanguagePair(codes["source"], codes["target"], begin),)


def _to_each(
    codes: Mapping[str, int], options: ImportOptions, begin: tuple[int, ...], problems: list[str]
) -> tuple[LanguagePair, ...]:
    source = options.source_language
    if not is_well_formed(source):
        problems.append("nothing in it names the source language; give --source-language")
        return ()
    return prefixed_pairs(source, codes, options.target_language, problems, begin)


def _of_package(
    metadata: Mapping[str, Any],
    target: Vocabulary,
    options: ImportOptions,
    begin: tuple[int, ...],
    problems: list[str],
) -> tuple[LanguagePair, ...]:
    """Return the direction of one of Argos' packages, whose translations may begin with a token."""
    named = [code if isinstance(code := metadata.get(name), str) else "" for name in ("from_code", "to_code")]
    said = replace(
        options,
        source_language=options.source_language or named[0],
        target_language=options.target_language or named[1],
    )
    prefix = metadata.get("target_prefix") or ""
    if prefix and (not isinstance(prefix, str) or prefix not in target.ids):
        problems.append(f"metadata.json: target_prefix is {str(prefix)[:60]!r}, which is not in the vocabulary")
        prefix = ""
    ids = (target.ids[prefix],) if prefix else ()
    pairs = _of_options(said, begin, problems)
    return tuple(replace(pair, target_prefix_ids=ids) for pair in pairs)
