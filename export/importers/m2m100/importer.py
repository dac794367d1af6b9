"""Imports M2M100 and NLLB-200 checkpoints in transformers' format: one model, between all of its languages."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from export.importers.huggingface.bart_layout import M2M100
from export.importers.huggingface.folder import checkpoint, read_model
from export.importers.imported import CheckpointError, ImportedCheckpoint, TokenizerFile
from export.importers.language_choice import chosen_language
from export.importers.m2m100.m2m100_files import VOCABULARY_NAME, M2M100Files, read_m2m100
from export.importers.m2m100.nllb_files import TOKENIZER_NAME, NllbFiles, read_nllb, write_nllb_tokenizer
from export.importers.model_card import NLLB_LICENCE, UNKNOWN_LICENCE
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from service.bundle.manifest_parts import Language, LanguagePair
from service.domain.errors import listed


def import_m2m100(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; `options` may choose one pair of its languages.

    Raises:
        CheckpointError: it can't be converted; all problems are listed.
    """
    problems = options.without_files()
    files = read_part("tokenizer", lambda: _read_files(directory), problems)
    sizes = None if files is None else (files.size, files.size)
    first_ids = None if files is None else files.languages.values()
    found = read_model(directory, M2M100, files, sizes, problems, first_ids)
    languages = _languages(files, options, problems) if files is not None else ()
    if problems or files is None or found is None:
        raise CheckpointError(directory, problems)
    tokenizer_files = _tokenizer_files(directory, files)
    build = partial(checkpoint, directory, M2M100, found, files, tokenizer_files, notes=_notes(files))
    is_pair = options.source_language and options.target_language
    built = build(languages=_pair(languages)) if is_pair else build(any_to_any=languages)
    if isinstance(files, NllbFiles) and built.licence == UNKNOWN_LICENCE:
        return dataclasses.replace(built, licence=NLLB_LICENCE)
    return built


def _read_files(directory: Path) -> M2M100Files | NllbFiles:
    """Read the files of M2M100, whose pieces have their ids in `vocab.json`, or of NLLB, which has no such file."""
    return read_m2m100(directory) if (directory / VOCABULARY_NAME).exists() else read_nllb(directory)


def _tokenizer_files(directory: Path, files: M2M100Files | NllbFiles) -> Mapping[str, TokenizerFile]:
    if isinstance(files, NllbFiles):
        return {TOKENIZER_NAME: partial(write_nllb_tokenizer, directory)}
    return {name: directory / name for name in files.spec(0).files}


def _languages(files: M2M100Files | NllbFiles, options: ImportOptions, problems: list[str]) -> tuple[Language, ...]:
    """Return all languages or, if `options` name two, these, source first."""
    every = {code: Language(code, (index,), (index,)) for code, index in files.languages.items()}
    asked = {"--source-language": options.source_language, "--target-language": options.target_language}
    given = {flag: code for flag, code in asked.items() if code}
    if len(given) == 1:
        problems.append("--source-language and --target-language choose a pair together; give both or neither")
    chosen = [chosen_language(code, every, flag, problems) for flag, code in given.items()]
    named = [every[code] for code in chosen if code is not None]
    return tuple(named) if len(named) == len(asked) else tuple(every.values())


def _notes(files: M2M100Files | NllbFiles) -> tuple[str, ...]:
    """Return what is said of tokens that may be languages, but are not marked as such."""
    if not isinstance(files, NllbFiles) or not files.others:
        return ()
    return (
        f"added tokens are taken as words, not as languages, unless they are special: {listed(files.others)}; if they "
        "are languages, list them in additional_special_tokens of tokenizer_config.json",
    )


def _pair(languages: tuple[Language, ...]) -> tuple[LanguagePair, ...]:
    source, target = languages
    return (LanguagePair(source.code, target.code, source.source_prefix_ids, target.target_prefix_ids),)
