"""Folds a state dict's tensors into our weights, as a layout says what they are."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from export.importers.state_dict.foldings import FOLDINGS, Folded, Heads, of_rank, scaled
from export.importers.state_dict.layout import SCALE, Found


def read_heads(said: Mapping[str, Any], found: Mapping[str, Found], width: int) -> Heads | None:
    """Return the heads that names are numbered by, or those that are said; `None` if neither is usable."""
    numbers = {each.head for each in found.values() if each.is_by_head}
    number = len(numbers) or said.get("num_heads")
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
    problems += [
        f"{name} holds NaN or infinite numbers"
        for name in found
        if not bool(torch.isfinite(tensors[name].float()).all())
    ]
    weights, origins, factors = dict[str, Tensor](), dict[str, str](), dict[str, Tensor]()
    for (ours, *foldings), members in groups.items():
        names = [name for _, name in sorted(members)]
        if len(names) > 1 and not found[names[0]].is_by_head:
            problems.append(f"{names[0]} and {names[1]} are one weight; keep one")
            continue
        try:
            joined = torch.cat([_usable(tensors[name], ours) for name in names])
            parts = {ours: joined} if foldings == [SCALE] else dict(_applied(foldings, ours, joined, heads, chosen))
        except (ValueError, RuntimeError) as error:  # torch's own if heads differ in width
            problems.append(f"{names[0]} {error}")
            continue
        if foldings == [SCALE]:
            factors |= parts
            continue
        for name in parts.keys() & weights.keys():
            problems.append(f"{names[0]} and {origins[name]} are one weight; keep one")
        weights |= parts
        origins |= dict.fromkeys(parts, names[0])
    for layer, factor in factors.items():
        if (layer_weight := weights.get(f"{layer}.weight")) is None or len(layer_weight) != len(factor):
            problems.append(f"a factor of {len(factor)} numbers does not fit {layer}")
            continue
        scaled(weights, layer, factor)
    return weights, origins


def sides(ours: str) -> tuple[str, ...]:
    """Return the names that "both." stands for, or the name itself."""
    return tuple(ours.replace("both.", side, 1) for side in ("encoder.", "decoder.")) if "both." in ours else (ours,)


def _applied(
    foldings: list[str], ours: str, tensor: Tensor, heads: Heads, chosen: str | None
) -> Iterator[tuple[str, Tensor]]:
    result: Folded = tensor
    for folding in foldings:
        name = folding
        if "|" in folding:
            if chosen not in (allowed := folding.split("|")):
                raise ValueError(f"may be {' or '.join(reversed(allowed))}: say which as attention in --config")
            name = str(chosen)
        assert isinstance(result, Tensor)
        result = FOLDINGS[name](result, heads)
    for part, rows in (result if isinstance(result, dict) else {"": result}).items():
        for name in sides(ours.replace("*", part)):
            yield name, rows


def _usable(tensor: Tensor, ours: str) -> Tensor:
    """Return a tensor of the rank that ours has, if it holds numbers."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        raise ValueError(f"holds {tensor.dtype} of shape {tuple(tensor.shape)}, expected floating-point numbers")
    is_table = ours.endswith(("positions", ".weight")) and "norm" not in ours
    ranked = of_rank(tensor, rank := 2 if is_table else 1)
    if ranked.dim() != rank:
        raise ValueError(f"has shape {tuple(tensor.shape)}, expected are {rank} axes")
    return ranked
