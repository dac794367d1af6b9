"""Reads files written by `torch.save`, as tensors only: nothing in them is run."""

import pickle
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from export.architecture.stored import Array, as_array
from export.importers import stored_file
from export.importers.inert_pickle import Record, names_asked
from export.importers.mistaken import mistaken_file
from service.bundle.regular_file import check_regular


def read_pickled(path: Path) -> dict[str, Array]:
    loaded = load_pickle(path)
    if not isinstance(loaded, Mapping):
        raise ValueError(f"{path.name} holds {type(loaded).__name__}, expected a dictionary of tensors")
    strangers = [str(name) for name, value in loaded.items() if not isinstance(value, Tensor)]
    if strangers:
        raise ValueError(f"{path.name}: {', '.join(strangers[:5])} hold no tensors; save the state dict by itself")
    return {name: as_array(value) for name, value in loaded.items()}


def load_pickle(path: Path, *, with_records: bool = False) -> Any:
    """Return the content of a file written by `torch.save` that needs no code to be run; tensors are mapped from it.

    `with_records`: what would need code, such as settings of a class, is a `Record`; else it is refused.
    """
    try:
        check_regular(path)
        if zipfile.is_zipfile(path):
            with stored_file.opened_zip(path):
                pass  # its records are of bounded size
        with torch.serialization.safe_globals(_records(path) if with_records else []):
            return _load_quietly(path)
    except pickle.UnpicklingError as error:
        # torch's own text advises disabling the safety.
        if "Unsupported operand" in str(error) and not _is_pickle(path):
            raise ValueError(_damaged(path, "no pickle")) from error
        what = f"{path.name} holds more than tensors ({_culprit(str(error))}) and might run code"
        raise ValueError(f"{what}; save model.state_dict(), or as safetensors") from error
    except Exception as error:  # a damaged pickle can raise anything
        if "TorchScript" in str(error):
            raise ValueError(f"{path.name} is TorchScript, which is code; save model.state_dict()") from error
        raise ValueError(_damaged(path, _first_line(error))) from error


def _is_pickle(path: Path) -> bool:
    with path.open("rb") as file:
        return zipfile.is_zipfile(path) or file.read(1) == pickle.PROTO


def _damaged(path: Path, why: str) -> str:
    what = f"{path.name} is damaged, truncated or not a file of weights"
    if mistake := mistaken_file(path):
        return f"{what}: {mistake}"
    return f"{what} ({why}); download it again"


def _records(path: Path) -> list[Callable[..., Any] | tuple[Callable[..., Any], str]]:
    """Return a class of records for each name that a file asks to import; torch takes its own ones first."""
    return [(type(name.rpartition(".")[2], (Record,), {}), name) for name in names_asked(path)]


def _load_quietly(path: Path) -> Any:
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


def _culprit(text: str) -> str:
    if asked := re.search(r"GLOBAL (\S+)", text):
        return asked[1][:160]
    return _first_line(text)


def _first_line(error: object) -> str:
    lines = (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).splitlines()
    return lines[0].strip().rstrip(".")[:160] if lines else type(error).__name__
