"""Settings and vocabularies in a toolkit's checkpoint beside its weights, as its layout describes them.

In a layout's `[saved]`, `settings` and `vocabularies` (source, target) are places: paths in the checkpoint, or files
beside it, whose names may have languages in braces; `|` separates alternatives. `keys` maps a setting (inner ones by
their path, joined by "_") to a key of --config, or each of its values to such keys with values. `always` holds in any
case; "none" is null there.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from export.importers import stored_file
from export.importers.marian_files.yaml_file import parse_settings
from export.importers.options import ImportOptions
from export.importers.word_list import ids_of, read_words
from service.domain.errors import shown

_DEEPEST, _MOST = 8, 10_000  # of settings in settings, and all in all: a file may hold itself
# Attributes of omegaconf's nodes: what they hold, and what is no setting.
_HELD, _ASIDE = ("_content", "_val"), ("_parent", "_metadata", "_flags_cache")


@dataclass(frozen=True, slots=True)
class Saved:
    """Keys of --config, and ids by token of source and target, if there are such."""

    settings: dict[str, Any] = field(default_factory=dict)
    source: Mapping[str, int] | None = None
    target: Mapping[str, int] | None = None


def read_saved(
    file: Path, document: Any, rules: Mapping[str, Any], options: ImportOptions, problems: list[str]
) -> Saved:
    """Read what the checkpoint `document` in `file` says, by a layout's `[saved]`; add every problem to `problems`."""
    places = [_found(file, document, place) for place in rules.get("settings", ())]
    pairs = itertools.chain.from_iterable(_flat(place) for place in places if place is not None)
    said = {name: value for name, value in itertools.islice(pairs, _MOST) if value is not None}
    if not said:
        return Saved()
    said = {"source_lang": options.source_language, "target_lang": options.target_language, **said}
    settings = {name: None if value == "none" else value for name, value in rules["always"].items()}
    settings |= _read(said, rules["keys"], problems)
    lists = []
    for pattern in rules["vocabularies"]:
        name = re.sub(r"{(\w+)}", lambda match: str(said[match[1]]), pattern)
        found = next((held for each in name.split("|") if (held := _found(file, document, each)) is not None), None)
        lists.append(None if found is None else ids_of(found))
        problems += [f"its vocabulary {name} is missing"] if found is None else []
    return Saved(settings, *lists)


def _read(said: Mapping[str, Any], keys: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, meaning in keys.items():
        if name not in said:
            continue
        value, word = said[name], _word(said[name])
        if isinstance(meaning, dict) and word not in meaning:
            problems.append(f"its {name} is {shown(word)}; supported: {', '.join(meaning)}")
            continue
        for ours, chosen in (meaning[word] if isinstance(meaning, dict) else {meaning: value}).items():
            other = origins.setdefault(ours, name)
            if read.setdefault(ours, chosen) != chosen:
                problems.append(f"its {other} is {_word(said[other])}, and {name} {word}; they must be equal")
    return read


def _found(file: Path, document: Any, place: str) -> Any:
    """Return what is at a place: a path in the checkpoint or a file beside it; `None`: nothing."""
    for name in place.split("."):
        held = dict(enumerate(document)) if isinstance(document, list | tuple) else document
        document = held.get(int(name) if name.isdecimal() else name) if isinstance(held, dict) else None
    beside = file.parent / Path(place).name
    if document is not None or not beside.is_file():
        return document
    return parse_settings(stored_file.read(beside)) if beside.suffix == ".yaml" else read_words(beside)[0]


def _flat(held: Any, path: tuple[str, ...] = (), depth: int = 0) -> Iterator[tuple[str, Any]]:
    if not isinstance(held, dict) or not held or depth == _DEEPEST:
        yield "_".join(path), held
        return
    for name, value in held.items():
        if name not in _ASIDE:
            yield from _flat(value, path if name in _HELD else (*path, str(name)), depth + 1)


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
