"""DeepL's messages about glossaries.

Source: https://developers.deepl.com/docs/api-reference/glossaries, also for the formats of entries.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.domain.checkpoint import paced
from service.domain.errors import InvalidRequest, Path, Public, Quoted
from service.domain.translation import Term
from service.faces.http.bounded import MAX_NAME_LENGTH, AtMost, Checked, Name
from service.faces.http.languages import ListedLanguage
from service.text.glossary import COMMENT, MAX_TERM_LENGTH, Glossary
from service.text.glossary_files import Dictionary
from service.text.glossary_store import StoredGlossary
from service.text.languages import canonical, folded, is_well_formed, language_of

Document = dict[str, Any]

_MAX_DICTIONARIES = 256
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

Title = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore")


class PairParameters(_Message):
    """Two languages."""

    source_lang: Name
    target_lang: Name


class DictionaryParameters(PairParameters):
    """The entries of a dictionary."""

    entries: Annotated[str, Checked("what its key may keep, once its entries are counted")]
    entries_format: Literal["tsv", "csv"]


Dictionaries = Annotated[list[DictionaryParameters], AtMost(_MAX_DICTIONARIES)]


class CreateParameters(DictionaryParameters):
    """A glossary of version 2."""

    name: Title


class CreateSeveralParameters(_Message):
    """A glossary of version 3."""

    name: Title
    dictionaries: Dictionaries


class PatchParameters(_Message):
    """A new name, or entries to add."""

    name: Title | None = None
    dictionaries: Dictionaries = []


def pair_of(parameters: PairParameters, where: tuple[str | int, ...] = ()) -> tuple[str, str]:
    """Return the codes of a pair of languages as this server spells them.

    Raises:
        InvalidRequest: one is no language code, or both are the same.
    """
    codes = []
    for name, code in (("source_lang", parameters.source_lang), ("target_lang", parameters.target_lang)):
        if not is_well_formed(code):
            expected = "expected a BCP 47 code such as 'en'"
            raise InvalidRequest("{path} is {code}", Path(*where, name), code=code, advice=expected)
        codes.append(canonical(code))
    source, target = codes
    if folded(source) == folded(target):
        raise InvalidRequest("{path} is the source language too", Path(*where, "target_lang"))
    return source, target


def pairs_of(languages: Iterable[ListedLanguage]) -> list[tuple[str, str]]:
    """Return the pairs of languages for which there can be dictionaries: all that are translated."""
    return [(each.code, target) for each in languages for target in each.targets]


def dictionary_of(
    parameters: DictionaryParameters, pairs: Sequence[tuple[str, str]], where: tuple[str | int, ...] = ()
) -> Dictionary:
    """Return a dictionary; its languages must be those of one of `pairs`.

    Raises:
        InvalidRequest: the languages or the entries can't be used.
    """
    codes = pair_of(parameters, where)
    if tuple(map(language_of, codes)) not in {tuple(map(language_of, pair)) for pair in pairs}:
        raise InvalidRequest(
            "Unsupported glossary source and target language pair: {source} and {target}",
            Path(*where, "target_lang"),
            source=parameters.source_lang,
            target=parameters.target_lang,
            advice="/v2/glossary-language-pairs lists those that are",
        )
    return Dictionary(*codes, terms_of(parameters, Path(*where, "entries")))


def dictionaries_of(parameters: Sequence[DictionaryParameters], pairs: Sequence[tuple[str, str]]) -> list[Dictionary]:
    """Return the dictionaries of a glossary.

    Raises:
        InvalidRequest: two are of the same languages, or as for `dictionary_of`.
    """
    found: dict[tuple[str, str], Dictionary] = {}
    for index, each in enumerate(parameters):
        dictionary = dictionary_of(each, pairs, ("dictionaries", index))
        key = folded(dictionary.source_language_code), folded(dictionary.target_language_code)
        if key in found:
            raise InvalidRequest("{path} has the languages of an earlier one", Path("dictionaries", index))
        found[key] = dictionary
    return list(found.values())


def terms_of(parameters: DictionaryParameters, path: Path) -> tuple[Term, ...]:
    """Return the terms of a dictionary's entries. Passes checkpoints.

    Raises:
        InvalidRequest: there are none, or one can't be used; tells which.
    """
    entries: dict[str, tuple[int, str]] = {}
    rows = _rows_of_tsv if parameters.entries_format == "tsv" else _rows_of_csv
    for index, row in paced(rows(parameters, path)):
        source, target = (each.strip() for each in row)
        _check_entry(path, index, source, target)
        first, _ = entries.setdefault(source, (index, target))
        if first != index:
            raise _invalid(path, index, f"has the source of the one with the index {first}")
    if not entries:
        raise InvalidRequest("{path} has no entries", path)
    # Terms match in any case, unless there is another that differs in its case only.
    seen: dict[str, int] = {}
    for source in entries:
        seen[source.lower()] = seen.get(source.lower(), 0) + 1
    return tuple(
        Term(source, target, is_case_sensitive=seen[source.lower()] > 1) for source, (_, target) in entries.items()
    )


def tsv_of(dictionary: Glossary) -> str:
    """Return the entries of a dictionary; a term that is not translated is its own target. Passes checkpoints."""
    return "\n".join(f"{each.source}\t{each.target or each.source}" for each in paced(dictionary.terms))


def glossary_document(glossary: StoredGlossary) -> Document:
    """Return a glossary of version 3, without its entries."""
    return {
        "glossary_id": glossary.id,
        "name": glossary.title,
        "dictionaries": [dictionary_document(each) for each in glossary.dictionaries],
        "creation_time": _time_of(glossary),
    }


def dictionary_document(dictionary: Glossary) -> Document:
    """Return a dictionary without its entries."""
    return {**_languages_document(dictionary), "entry_count": len(dictionary.terms)}


def entries_document(dictionary: Glossary) -> Document:
    """Return a dictionary's entries."""
    entry = {**_languages_document(dictionary), "entries": tsv_of(dictionary), "entries_format": "tsv"}
    return {"dictionaries": [entry]}


