"""Finds and reads weights saved by transformers: safetensors or weights-only pickles, in one file or in shards."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from export.architecture.stored import Array
from export.importers.json_file import read_json
from export.importers.safetensors_file import read_safetensors
from service.bundle.checksums import file_sha256

SINGLE_NAMES = ("model.safetensors", "pytorch_model.bin")
INDEX_SUFFIX = ".index.json"
T = TypeVar("T")
_WRAPPERS = ("module", "_orig_mod")  # the attributes in which DataParallel and torch.compile keep the wrapped model


class WeightFiles:
    """The files that hold a checkpoint's weights, safetensors preferred."""

    def __init__(self, directory: Path) -> None:
        for name in SINGLE_NAMES:
            if (directory / name).is_file():
                self.paths = [directory / name]
                self._indexed: Mapping[str, str] | None = None
                return
            index = directory / f"{name}{INDEX_SUFFIX}"
            if index.is_file():
                self._indexed = _weight_map(index)
                self.paths = [directory / shard for shard in sorted(set(self._indexed.values()))]
                missing = [path.name for path in self.paths if not path.is_file()]
                if missing:
                    raise ValueError(f"{', '.join(missing)} missing, which {index.name} names; download all shards")
                return
        expected = ", ".join(f"{name} or {name}{INDEX_SUFFIX}" for name in SINGLE_NAMES)
        raise ValueError(f"no weights; expected {expected}")

    def read(self) -> dict[str, Array]:
        weights: dict[str, Array] = {}
        for path in self.paths:
            weights.update(read_state_dict(path))
        if self._indexed is not None and weights.keys() != self._indexed.keys():
            differing = sorted(weights.keys() ^ self._indexed.keys())
            raise ValueError(f"the shards and their index disagree on {', '.join(differing[:5])}")
        return weights

    def sha256(self) -> str:
        """Return a digest of the files; for a single file, its own SHA-256."""
        sums = [file_sha256(path) for path in self.paths]
        return sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()


def read_state_dict(path: Path) -> dict[str, Array]:
    """Return the arrays of one `.safetensors` file, or of a file written by `torch.save`, which needs torch."""
    if path.suffix == ".safetensors":
        return read_safetensors(path)
    from export.importers.pickled_file import read_pickled

    return read_pickled(path)


def without_wrappers(weights: Mapping[str, T]) -> dict[str, T]:
    """Return the weights by their names without DataParallel or torch.compile around the model or its parts."""
    named: dict[str, str] = {}
    for name in sorted(weights):
        inner = ".".join(part for part in name.split(".") if part not in _WRAPPERS)
        if inner in named:
            raise ValueError(f"{name} and {named[inner]} are one weight; keep one")
        named[inner] = name
    return {inner: weights[name] for inner, name in named.items()}


def _weight_map(index: Path) -> Mapping[str, str]:
    try:
        found = read_json(index).get("weight_map")
    except ValueError as error:
        raise ValueError(f"{index.name}: {error}") from error
    if not isinstance(found, dict) or not found or not all(isinstance(name, str) for name in found.values()):
        raise ValueError(f"{index.name} lacks a weight_map of tensor names to file names")
    strange = sorted(name for name in set(found.values()) if Path(name).name != name)
    if strange:
        raise ValueError(f"{index.name} names {strange[0]!r}; allowed: plain names of files beside it")
    return found
