"""Reads weights saved by transformers: safetensors or weights-only pickles, in one file or in shards.

Tensors are views of the files if the format allows it, so that a model of gigabytes is in memory only once.
"""

import hashlib
import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from export.importers.json_file import read_json
from service.bundle.checksums import file_sha256

SINGLE_NAMES = ("model.safetensors", "pytorch_model.bin")
INDEX_SUFFIX = ".index.json"
_WRAPPERS = ("module", "_orig_mod")  # the attributes in which DataParallel and torch.compile keep the wrapped model


class WeightFiles:
    """The files that hold a checkpoint's weights, safetensors preferred."""

    def __init__(self, directory: Path) -> None:
        """Find the files, and the shards that an index names.

        Raises:
            ValueError: there are none, an index is unusable, or shards are missing; all are listed.
        """
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
        raise ValueError(f"no weights; expected is {expected}")

    def read(self) -> dict[str, Tensor]:
        """Return all tensors by name.

        Raises:
            ValueError: a file is damaged, requires running code, holds anything but tensors, or differs from the index.
        """
        weights: dict[str, Tensor] = {}
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


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """Return the tensors of one `.safetensors` file, or of a file written by `torch.save`.

    Raises:
        ValueError: as for `WeightFiles.read`.
    """
    loaded = load_document(path)
    if not isinstance(loaded, Mapping):
        raise ValueError(f"{path.name} holds {type(loaded).__name__}, expected a dictionary of tensors")
    strangers = [str(name) for name, value in loaded.items() if not isinstance(value, Tensor)]
    if strangers:
        raise ValueError(f"{path.name}: {', '.join(strangers[:5])} hold no tensors; save the state dict by itself")
    return dict(loaded)


def write_state_dict(weights: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors to a `.safetensors` file as transformers does; those that share memory are each written."""
    memory = [value.untyped_storage().data_ptr() for value in weights.values()]
    own = {
        name: value.contiguous() if memory.count(where) == 1 else value.clone()
        for (name, value), where in zip(weights.items(), memory, strict=True)
    }
    save_file(own, path, metadata={"format": "pt"})


def without_wrappers(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights by their names without DataParallel or torch.compile around the model or its parts.

    Raises:
        ValueError: two weights then have the same name.
    """
    named: dict[str, str] = {}
    for name in sorted(weights):
        inner = ".".join(part for part in name.split(".") if part not in _WRAPPERS)
        if inner in named:
            raise ValueError(f"{name} and {named[inner]} are one weight; keep one")
        named[inner] = name
    return {inner: weights[name] for inner, name in named.items()}


def load_document(path: Path) -> Any:
    """Return the content of a `.safetensors` file, or of a file written by `torch.save` that needs no code to be run.

    Raises:
        ValueError: it is damaged, or requires running code.
    """
    try:
        return load_file(path) if path.suffix == ".safetensors" else _load_pickle(path)
    except pickle.UnpicklingError as error:
        # torch's own text advises disabling the safety.
        raise ValueError(
            f"{path.name} holds more than tensors ({_culprit(str(error))}) and might run code; save it as safetensors"
        ) from error
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(
            f"{path.name} is damaged, truncated or not a file of weights ({_first_line(error)}); download it again"
        ) from error


def _load_pickle(path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about files that it then rejects
        return _load_mapped(path)


def _load_mapped(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError as error:
        if "mmap" not in str(error):
            raise
        # Files from before torch 1.6, such as the first OPUS-MT models, can't be mapped.
        return torch.load(path, map_location="cpu", weights_only=True)


def _weight_map(index: Path) -> Mapping[str, str]:
    try:
        found = read_json(index).get("weight_map")
    except ValueError as error:
        raise ValueError(f"{index.name}: {error}") from error
    if not isinstance(found, dict) or not found or not all(isinstance(name, str) for name in found.values()):
        raise ValueError(f"{index.name} lacks a weight_map of tensor names to file names")
    strange = sorted(name for name in set(found.values()) if Path(name).name != name)
    if strange:
        raise ValueError(f"{index.name} names {strange[0]!r}; allowed are plain names of files beside it")
    return found


def _culprit(text: str) -> str:
    """Return what a rejected pickle requested, extracted from torch's long explanation."""
    for line in text.splitlines():
        if "GLOBAL" in line or "Unsupported" in line:
            return line.strip().rstrip(".")[:160]
    return _first_line(text)


def _first_line(error: object) -> str:
    lines = str(error).splitlines()
    return lines[0].strip().rstrip(".")[:160] if lines else type(error).__name__
