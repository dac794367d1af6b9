"""Imports mBART, mBART-50, BART and PLBart checkpoints in transformers' format."""

import dataclasses
from pathlib import Path

from export.importers.huggingface.bart_layout import BART, MBART, PLBART
from export.importers.huggingface.folder import CONFIG_NAME, checkpoint, read_model
from export.importers.huggingface.generation import GenerationSettings
from export.importers.huggingface.tokenizer_config import read_optional
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.language_choice import asked_languages, chosen_directions
from export.importers.mbart.bart_files import read_bart
from export.importers.mbart.mbart_files import read_mbart, read_mbart_50
from export.importers.mbart.plbart_files import read_plbart
from export.importers.mbart.tokenizer_files import BartFiles, read_tokenizer
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from service.bundle.manifest_parts import Language, LanguagePair

READERS = {
    "MBartTokenizer": read_mbart,
    "MBart50Tokenizer": read_mbart_50,
    "PLBartTokenizer": read_plbart,
    "BartTokenizer": read_bart,
    "RobertaTokenizer": read_bart,
}
_FAMILIES = {
    "mbart": (MBART, "MBartTokenizer"),
    "bart": (BART, "BartTokenizer"),
    "plbart": (PLBART, "PLBartTokenizer"),
}
_Directions = tuple[tuple[LanguagePair, ...], tuple[Language, ...]]


def import_mbart(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; `options` name the languages of BART, and may choose some pairs of the others'."""
    problems = options.unsuited()
    model_type = read_optional(directory / CONFIG_NAME, []).get("model_type")
    family, usual_class = _FAMILIES.get(str(model_type), _FAMILIES["mbart"])
    files = read_part("tokenizer", lambda: read_tokenizer(directory, READERS, usual_class), problems)
    sizes = None if files is None else (files.size, files.size)
    first_ids = None if files is None or files.place == "nowhere" else files.languages.values()
    found = read_model(directory, family, files, sizes, problems, first_ids)
    if files is None or found is None:
        raise CheckpointError(directory, problems)
    choose = {"before": _before, "after": _after, "nowhere": _unnamed}[files.place]
    pairs, among = choose(files, found.generation, options, problems)
    if problems:
        raise CheckpointError(directory, problems)
    return checkpoint(directory, family, found, files, files.written, pairs, among)


def _before(
    files: BartFiles, generation: GenerationSettings, options: ImportOptions, problems: list[str]
) -> _Directions:
    """Return what mBART-50 translates: all languages, or into the one that is always forced, or as chosen."""
    source, target = asked_languages(options, files.languages, problems)
    forced = next((code for code, index in files.languages.items() if index == generation.forced_first_id), None)
    if generation.decoder_start_id != files.eos_id:
        problems.append(
            f"translations start from {_start(generation)}, mBART-50's from eos_token_id: set decoder_start_token_id "
            f"to {files.eos_id} in generation_config.json"
        )
    every = {code: Language(code, (index,), (index,)) for code, index in files.languages.items()}
    return chosen_directions(every, source, target or forced)


def _after(
    files: BartFiles, generation: GenerationSettings, options: ImportOptions, problems: list[str]
) -> _Directions:
    """Return what mBART and PLBart translate: into the language that translations start from, or is forced."""
    source, asked = asked_languages(options, files.languages, problems)
    by_id = {index: code for code, index in files.languages.items()}
    forced_id = generation.forced_first_id
    target = by_id.get(generation.decoder_start_id) or by_id.get(-1 if forced_id is None else forced_id)
    if target is None:
        problems.append(
            f"translations start from {_start(generation)}, which is no language's: set decoder_start_token_id in "
            "generation_config.json to the target language's token, "
            f"such as {min(files.languages.values(), default=0)}"
        )
        return (), ()
    if asked not in (None, target):
        problems.append(f"--target-language is {asked!r}; this model starts its translations with {target!r}")
    every = {code: Language(code) for code in files.languages}
    pairs, _ = chosen_directions(every, source or files.source or None, target)
    first_ids = () if forced_id is None else (forced_id,)
    return tuple(
        dataclasses.replace(
            pair,
            target_prefix_ids=first_ids,
            source_suffix_ids=(files.languages[pair.source_language_code],),
        )
        for pair in pairs
    ), ()


def _unnamed(
    files: BartFiles, generation: GenerationSettings, options: ImportOptions, problems: list[str]
) -> _Directions:
    """Return the pair of a model that knows nothing of languages."""
    codes = (options.source_language, options.target_language)
    if not all(codes):
        problems.append("BART names no languages; give --source-language and --target-language, the same to summarise")
    first_ids = () if generation.forced_first_id is None else (generation.forced_first_id,)
    return (LanguagePair(*codes, files.first_ids, first_ids),), ()


def _start(generation: GenerationSettings) -> str:
    return f"the token {generation.decoder_start_id} (decoder_start_token_id or else bos_token_id)"
