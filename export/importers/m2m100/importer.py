"""Imports M2M100, SMaLL-100 and NLLB-200 checkpoints in transformers' format: one model, between all its languages."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from export.importers.huggingface.bart_layout import M2M100
from export.importers.huggingface.folder import HuggingFaceModel, checkpoint, read_model
from export.importers.imported import CheckpointError, ImportedCheckpoint, TokenizerFile
from export.importers.language_choice import asked_languages, chosen_directions
from export.importers.m2m100.m2m100_files import VOCABULARY_NAME, M2M100Files, names_small100, read_m2m100
from export.importers.m2m100.nllb_files import TOKENIZER_NAME, NllbFiles, read_nllb, write_nllb_tokenizer
from export.importers.model_card import NLLB_LICENCE, UNKNOWN_LICENCE
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from service.bundle.manifest_parts import Language
from service.domain.errors import listed

SMALL100_CODE = "tokenization_small100.py"
_SMALL100_LAYERS = (12, 3)


def import_m2m100(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; `options` may choose some pairs of its languages."""
    return _import(directory, options, _is_small100(directory))


def import_small100(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder of SMaLL-100 that does not say that it is one; see `import_m2m100`."""
    return _import(directory, options, is_small100=True)


def _import(directory: Path, options: ImportOptions, is_small100: bool) -> ImportedCheckpoint:
    problems = options.unsuited()
    read = partial(read_m2m100, is_small100=is_small100) if _has_vocabulary(directory) else read_nllb
    files = read_part("tokenizer", lambda: read(directory), problems)
    sizes = None if files is None else (files.size, files.size)
    first_ids = None if files is None else () if is_small100 else files.languages.values()
    found = read_model(directory, M2M100, files, sizes, problems, first_ids)
    codes = () if files is None else tuple(files.languages)
    source, target = asked_languages(options, codes, problems) if codes else (None, None)
    if problems or files is None or found is None:
        raise CheckpointError(directory, problems)
    entry = _small100_entry if is_small100 else _entry
    every = {code: entry(code, (index,)) for code, index in files.languages.items()}
    pairs, among = chosen_directions(every, source, target)
    tokenizer_files = _tokenizer_files(directory, files)
    notes = _notes(files, found, is_small100)
    built = checkpoint(directory, M2M100, found, files, tokenizer_files, pairs, among, notes)
    if isinstance(files, NllbFiles) and built.licence == UNKNOWN_LICENCE:
        return dataclasses.replace(built, licence=NLLB_LICENCE)
    return built


def _is_small100(directory: Path) -> bool:
    """Return whether a folder names SMaLL-100's class of tokenizers, or holds its code, which is not run."""
    return (directory / SMALL100_CODE).exists() or names_small100(directory)


def _has_vocabulary(directory: Path) -> bool:
    """Return whether there are files of M2M100, whose pieces have their ids in `vocab.json`; NLLB has no such file."""
    return (directory / VOCABULARY_NAME).exists()


def _entry(code: str, ids: tuple[int, ...]) -> Language:
    return Language(code, source_prefix_ids=ids, target_prefix_ids=ids)


def _small100_entry(code: str, ids: tuple[int, ...]) -> Language:
    return Language(code, into_prefix_ids=ids)


def _tokenizer_files(directory: Path, files: M2M100Files | NllbFiles) -> Mapping[str, TokenizerFile]:
    if isinstance(files, NllbFiles):
        return {TOKENIZER_NAME: partial(write_nllb_tokenizer, directory)}
    return {name: directory / name for name in files.spec(0).files}


def _notes(files: M2M100Files | NllbFiles, found: HuggingFaceModel, is_small100: bool) -> tuple[str, ...]:
    """Return what is said of tokens that may be languages, but are not marked as such, and of models that look like
    SMaLL-100, which only its tokenizer tells from M2M100.
    """
    if isinstance(files, M2M100Files):
        config = found.model.config
        is_alike = (config.num_encoder_layers, config.num_decoder_layers) == _SMALL100_LAYERS and not is_small100
        return ("if this is SMaLL-100, give --from small100: its languages stand elsewhere",) if is_alike else ()
    if not files.others:
        return ()
    return (
        f"added tokens are taken as words, not as languages, unless they are special: {listed(files.others)}; if they "
        "are languages, list them in additional_special_tokens of tokenizer_config.json",
    )
