"""mBART, mBART-50, BART and PLBart."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from export.importers.huggingface.bart_layout import BART, MBART, PLBART
from export.importers.huggingface.bart_tokenizer import read_bart
from export.importers.huggingface.family import Directions, Family, Folder, by_model_type, import_folder
from export.importers.huggingface.generation import GenerationSettings
from export.importers.huggingface.mbart_tokenizer import read_mbart
from export.importers.huggingface.plbart_tokenizer import read_plbart
from export.importers.huggingface.tokenizer_config import CONFIG_NAME, class_of, read_optional
from export.importers.huggingface.tokenizer_files import TokenizerFiles, raise_if_any
from export.importers.imported import ImportedCheckpoint
from export.importers.language_choice import asked_languages, chosen_directions
from export.importers.options import ImportOptions
from service.bundle.manifest_parts import Language, LanguagePair

_READERS: Mapping[str, Callable[[Path, Mapping[str, Any]], TokenizerFiles]] = {
    "MBartTokenizer": read_mbart,
    "MBart50Tokenizer": partial(read_mbart, is_50=True),
    "PLBartTokenizer": read_plbart,
    "BartTokenizer": read_bart,
    "RobertaTokenizer": read_bart,
}


def import_mbart(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; `options` name the languages of BART, and may choose some pairs of the others'."""
    return import_folder(directory, options, by_model_type(directory, _FAMILIES))


def read_tokenizer(directory: Path, default: str) -> TokenizerFiles:
    """Read and check a folder's tokenizer files with the reader of its class, `default` if it names none."""
    problems: list[str] = []
    document = read_optional(directory / CONFIG_NAME, problems)
    name = class_of(directory, document, (default, *_READERS), problems)
    if document.get("extra_special_tokens") and not isinstance(document["extra_special_tokens"], list):
        problems.append(f"{CONFIG_NAME}: its additional special tokens are not a list")
    raise_if_any(problems)
    return _READERS[name](directory, document)


def _directions(folder: Folder[TokenizerFiles]) -> Directions:
    if folder.generation is None:
        return (), ()
    choose = {"both sides": _both_sides, "after source": _after_source, "nowhere": _nowhere}[folder.files.place]
    return choose(folder, folder.generation)


def _both_sides(folder: Folder[TokenizerFiles], generation: GenerationSettings) -> Directions:
    """Return what mBART-50 translates: all languages, or into the one that is always forced, or as chosen."""
    files = folder.files
    source, target = asked_languages(folder.options, files.languages, folder.problems)
    forced = next((code for code, (index,) in files.languages.items() if index == generation.forced_first_id), None)
    if generation.decoder_start_id != files.spec.eos_id:
        folder.problems.append(
            f"translations start from {_start(generation)}, mBART-50's from eos_token_id: set decoder_start_token_id "
            f"to {files.spec.eos_id} in generation_config.json"
        )
    return chosen_directions(files.entries(), source, target or forced)


def _after_source(folder: Folder[TokenizerFiles], generation: GenerationSettings) -> Directions:
    """Return what mBART and PLBart translate: into the language that translations start from, or is forced."""
    files, problems = folder.files, folder.problems
    source, asked = asked_languages(folder.options, files.languages, problems)
    by_id = {index: code for code, (index,) in files.languages.items()}
    forced_id = generation.forced_first_id
    target = by_id.get(generation.decoder_start_id) or by_id.get(-1 if forced_id is None else forced_id)
    if target is None:
        problems.append(
            f"translations start from {_start(generation)}, which is not a language's: set "
            "decoder_start_token_id in generation_config.json to the target language's token, such as "
            f"{min(by_id, default=0)}"
        )
        return (), ()
    if asked not in (None, target):
        problems.append(f"--target-language is {asked!r}; this model starts its translations with {target!r}")
    every = {code: Language(code) for code in files.languages}
    pairs, _ = chosen_directions(every, source or files.source or None, target)
    first_ids = () if forced_id is None else (forced_id,)
    return tuple(
        dataclasses.replace(
            pair, target_prefix_ids=first_ids, source_suffix_ids=files.languages[pair.source_language_code]
        )
        for pair in pairs
    ), ()


def _nowhere(folder: Folder[TokenizerFiles], generation: GenerationSettings) -> Directions:
    codes = (folder.options.source_language, folder.options.target_language)
    if not all(codes):
        folder.problems.append(
            "BART names no languages; give --source-language and --target-language, the same to summarise"
        )
    first_ids = () if generation.forced_first_id is None else (generation.forced_first_id,)
    return (LanguagePair(*codes, folder.files.begin_ids, first_ids),), ()


def _start(generation: GenerationSettings) -> str:
    return f"the token {generation.decoder_start_id} (decoder_start_token_id or else bos_token_id)"


_FAMILIES = {
    model_type: Family(layout, partial(read_tokenizer, default=usual_class), _directions, first_ids=None)
    for model_type, layout, usual_class in (
        ("mbart", MBART, "MBartTokenizer"),
        ("bart", BART, "BartTokenizer"),
        ("plbart", PLBART, "PLBartTokenizer"),
    )
}
