"""Marian (OPUS-MT): two SentencePiece models and one or two vocabularies."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from export.importers.huggingface.bart_layout import MARIAN, MARIANS_OWN
from export.importers.huggingface.family import Directions, Family, Folder, import_folder
from export.importers.huggingface.tokenizer_config import CONFIG_NAME, class_of, read_optional, read_tokenizer_config
from export.importers.huggingface.tokenizer_files import (
    TokenizerFiles,
    check_model,
    copied,
    raise_if_any,
    read_vocabulary,
)
from export.importers.imported import ImportedCheckpoint
from export.importers.language_choice import prefixed_pairs
from export.importers.options import ImportOptions
from service.bundle.manifest_parts import LanguagePair
from service.text.vocabulary import marian_language

SOURCE_MODEL_NAME = "source.spm"
TARGET_MODEL_NAME = "target.spm"
VOCABULARY_NAME = "vocab.json"
TARGET_VOCABULARY_NAME = "target_vocab.json"

_DEFAULTS = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


def import_marian(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; languages that it does not name come from `options`."""
    family = dataclasses.replace(_FAMILY, positions=MARIANS_OWN) if options.positions else _FAMILY
    return import_folder(directory, options, family)


def read_marian(directory: Path) -> TokenizerFiles:
    problems: list[str] = []
    check_model(directory / SOURCE_MODEL_NAME, problems)
    check_model(directory / TARGET_MODEL_NAME, problems)
    vocabulary = read_vocabulary(directory / VOCABULARY_NAME, problems)
    config = read_tokenizer_config(directory, vocabulary, _DEFAULTS, problems)
    class_of(directory, config.document, ("MarianTokenizer",), problems)
    is_separate = config.document.get("separate_vocabs") is True
    target = vocabulary
    if is_separate:
        target = read_vocabulary(directory / TARGET_VOCABULARY_NAME, problems)
        problems += config.differing_ids(target, TARGET_VOCABULARY_NAME, VOCABULARY_NAME)
    raise_if_any(problems)
    pieces = vocabulary | config.special_tokens  # among which a language may be that somebody added
    # With a shared vocabulary, transformers 5 decodes with source.spm, so target.spm is not needed.
    spec = config.spec(
        "marian",
        SOURCE_MODEL_NAME,
        target_file=TARGET_MODEL_NAME if is_separate else "",
        vocabulary_file=VOCABULARY_NAME,
        target_vocabulary_file=TARGET_VOCABULARY_NAME if is_separate else "",
    )
    return TokenizerFiles(
        spec=spec,
        written=copied(directory, spec),
        sizes=(_size(vocabulary, config.special_tokens), _size(target, config.special_tokens)),
        languages={code: (index,) for piece, index in pieces.items() if (code := marian_language(piece))},
        place="target before source",
    )


def _size(vocabulary: Mapping[str, int], special_tokens: Mapping[str, int]) -> int:
    return max(*vocabulary.values(), *special_tokens.values()) + 1


def _directions(folder: Folder[TokenizerFiles]) -> Directions:
    """Return one pair; or one per `>>xx<<` token, with which the source then begins."""
    options, problems = folder.options, folder.problems
    config = read_optional(folder.path / CONFIG_NAME, problems)
    source = options.source_language or config.get("source_lang")
    target = options.target_language or config.get("target_lang")
    if not isinstance(source, str) or not source:
        problems.append(f"{CONFIG_NAME} names no source_lang; give --source-language")
        return (), ()
    if folder.files.languages:
        prefixes = {code: index for code, (index,) in folder.files.languages.items()}
        return prefixed_pairs(source, prefixes, options.target_language, problems), ()
    if not isinstance(target, str) or not target:
        problems.append(f"{CONFIG_NAME} names no target_lang; give --target-language")
        return (), ()
    return (LanguagePair(source, target),), ()


_FAMILY = Family(MARIAN, read_marian, _directions, takes=("--positions",))
