"""The positions of a traced module: a formula that we have, or a table that it holds."""

import itertools
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from export.architecture import PositionConfig
from export.architecture.config import CosineExponent
from export.architecture.positions import sinusoidal_table
from export.importers.module.probing import NUM_TARGET
from export.importers.module.structure import NotReadError
from export.importers.module.trace import Trace

_OFFSETS = range(5)
_NONE = PositionConfig(layout="none")
_FORMULAS = [
    *(
        PositionConfig(base=base, cosine_exponent=exponent, offset=offset)
        for base, exponent, offset in itertools.product((10000.0, 1000.0), get_args(CosineExponent), _OFFSETS)
    ),
    *(
        PositionConfig(layout="halves", fairseq_exponent=is_fairseq, offset=offset)
        for is_fairseq, offset in itertools.product((True, False), _OFFSETS)
    ),
]


@dataclass(frozen=True, slots=True)
class Positions:
    """What is added to embeddings (P, d), and the formula that computes it, if there is one."""

    table: Tensor
    formula: PositionConfig | None


def find_positions(trace: Trace, added: Tensor, most: int) -> Positions:
    """Return the positions of which the first ones are `added` (L, d): at most `most`."""
    width = added.shape[1]
    if float(added.abs().max()) < 1e-6:
        return Positions(torch.zeros(most, width), _NONE)
    stored = next((table for each in _constants(trace) if (table := _continued(each, added)) is not None), None)
    for formula in _FORMULAS if width % 2 == 0 else ():
        table = torch.from_numpy(sinusoidal_table(most, width, formula))
        if torch.allclose(table[: len(added)], added, atol=1e-4):
            return Positions(table[: most if stored is None else len(stored)], formula)
        if stored is None and (scaled := _continued(table, added)) is not None:
            stored = scaled
    if stored is None:
        raise NotReadError("what is added for positions is computed, by no formula that we know: keep it as a table")
    return Positions(stored[:most].contiguous(), None)


def _constants(trace: Trace) -> list[Tensor]:
    """Return the tables that the module may read positions from."""
    given = [each for operation in trace.operations for each in operation.arguments]
    return [each for each in given if isinstance(each, Tensor) and each.is_floating_point() and each.dim() > 1]


def _continued(table: Tensor, added: Tensor) -> Tensor | None:
    """Return rows of a table, times a factor, if the first ones are those `added`."""
    length, width = added.shape
    if table.numel() <= NUM_TARGET * width or table.shape[-1] != width:  # shorter ones were computed for this run
        return None
    rows = table.detach().float().reshape(-1, width)
    for offset in _OFFSETS:
        begin = rows[offset : offset + length]
        if begin.shape != added.shape or not begin.any():
            return None
        factor = (begin * added).sum() / begin.square().sum()
        if torch.allclose(begin * factor, added, rtol=1e-4, atol=1e-5 * float(added.abs().max())):
            return rows[offset:] * (1.0 if abs(factor - 1.0) < 1e-5 else factor)
    return None
