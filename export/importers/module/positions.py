"""The positions of a traced module: a formula that we have, or a table that it holds."""

from dataclasses import dataclass

import torch
from torch import Tensor

from export.architecture import PositionConfig
from export.architecture.positions import sinusoidal_table
from export.importers.module.probing import NUM_TARGET
from export.importers.module.structure import NotReadError
from export.importers.module.trace import Trace
from export.importers.sinusoids import FORMULAS, find_formula

_OFFSETS = range(5)
_NONE = PositionConfig(layout="none")
_MAX_ERROR = 1e-4


@dataclass(frozen=True, slots=True)
class Positions:
    """The positions added to embeddings (P, d), and the formula that computes them, if there is one."""

    table: Tensor
    formula: PositionConfig | None


def find_positions(trace: Trace, embedded: int, added: Tensor, most: int) -> Positions:
    """Return the positions of which the first ones are `added` (L, d) in the value `embedded`: at most `most`."""
    width = added.shape[1]
    if float((added - added[0]).abs().max()) < 1e-6:  # nothing, or a bias behind embeddings
        return Positions(added[:1].repeat(most, 1), None if float(added.abs().max()) > 1e-6 else _NONE)
    stored = next(
        (table for each in _constants(trace, embedded) if (table := _continued(each, added)) is not None), None
    )
    if (formula := find_formula(added.numpy(), _MAX_ERROR)) is not None:
        length = most if stored is None else min(most, len(stored))
        return Positions(torch.from_numpy(sinusoidal_table(length, width, formula)), formula)
    if stored is None and width % 2 == 0:
        tables = (torch.from_numpy(sinusoidal_table(most, width, formula)) for formula in FORMULAS)
        stored = next((table for each in tables if (table := _continued(each, added)) is not None), None)
    if stored is None:
        raise NotReadError("positions are computed by an unknown formula: store them as a table")
    return Positions(stored[:most].contiguous(), None)


def _constants(trace: Trace, last: int) -> list[Tensor]:
    """Return the tables of which a value may be made."""
    needed = {last}
    for number in range(last, -1, -1):
        needed |= {*trace.parents(number)} if number in needed else set()
    given = [each for number in sorted(needed) for each in trace.producers[number].arguments]
    return [each for each in given if isinstance(each, Tensor) and each.is_floating_point() and each.dim() > 1]


def _continued(table: Tensor, added: Tensor) -> Tensor | None:
    """Return rows of a table, times a factor and plus a vector (a bias behind embeddings), if the first are `added`."""
    length, width = added.shape
    if table.numel() <= NUM_TARGET * width or table.shape[-1] != width:  # shorter ones were computed for this run
        return None
    rows = table.detach().float().reshape(-1, width)
    close, moved = 1e-5 * float(added.abs().max()), added - added.mean(0)
    for offset in _OFFSETS:
        begin = rows[offset : offset + length]
        changes = begin - begin.mean(0)
        if begin.shape != added.shape or not changes.any():
            return None
        factor = (changes * moved).sum() / changes.square().sum()
        if abs(factor - 1.0) < 1e-5:
            factor = torch.ones(())
        constant = (added - begin * factor).mean(0)
        if torch.allclose(begin * factor + constant, added, rtol=1e-4, atol=close):
            return rows[offset:] * factor + (constant if constant.abs().max() > close else 0.0)
    return None
