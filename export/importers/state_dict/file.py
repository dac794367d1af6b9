"""Finds and reads a bare state dict, which is untrusted and may be saved along with an optimizer's."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from export.architecture.stored import as_tensor
from export.importers.inert_pickle import Record
from export.importers.pickled_file import load_pickle
from export.importers.safetensors_file import read_safetensors
from export.importers.weight_files import without_wrappers

SUFFIXES = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
# Names under which training loops save it beside the optimizer, and a part of OpenNMT-py's models that lies beside it.
WRAPPERS = ("model_state_dict", "state_dict", "model", "model_state")
_BESIDE = "generator"
_BEST = ("checkpoint_best.pt", "best.ckpt")  # of fairseq's and Joey NMT's folders of checkpoints

_NAMED = 2  # of many wrong entries


def find_state_dict(path: Path) -> Path:
    """Return the file itself, or the only one in the folder."""
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise ValueError(f"its name ends in {path.suffix!r}, allowed: {', '.join(SUFFIXES)}")
        return path
    if not path.is_dir():
        raise ValueError("it does not exist; give a state dict's file or its folder")
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES and file.is_file())
    files = [file for file in files if file.name in _BEST] or files
    if len(files) != 1:
        found = ", ".join(file.name for file in files) or "none"
        raise ValueError(
            f"it should hold one file {', '.join(SUFFIXES)}, found {found}; give the file itself, or its shards in one"
        )
    return files[0]


def load(path: Path) -> Any:
    """Return what a file holds, with records for what is neither a tensor nor plain. No code in it is run."""
    if path.suffix == ".safetensors":
        return {name: as_tensor(value) for name, value in read_safetensors(path).items()}
    return load_pickle(path, with_records=True)


def named_tensors(document: Any) -> dict[str, Tensor]:
    """Return the tensors of what a training loop saved, without the names of wrappers."""
    if isinstance(document, dict):
        inner = next((document[name] for name in WRAPPERS if isinstance(document.get(name), dict)), None)
        if inner is not None:
            beside = document.get(_BESIDE)
            parts = beside if isinstance(beside, dict) else {}
            document = {**inner, **{f"{_BESIDE}.{name}": value for name, value in parts.items()}}
    if not isinstance(document, dict) or isinstance(document, Record) or not document:
        raise ValueError(f"it holds {type(document).__name__}, expected names with tensors: save model.state_dict()")
    others = [f"{name!r} {shown}" for name, value in document.items() if (shown := _misfit(name, value))]
    if others:
        raise ValueError(", ".join(others[:_NAMED]) + (f" and {len(others) - _NAMED} more" * (len(others) > _NAMED)))
    return without_wrappers(document)


def _misfit(name: Any, value: Any) -> str:
    """Describe an entry that is not a named, plain tensor; return an empty string for one."""
    if not isinstance(name, str):
        return "is a name, expected a text"
    if isinstance(value, dict) and value and all(isinstance(each, Tensor) for each in value.values()):
        return "holds names with tensors: save that by itself"
    if not isinstance(value, Tensor):
        return f"holds {type(value).__name__}, expected a tensor"
    if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized or value.is_complex():
        return f"holds {value.dtype} ({value.layout}, {value.device}), expected plain numbers"
    if value.dtype in (torch.int8, torch.uint8) and name.endswith("weight"):
        return f"holds {value.dtype}; save the model as it is before it is quantized"
    return ""
