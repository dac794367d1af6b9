"""Imports T5's checkpoints in transformers' format: T5 with its tasks, MADLAD-400 with its languages, fine-tunes."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from export.importers.huggingface.folder import CONFIG_NAME, checkpoint, read_model
from export.importers.huggingface.tokenizer_config import read_optional
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.language_choice import asked_languages, chosen_directions
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from export.importers.t5.layout import MT5, T5, UMT5
from export.importers.t5.tokenizer_files import TOKENIZER_NAME, T5Files, read_t5
from service.bundle.manifest_parts import Language, LanguagePair
from service.text.languages import is_well_formed

_LAYOUTS = {"t5": T5, "mt5": MT5, "umt5": UMT5}
_MAX_PREFIX = 128  # tokens, a quarter of a source
_TASK = re.compile("translation_(?P<source>[A-Za-z-]+)_to_(?P<target>[A-Za-z-]+)")


def import_t5(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; `options` name the languages and the prefix of models that don't."""
    files_problems: list[str] = []
    files = read_part("tokenizer", lambda: read_t5(directory), files_problems)
    names_languages = files is not None and len(files.languages) > 1
    problems = [*options.unsuited(*([] if names_languages else ["--source-prefix"])), *files_problems]
    sizes = None if files is None else (files.size, files.size)
    document = read_optional(directory / CONFIG_NAME, [])  # its problems are `read_model`'s
    layout = _LAYOUTS.get(str(document.get("model_type")), T5)
    found = read_model(directory, layout, files, sizes, problems)
    pairs: tuple[LanguagePair, ...] = ()
    among: tuple[Language, ...] = ()
    if files is not None and names_languages:
        every = {code: Language(code, into_prefix_ids=ids) for code, ids in files.languages.items()}
        pairs, among = chosen_directions(every, *asked_languages(options, every, problems))
    elif files is not None:
        pairs = _by_text(files, document, options, problems)
    if problems or files is None or found is None:
        raise CheckpointError(directory, problems)
    return checkpoint(directory, layout, found, files, {TOKENIZER_NAME: files.save}, pairs, among)


def _by_text(
    files: T5Files, document: Mapping[str, Any], options: ImportOptions, problems: list[str]
) -> tuple[LanguagePair, ...]:
    """Return the pair that is asked for, with its text before each source; or else the tasks of `config.json`."""
    tasks = _tasks(document)
    asked = {"--source-language": options.source_language, "--target-language": options.target_language}
    if all(asked.values()) or options.source_prefix:
        for flag, code in asked.items():
            if not is_well_formed(code):
                problems.append(f"{flag} is {code[:60]!r}, expected a code such as en or pt-BR")
        source, target = asked.values()
        tasks = {(source, target): options.source_prefix or tasks.get((source, target), "")}
    elif given := [flag for flag, code in asked.items() if code]:
        problems.append(f"{given[0]} chooses a pair together with the other language; give both or neither")
    elif not tasks:
        problems.append(
            "it does not say what it translates; give --source-language, --target-language and, if it was trained with "
            "one, the text before each source as --source-prefix"
        )
    pairs = tuple(LanguagePair(*pair, source_prefix_ids=files.ids(prefix)) for pair, prefix in tasks.items())
    longest = max((len(pair.source_prefix_ids) for pair in pairs), default=0)
    if longest > _MAX_PREFIX:
        problems.append(f"the text before each source has {longest} tokens, allowed are {_MAX_PREFIX}")
    return pairs


def _tasks(document: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return the texts before sources by pairs of languages, as `task_specific_params` has them."""
    tasks = document.get("task_specific_params")
    found: dict[tuple[str, str], str] = {}
    for name, settings in tasks.items() if isinstance(tasks, dict) else ():
        pair = _TASK.fullmatch(name)
        prefix = settings.get("prefix") if isinstance(settings, dict) else None
        if pair and isinstance(prefix, str) and is_well_formed(pair["source"]) and is_well_formed(pair["target"]):
            found[pair["source"], pair["target"]] = prefix
    return found
