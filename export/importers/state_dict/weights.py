"""Folds a state dict's tensors into our weights, as a layout says what they are."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from export.importers.state_dict.foldings import FOLDINGS, Folded, Heads
from export.importers.state_dict.layout import SCALE, Found
from service.domain.errors import counted


def read_heads(said: Mapping[str, Any], found: Mapping[str, Found], width: int) -> Heads | None:
    """Return the heads that names are numbered by, or those that are said; `None` if neither is usable."""
    number = len({each.head for each in found.values() if each.is_by_head}) or said.get("num_heads")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= width:
        return None
    size, pad_id = said.get("d_head") or width // number, said.get("pad_id")
    return Heads(number, size if isinstance(size, int) and size > 0 else 1, pad_id if isinstance(pad_id, int) else 0)


def fold(
    tensors: Mapping[str, Tensor], found: Mapping[str, Found], heads: Heads, chosen: str | None, problems: list[str]
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the weights by our names, and the name of theirs that each is from; add every problem to `problems`."""
    groups: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for name, each in found.items():
        if each.ours:
            groups.setdefault((each.ours, *each.line.foldings), []).append((each.head, name))
            if not bool(torch.isfinite(tensors[name].float()).all()):
                problems.append(f"{name} holds NaN or infinite numbers")
    weights, origins = dict[str, Tensor](), dict[str, str]()
    for (ours, *foldings), members in groups.items():
        first, *others = [name for _, name in sorted(members)]
        try:
            if others and not found[first].is_by_head:
                raise ValueError(f"and {others[0]} are one weight; keep one")
            joined = torch.cat([_usable(tensors[name], ours) for name in (first, *others)])
            parts = dict(_applied(foldings, ours, joined, heads, chosen))
        except (ValueError, RuntimeError) as error:  # torch's own if heads differ in width
            problems.append(f"{first} {error}")
            continue
        problems += [f"{first} and {origins[name]} are one weight; keep one" for name in parts if name in weights]
        weights |= parts
        origins |= dict.fromkeys(parts, first)
    for name in [name for name in weights if name.endswith(SCALE)]:
        factor, layer = weights.pop(name), name.removesuffix(SCALE)
        if (outputs := weights.get(f"{layer}.weight")) is None or len(outputs) != len(factor):
            problems.append(f"a factor of {counted(len(factor), 'number')} does not fit {layer}")
            continue
        for ours, shape in ((f"{layer}.weight", (-1, 1)), (f"{layer}.bias", (-1,))):
            if ours in weights:
                weights[ours] = weights[ours] * factor.reshape(shape)
    return weights, origins


def sides(ours: str) -> tuple[str, ...]:
    return tuple(ours.replace("both.", side, 1) for side in ("encoder.", "decoder.")) if "both." in ours else (ours,)


def _applied(
    foldings: Sequence[str], ours: str, tensor: Tensor, heads: Heads, chosen: str | None
) -> Iterator[tuple[str, Tensor]]:
    result: Folded = tensor
    for folding in foldings:
        names = folding.split("|")
        if len(names) > 1 and chosen not in names:
            raise ValueError(f"may be {' or '.join(reversed(names))}: say which as attention in --config")
        assert isinstance(result, Tensor)
        result = FOLDINGS[names[0] if len(names) == 1 else str(chosen)](result, heads)
    for part, rows in (result if isinstance(result, dict) else {"": result}).items():
        for name in sides(ours.replace("*", part)):
            yield name, rows


def _usable(tensor: Tensor, ours: str) -> Tensor:
    """Return a tensor of the rank that ours has, if it holds numbers: columns may be biases, and tables in batches."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        raise ValueError(f"holds {tensor.dtype} of shape {tuple(tensor.shape)}, expected floating-point numbers")
    rank = 2 if ours.endswith(("positions", ".weight")) and "norm" not in ours else 1
    shape = list(tensor.shape)
    while len(shape) > rank and 1 in shape:
        del shape[len(shape) - 1 - shape[::-1].index(1)]
    if len(shape) != rank:
        raise ValueError(f"has shape {tuple(tensor.shape)}, expected {counted(rank, 'axis', 'axes')}")
    return tensor.reshape(shape)
