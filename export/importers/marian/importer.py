"""Imports Marian checkpoints (OPUS-MT) in transformers' format: `source.spm`, `target.spm`, `vocab.json`."""

from pathlib import Path

from export.importers.huggingface.bart_layout import MARIAN, MARIANS_OWN
from export.importers.huggingface.folder import checkpoint, read_model
from export.importers.huggingface.tokenizer_config import CONFIG_NAME, read_optional
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.language_choice import prefixed_pairs
from export.importers.marian.tokenizer_files import MarianFiles, read_marian
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from service.bundle.manifest_parts import LanguagePair


def import_marian(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; languages that it does not name come from `options`."""
    problems = options.unsuited("--positions")
    files = read_part("tokenizer", lambda: read_marian(directory), problems)
    sizes = None if files is None else (files.source_size, files.target_size)
    found = read_model(directory, MARIAN, files, sizes, problems)
    pairs = _languages(directory, files, options, problems) if files is not None else ()
    if problems or files is None or found is None:
        raise CheckpointError(directory, problems)
    tokenizer_files = {name: directory / name for name in files.spec(0).files}
    positions = MARIANS_OWN if options.positions else None
    return checkpoint(directory, MARIAN, found, files, tokenizer_files, languages=pairs, positions=positions)


def _languages(
    directory: Path, files: MarianFiles, options: ImportOptions, problems: list[str]
) -> tuple[LanguagePair, ...]:
    """Return one pair; or one per `>>xx<<` token, with which the source then begins."""
    config = read_optional(directory / CONFIG_NAME, problems)
    source = options.source_language or config.get("source_lang")
    target = options.target_language or config.get("target_lang")
    if not isinstance(source, str) or not source:
        problems.append(f"{CONFIG_NAME} names no source_lang; give --source-language")
        return ()
    if not files.target_prefixes:
        if not isinstance(target, str) or not target:
            problems.append(f"{CONFIG_NAME} names no target_lang; give --target-language")
            return ()
        return (LanguagePair(source, target),)
    return prefixed_pairs(source, files.target_prefixes, options.target_language, problems)