def single_glossary_document(glossary: StoredGlossary) -> Document:
    """Return a glossary of version 2, which has one dictionary."""
    [dictionary] = glossary.dictionaries
    return {
        "glossary_id": glossary.id,
        "name": glossary.title,
        "ready": True,
        **dictionary_document(dictionary),
        "creation_time": _time_of(glossary),
    }


def pairs_document(pairs: Iterable[tuple[str, str]]) -> Document:
    """Return the pairs of languages for which there can be dictionaries."""
    listed = dict.fromkeys((source.lower(), target.lower()) for source, target in pairs)
    return {"supported_languages": [{"source_lang": source, "target_lang": target} for source, target in listed]}


def _rows_of_tsv(parameters: DictionaryParameters, path: Path) -> Iterator[tuple[int, Sequence[str]]]:
    for index, line in enumerate(parameters.entries.split("\n")):
        if not line.strip():
            continue
        row = line.removesuffix("\r").split("\t")
        if len(row) == 1:
            raise _invalid(path, index, "misses the tab separator")
        if len(row) > 2:
            raise _invalid(path, index, "has more than one tab separator")
        yield index, row


def _rows_of_csv(parameters: DictionaryParameters, path: Path) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the first two columns; of rows that name languages in two more, those of the dictionary's."""
    pair = folded(parameters.source_lang), folded(parameters.target_lang)
    try:
        for index, row in enumerate(csv.reader(io.StringIO(parameters.entries, newline=""), strict=True)):
            if not any(each.strip() for each in row):
                continue
            if len(row) not in (2, 4):
                raise _invalid(path, index, f"has {len(row)} columns instead of 2, or 4 with languages")
            if len(row) == 2 or tuple(folded(each.strip()) for each in row[2:]) == pair:
                yield index, row[:2]
    except csv.Error as error:
        raise InvalidRequest("{path} is not CSV: {reason}", path, reason=Quoted(str(error))) from error


def _check_entry(path: Path, index: int, source: str, target: str) -> None:
    for name, term in (("source", source), ("target", target)):
        if not term:
            raise _invalid(path, index, f"has an empty {name}")
        if len(term) > MAX_TERM_LENGTH:
            raise _invalid(path, index, f"has a {name} of {len(term)} characters; allowed are {MAX_TERM_LENGTH}")
        if _CONTROL.search(term):
            raise _invalid(path, index, f"has a control character or a line end in its {name}")
    if source.startswith(COMMENT):
        raise _invalid(path, index, f"begins with {COMMENT}, which begins a comment in this server's glossaries")


def _invalid(path: Path, index: int, problem: str) -> InvalidRequest:
    return InvalidRequest(
        "Invalid glossary entries provided: the entry with the index {index} in {path} {what}",
        path,
        index=index,
        what=Public(problem),
    )


def _languages_document(dictionary: Glossary) -> Document:
    return {
        "source_lang": dictionary.source_language_code.lower(),
        "target_lang": dictionary.target_language_code.lower(),
    }


def _time_of(glossary: StoredGlossary) -> str:
    return glossary.created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
