"""Functions of positions and distances alone: sinusoids, and buckets of relative biases. Does not import torch."""

import math
from typing import Protocol, TypeVar

import numpy as np
from numpy import typing as npt

from export.architecture.config import PositionConfig, RelativeBiasConfig


class _Clippable(Protocol):
    """An array of numpy or torch."""

    def clip(self: "Places", low: int, high: int, /) -> "Places": ...
    def __rsub__(self: "Places", other: int, /) -> "Places": ...


Places = TypeVar("Places", bound=_Clippable)


def sinusoidal_table(num_positions: int, d_model: int, config: PositionConfig) -> npt.NDArray[np.float32]:
    """Return positions `offset .. offset + num_positions - 1` as rows: (num_positions, d_model).

    PE(pos, 2i) = sin(pos / base^(2i / d)), PE(pos, 2i + 1) = cos(the same); see `PositionConfig` for the layouts.
    """
    half = d_model // 2
    # float64 keeps the angles of far positions exact; rounding happens once, at the end.
    index = np.arange(half, dtype=np.float64)
    exponent = index / (half - 1 if config.fairseq_exponent else half)
    of_cosines = exponent if config.cosine_exponent == "paired" else 2 * index + 1 - 1 / d_model
    position = np.arange(num_positions, dtype=np.float64)[:, None] + config.offset
    sines = np.sin(position * np.exp(-math.log(config.base) * exponent))  # (P, d/2)
    cosines = np.cos(position * np.exp(-math.log(config.base) * of_cosines))
    if config.layout == "interleaved":
        table = np.stack([sines, cosines], axis=-1).reshape(num_positions, -1)  # (P, d): s c s c ...
    else:
        table = np.concatenate([sines, cosines], axis=-1)  # (P, d): s s ... c c ...
    return table.astype(np.float32)


def rotary_tables(
    num_positions: int, head_size: int, rotary_size: int, config: PositionConfig
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return what rotates a head x (D,) at position p: x * first[p] + x[partners] * second[p].

    The tables (P, D) are cosines, and signed sines, 1 and 0 where nothing is rotated. `partners` (D,) are the other
    components of pairs. Pair i turns by p / base^(2i / rotary_size).
    """
    places = rotary_order(head_size, rotary_size, config)[:rotary_size].reshape(2, -1)  # of the pairs
    position = np.arange(num_positions, dtype=np.float64)[:, None] + config.offset
    angles = position * config.base ** (-2 * np.arange(rotary_size // 2) / rotary_size)
    cosines, sines = np.ones((num_positions, head_size)), np.zeros((num_positions, head_size))
    partners = np.arange(head_size)
    for own, other, sign in ((*places, -1), (*places[::-1], 1)):
        cosines[:, own], sines[:, own], partners[own] = np.cos(angles), sign * np.sin(angles), other
    return cosines.astype(np.float32), sines.astype(np.float32), partners


def rotary_order(head_size: int, rotary_size: int, config: PositionConfig) -> npt.NDArray[np.int64]:
    """Return a head's components (D,): the first ones of all pairs, the second ones, and those that are not rotated."""
    order = np.arange(head_size)
    if config.rotary_pairs == "interleaved":
        order[:rotary_size] = order[:rotary_size].reshape(-1, 2).T.reshape(-1)
    return order


def distance_buckets(config: RelativeBiasConfig, *, is_causal: bool) -> npt.NDArray[np.int64]:
    """Return the bucket of each column of `distance_column`, as in T5: (D + 1,) if causal, else (2 D + 1,)."""
    distances = np.arange(config.max_distance + 1)
    num_buckets = config.num_buckets if is_causal else config.num_buckets // 2
    exact = num_buckets // 2
    # In float32, as transformers computes it: at a bucket's border the last bit decides.
    ratio = np.log(np.maximum(distances, 1).astype(np.float32) / np.float32(exact))
    ranged = exact + (ratio / np.float32(math.log(config.max_distance / exact)) * (num_buckets - exact)).astype(int)
    before = np.where(distances < exact, distances, np.minimum(ranged, num_buckets - 1))
    return before if is_causal else np.concatenate([before[::-1], num_buckets + before[1:]])


def distance_column(before: Places, max_distance: int, *, is_causal: bool) -> Places:
    """Return the column of keys' biases by how many tokens they are before their query; far ones share the last."""
    if is_causal:
        return before.clip(0, max_distance)
    return max_distance - before.clip(-max_distance, max_distance)
