"""T5 with its tasks, MADLAD-400 with its languages, and fine-tunes."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from export.importers.huggingface.family import (
    Directions,
    Family,
    Folder,
    by_model_type,
    import_folder,
    many_to_many,
)
from export.importers.huggingface.t5_layout import MT5, T5, UMT5
from export.importers.huggingface.t5_tokenizer import T5Files, read_t5
from export.importers.imported import ImportedCheckpoint
from export.importers.options import ImportOptions
from service.bundle.manifest_parts import LanguagePair
from service.text.languages import is_well_formed

_PREFIX_FLAG = "--source-prefix"
_MAX_PREFIX = 128  # tokens, a quarter of a source
_TASK = re.compile("translation_(?P<source>[A-Za-z-]+)_to_(?P<target>[A-Za-z-]+)")


def import_t5(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; `options` name the languages and the prefix of models that don't."""
    return import_folder(directory, options, by_model_type(directory, _FAMILIES))


def _directions(folder: Folder[T5Files]) -> Directions:
    if len(folder.files.languages) < 2:
        return _by_text(folder.files, folder.config(), folder.options, folder.problems), ()
    folder.problems.extend(each for each in folder.options.unsuited() if each.startswith(_PREFIX_FLAG))
    return many_to_many(folder)


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
            "it does not name its languages; give --source-language, --target-language and, if it was "
            "trained with one, the text before each source as --source-prefix"
        )
    pairs = tuple(LanguagePair(*pair, source_prefix_ids=files.ids(prefix)) for pair, prefix in tasks.items())
    longest = max((len(pair.source_prefix_ids) for pair in pairs), default=0)
    if longest > _MAX_PREFIX:
        problems.append(f"the text before each source has {longest} tokens, allowed: {_MAX_PREFIX}")
    return pairs


def _tasks(document: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    tasks = document.get("task_specific_params")
    found: dict[tuple[str, str], str] = {}
    for name, settings in tasks.items() if isinstance(tasks, dict) else ():
        pair = _TASK.fullmatch(name)
        prefix = settings.get("prefix") if isinstance(settings, dict) else None
        if pair and isinstance(prefix, str) and is_well_formed(pair["source"]) and is_well_formed(pair["target"]):
            found[pair["source"], pair["target"]] = prefix
    return found


_FAMILIES = {
    model_type: Family(layout, read_t5, _directions, takes=(_PREFIX_FLAG,))
    for model_type, layout in (("t5", T5), ("mt5", MT5), ("umt5", UMT5))
}
