"""Graphs that were traced before, by any of pytest's processes: tracing takes most of the time of conversions."""

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx_ir
import torch
from torch import Tensor, nn

Trace = Callable[..., onnx_ir.Model]
_OF_EVERY_MODULE = vars(nn.Module()).keys()


def remembering(trace: Trace, folder: Path) -> Trace:
    """Return `trace`, which takes from `folder` what was traced of an equal module with the same arguments."""

    def traced(module: nn.Module, *described: Any) -> onnx_ir.Model:
        key = "\n".join([*_of_module(module), *_of_value(described)])
        if " at 0x" in key:  # not comparable
            return trace(module, *described)
        kept = folder / f"{hashlib.sha256(key.encode()).hexdigest()}.onnx"
        if not kept.exists():
            staging = folder / f"{os.getpid()}.staging"
            onnx_ir.save(trace(module, *described), staging)
            staging.rename(kept)
        return onnx_ir.load(kept)

    return traced


def _of_module(module: nn.Module) -> Iterator[str]:
    """Yield all that a module's graph may depend on."""
    for name, part in module.named_modules():
        own = {key: value for key, value in vars(part).items() if key not in _OF_EVERY_MODULE}
        yield f"{name} {type(part).__qualname__} {part.training}"
        yield from _of_value(own)
    yield from _of_value(dict(module.named_parameters()))
    yield from _of_value(dict(module.named_buffers()))


def _of_value(value: Any) -> Iterator[str]:
    if isinstance(value, Tensor):
        data = value.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        yield f"{value.dtype} {tuple(value.shape)} {hashlib.sha256(data).hexdigest()}"
    elif isinstance(value, dict):
        for key, each in value.items():
            yield str(key)
            yield from _of_value(each)
    elif isinstance(value, list | tuple):
        yield f"{len(value)} values"
        for each in value:
            yield from _of_value(each)
    elif isinstance(value, torch.export.Dim):
        yield f"{value.__name__} {value.min} {value.max}"
    elif hasattr(value, "__qualname__"):  # an activation, which may be a lambda
        line = value.__code__.co_firstlineno if hasattr(value, "__code__") else 0
        yield f"{value.__module__} {value.__qualname__} {line}"
    else:
        yield repr(value)
