"""What the makers of checkpoints of published shapes share: a shape, and how its numbers are drawn."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Precision = Literal["float32", "float16", "bfloat16"]
Floats = npt.NDArray[np.float32]
Tensors = Iterator[tuple[str, tuple[int, ...]]]  # names and shapes

SEED = 20261126
NOISE = 0.05  # of biases and norms
LOGIT_SCALE = 5.0  # standard deviation of the logits
LARGEST = 4.6  # standard deviations: the largest of a vocabulary's logits
END = 1.75  # standard deviations, which are exceeded once in 25 tokens
CHUNK = 2**24  # numbers drawn at once


@dataclass(frozen=True, slots=True)
class TrueShape:
    """A published model's sizes; files are cut when they reach `shard_bytes`, if it is given."""

    name: str
    family: Literal["marian", "nllb", "madlad"]
    d_model: int
    num_layers: int  # of the encoder, and of the decoder
    d_ff: int
    num_heads: int
    vocabulary_size: int
    precision: Precision
    shard_bytes: int | None = None
    d_head: int | None = None  # if heads side by side are not as wide as the model


def row_pieces(rng: np.random.Generator, size: tuple[int, ...], deviation: float) -> Iterator[tuple[int, Floats]]:
    """Yield a matrix in pieces of whole rows, and each one's first row."""
    count = max(1, CHUNK // size[1])
    for start in range(0, size[0], count):
        rows = rng.standard_normal((min(count, size[0] - start), size[1]), np.float32)
        yield start, rows * np.float32(deviation)
