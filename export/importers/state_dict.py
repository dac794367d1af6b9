"""Reads a state dict from a `.safetensors` file or one that `torch.save` wrote, which may come from anyone."""

import re
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load_file
from torch import Tensor

SUFFIXES = (".safetensors", ".pt", ".pth", ".bin")
WRAPPERS = ("model_state_dict", "state_dict", "model")  # names under which training loops keep it beside the optimizer


def find_state_dict(path: Path) -> Path:
    """The file itself, or the only one in the folder.

    Raises:
        ValueError: there is none, or more than one.
    """
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise ValueError(f"its name ends in {path.suffix!r}, allowed are {', '.join(SUFFIXES)}")
        return path
    if not path.is_dir():
        raise ValueError("it is not there; give a state dict's file or its folder")
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES and file.is_file())
    if len(files) != 1:
        found = ", ".join(file.name for file in files) or "none"
        raise ValueError(f"it should hold one file {', '.join(SUFFIXES)}, found {found}; give the file itself")
    return files[0]


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """Name -> tensor. Nothing in the file is run.

    Raises:
        ValueError: it is damaged, holds something else than tensors of floating-point numbers, or wants to run code.
    """
    document = _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path)
    if isinstance(document, dict):
        document = next((document[name] for name in WRAPPERS if isinstance(document.get(name), dict)), document)
    if not isinstance(document, dict) or not document:
        raise ValueError(f"it holds {type(document).__name__}, expected names with tensors: save model.state_dict()")
    others = [f"{name!r} holds {shown}" for name, value in document.items() if (shown := _misfit(name, value))]
    if others:
        raise ValueError(", ".join(others))
    return dict(document)


def _read_safetensors(path: Path) -> Any:
    try:
        return load_file(path)
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise ValueError(f"it can't be read: {error}") from error


def _read_torch(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged or hostile pickle can raise anything
        # Not torch's own words: they advise to load it all the same.
        wanted = re.search(r"GLOBAL (\S+)", str(error))
        reason = f"it asks for {wanted[1]}, which could run code" if wanted else "it is damaged, or not by torch.save"
        raise ValueError(f"it can't be read as tensors alone: {reason}; save model.state_dict()") from error


def _misfit(name: Any, value: Any) -> str:
    """What is there instead of a plain tensor of floating-point numbers with a name; empty if it is one."""
    if not isinstance(value, Tensor) or not isinstance(name, str):
        return f"{type(value).__name__}, expected a tensor"
    if value.layout != torch.strided or value.device.type != "cpu" or not value.is_floating_point():
        return f"{value.dtype} ({value.layout}, {value.device}), expected floating-point numbers"
    return ""
