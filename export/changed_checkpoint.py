"""A checkpoint with changes that its user asks for: other generation settings, an adapter that is merged.

A temporary folder has the changed files and links to the others, so importers and references need not know of changes.
"""

import contextlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from export.importers.adapter import CONFIG_NAME as ADAPTER_CONFIG
from export.importers.adapter import WEIGHTS_NAMES as ADAPTER_WEIGHTS
from export.importers.adapter import is_adapter, merged
from export.importers.huggingface.folder import CONFIG_NAME, GENERATION_NAME
from export.importers.huggingface.generation import REFUSED, TAKEN_OVER, WITHOUT_EFFECT
from export.importers.imported import CheckpointError
from export.importers.json_file import read_json
from export.importers.safetensors_file import write_safetensors
from export.importers.weight_files import INDEX_SUFFIX, SINGLE_NAMES, WeightFiles

_SET_IS_FOR = "--set changes the generation settings of transformers' folders, and this is none; leave it out"
_SETTINGS = TAKEN_OVER | REFUSED.keys() | WITHOUT_EFFECT


@dataclass(frozen=True, slots=True)
class Changes:
    """`settings` replace those of a checkpoint's `generate`, `None` removes one; `base` is an adapter's model."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    base: Path | None = None


NO_CHANGES = Changes()


@contextlib.contextmanager
def changed(source: Path, changes: Changes) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield a folder with the changed checkpoint, for the duration of the block, and what is changed, for people.

    It is `source` itself if nothing is to be changed.
    """
    done: dict[str, Any] = {}
    base = changes.base or source
    if is_adapter(source) and (changes.base or _has_weights(source)):
        done["adapter"] = source.resolve().name
    elif changes.base is not None:
        raise CheckpointError(
            source, [f"--base is for PEFT adapters, and this folder has no {ADAPTER_CONFIG}; leave it out"]
        )
    if not source.is_dir() and changes.settings:
        raise CheckpointError(source, [_SET_IS_FOR])
    if not base.is_dir() and done:
        raise CheckpointError(source, [f"--base {base} is not a folder; give that of the adapter's base model"])
    if changes.settings:
        done["settings"] = dict(changes.settings)
    if not done:
        yield source, done
        return
    with tempfile.TemporaryDirectory(prefix="dragoman-") as temporary:
        folder = Path(temporary, source.resolve().name)
        try:
            _link(base, folder)
            if "adapter" in done:
                _merge(source, folder)
            _set(folder, changes.settings)
        except ValueError as error:
            raise CheckpointError(source, [str(error)]) from error
        try:
            yield folder, done
        except CheckpointError as error:
            raise CheckpointError(source, error.problems) from error


def _link(base: Path, folder: Path) -> None:
    folder.mkdir()
    for path in base.iterdir():
        if path.is_file():
            (folder / path.name).symlink_to(path.resolve())


def _has_weights(folder: Path) -> bool:
    return any((folder / f"{name}{suffix}").is_file() for name in SINGLE_NAMES for suffix in ("", INDEX_SUFFIX))


def _merge(adapter: Path, folder: Path) -> None:
    files = WeightFiles(folder)
    try:
        weights = merged(adapter, files.read())
    except ValueError as error:
        raise ValueError(f"its adapter can't be merged: {error}") from error
    for path in files.paths:
        path.unlink()
    for name in (*(f"{each}{INDEX_SUFFIX}" for each in SINGLE_NAMES), ADAPTER_CONFIG, *ADAPTER_WEIGHTS):
        (folder / name).unlink(missing_ok=True)
    write_safetensors(weights, folder / SINGLE_NAMES[0])


def _set(folder: Path, settings: Mapping[str, Any]) -> None:
    """Change settings in the file that `generate` would take them from."""
    if not settings:
        return
    unknown = sorted(settings.keys() - _SETTINGS)
    if unknown:
        near = get_close_matches(unknown[0], _SETTINGS, 3)
        meant = f"; did you mean {' or '.join(near)}?" if near else ", which transformers does not know"
        raise ValueError(f"--set {unknown[0]}{meant}")
    if not (folder / CONFIG_NAME).is_file() or "model_type" not in read_json(folder / CONFIG_NAME):
        raise ValueError(_SET_IS_FOR)
    path = next(path for name in (GENERATION_NAME, CONFIG_NAME) if (path := folder / name).is_file())
    document = {**read_json(path), **settings}
    path.unlink()  # the link
    kept = {name: value for name, value in document.items() if value is not None or name not in settings}
    path.write_text(json.dumps(kept), encoding="utf-8")
