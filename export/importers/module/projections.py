"""Queries, keys and values of traced attention: a dense layer, maybe a norm of each head, maybe a rotation."""

import itertools
from dataclasses import dataclass
from typing import get_args

import torch

from export.architecture import PositionConfig
from export.architecture.config import RotaryPairs
from export.architecture.positions import rotary_order
from export.importers.module.probing import Affine, Norm, Probe, rounded
from export.importers.module.structure import NotReadError

_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Projection:
    """Heads side by side (H D, d), each normalized, then rotated by its position, and multiplied by `factor`."""

    map: Affine
    norm: Norm | None = None
    rotation: PositionConfig | None = None
    factor: float = 1.0


def find_projection(probe: Probe, first: int, last: int, size: int, what: str) -> Projection:
    """Return how the heads (B, L, H, D) of `size` D in the value `last` are made of vectors (B, L, d) in `first`."""
    if probe.is_affine(first, last):
        return Projection(probe.affine(first, last))
    cuts = [
        cut
        for cut in probe.trace.region(first, last).cuts[1:]
        if probe.has_layout(cut) and not probe.trace.values[cut].is_complex()
    ]
    dense = max((cut for cut in cuts if probe.is_affine(first, cut)), default=None)
    if dense is None:
        raise NotReadError(
            f"no dense layer makes {what} from the layer's input, normalized or not, or the encoder's output"
        )
    end, norm, num_heads = dense, None, probe.width(dense) // size
    for cut in cuts[cuts.index(dense) + 1 :]:
        if (found := probe.norm(dense, cut, num_heads)) is not None:
            end, norm = cut, found
    rotation, factor = _rotation(probe, end, last, size, what)
    return Projection(probe.affine(first, dense), norm, rotation, factor)


def _rotation(probe: Probe, first: int, last: int, size: int, what: str) -> tuple[PositionConfig | None, float]:
    """Return the rotation by positions (Su et al. 2021) and the factor between heads, of which some may be repeated."""
    given = probe.random(first)
    found = probe.apply(first, last, given)
    x = given.unflatten(2, (-1, size))
    x, y = x.repeat_interleave(found[0, 0].numel() // x[0, 0].numel(), 2), found.reshape(*found.shape[:2], -1, size)
    factor = float((y.square().sum() / x.square().sum()).sqrt())
    if torch.allclose(x * factor, y, atol=_TOLERANCE * factor):
        return None, factor
    places = torch.arange(x.shape[1])
    best, fitting = _TOLERANCE, None  # all of a head with slow turns is almost half of it
    for pairs, rotary_size in itertools.product(get_args(RotaryPairs), (size, size // 2, size // 4)):
        if rotary_size < 4 or rotary_size % 2:
            continue
        config = PositionConfig(layout="rotary", rotary_pairs=pairs, rotary_size=rotary_size)
        order = torch.from_numpy(rotary_order(size, rotary_size, config))
        before, after = (torch.complex(*each[..., order[:rotary_size]].float().chunk(2, -1)) for each in (x, y))
        turns = (after * before.conj()).mean((0, 2)) / before.abs().square().mean((0, 2)) / factor  # (L, pairs)
        if not torch.equal(order[rotary_size:], torch.arange(rotary_size, size)):
            continue
        base = rounded(float(turns[1, 1].angle()) ** (-rotary_size / 2)) if turns[1, 1].angle() > 0 else 1.0
        angles = places[:, None] * base ** (-2 * torch.arange(rotary_size // 2) / rotary_size)
        rest = torch.cat([(y / factor - x)[..., rotary_size:].abs().flatten(), torch.zeros(1)]).max()
        error = max(float(rest), float((turns - torch.polar(torch.ones_like(angles), angles)).abs().max()))
        if error < best:
            whole = None if rotary_size == size else rotary_size
            best, fitting = error, PositionConfig("rotary", rotary_pairs=pairs, rotary_size=whole, base=base)
    if fitting is None:
        raise NotReadError(
            f"{what} is neither a dense layer's output, nor one normalized or rotated in a supported way"
        )
    return fitting, factor
