"""Imports Marian checkpoints (OPUS-MT) as transformers keeps them: `source.spm`, `target.spm`, `vocab.json`."""

from functools import partial
from pathlib import Path

from export.importers.hf_bart import MARIAN
from export.importers.hf_folder import TOKENIZER_CONFIG_NAME, limits, read_model, read_optional_json, read_part
from export.importers.hf_reference import open_transformers
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.model_card import licence_of
from export.importers.options import ImportOptions
from export.importers.vocabulary_files import MarianFiles, read_marian
from service.bundle.manifest import LanguagePair, TokenizerSpec


def import_marian(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; languages that it does not name come from `options`.

    Raises:
        CheckpointError: it can't be converted; all problems are listed.
    """
    problems = options.without_files()
    files = read_part("tokenizer", lambda: read_marian(directory), problems)
    sizes = None if files is None else (files.source_size, files.target_size)
    found = read_model(directory, MARIAN, None if files is None else files.unk_id, sizes, problems)
    pairs = _languages(directory, files, options, problems) if files is not None else ()
    if problems or files is None or found is None:
        raise CheckpointError(directory, problems)
    generation = found.generation
    return ImportedCheckpoint(
        name=directory.resolve().name,
        model=found.model,
        tokenizer=TokenizerSpec(
            kind="marian",
            file=files.source_file,
            target_file=files.target_file,
            vocabulary_file=files.vocabulary_file,
            target_vocabulary_file=files.target_vocabulary_file,
            pad_id=generation.pad_id,
            eos_id=generation.eos_id,
            unk_id=files.unk_id,
            decoder_start_id=generation.decoder_start_id,
            source_eos_id=files.eos_id if files.eos_id != generation.eos_id else None,
        ),
        tokenizer_files={name: directory / name for name in files.names},
        languages=pairs,
        limits=limits(found, longest_prefix=0),
        checkpoint_sha256=found.checkpoint_sha256,
        suppressed_ids=generation.suppressed_ids,
        renormalizes=generation.renormalizes,
        generation=generation.defaults,
        family=MARIAN.name,
        licence=licence_of(directory),
        open_reference=partial(open_transformers, directory),
    )


def _languages(
    directory: Path, files: MarianFiles, options: ImportOptions, problems: list[str]
) -> tuple[LanguagePair, ...]:
    """One pair; or one per `>>xx<<` token, which the source then begins with."""
    config = read_optional_json(directory / TOKENIZER_CONFIG_NAME, problems)
    source = options.source_language or config.get("source_lang")
    target = options.target_language or config.get("target_lang")
    if not isinstance(source, str) or not source:
        problems.append(f"{TOKENIZER_CONFIG_NAME} names no source_lang; give --source-language")
        return ()
    if not files.target_prefixes:
        if not isinstance(target, str) or not target:
            problems.append(f"{TOKENIZER_CONFIG_NAME} names no target_lang; give --target-language")
            return ()
        return (LanguagePair(source, target),)
    chosen = files.target_prefixes
    if options.target_language:
        if options.target_language not in chosen:
            shown = ", ".join(sorted(chosen))
            problems.append(f"--target-language is {options.target_language!r}; the model has {shown}")
        chosen = {code: index for code, index in chosen.items() if code == options.target_language}
    return tuple(LanguagePair(source, code, source_prefix_ids=(index,)) for code, index in chosen.items())
