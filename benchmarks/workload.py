"""The benchmarks' input: the shipped held-out sentences, selected and batched identically in every run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

SENTENCES = Path("checkpoints/en-de/sentences.tsv")
BATCHES = (1, 8, 32)  # sizes, in sentences, that tables show
_NUM_PENALTIES = 199
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Task:
    """Batches of token ids to translate one after the other, with options; the unit that a peer times.

    `max_output_tokens` excludes the end-of-sentence token. `min_output_tokens` is 0, or equal to it: then every output
    has exactly that many tokens.
    """

    batches: tuple[tuple[tuple[int, ...], ...], ...]
    beam_size: int
    max_output_tokens: int
    min_output_tokens: int = 0


def length_penalty_of(number: int) -> float:
    """Return a value very close to 1, which differs from that of other numbers nearby.

    A server's cache has translations by text and options; a benchmark needs each sentence decoded. Our server also
    keeps the options that it has checked, so there are few values, as callers send few: a prime number of them, so
    that a list of texts that is sent again comes with others.
    """
    return 1.0 + 1e-9 * (number % _NUM_PENALTIES)


def held_out_texts(path: Path = SENTENCES) -> list[str]:
    """Return the English sentences, in the file's order."""
    return [line.split("\t")[0] for line in path.read_text(encoding="utf-8").splitlines()]


def spread(items: Sequence[T], count: int) -> list[T]:
    """Return `count` items at even distances over the whole list; all if there are fewer."""
    if count >= len(items):
        return list(items)
    return [items[index * len(items) // count] for index in range(count)]


def batches_by_length(sources: Sequence[tuple[int, ...]], batch_size: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Cut the sources, sorted by length, into batches of neighbours, the least padding for an engine that pads."""
    ordered = sorted(sources, key=lambda ids: (len(ids), ids))
    return tuple(tuple(ordered[i : i + batch_size]) for i in range(0, len(ordered), batch_size))


def random_sources(
    num_sources: int, num_tokens: int, vocabulary_size: int, eos_id: int, seed: int
) -> list[tuple[int, ...]]:
    """Return sources of exactly `num_tokens` ordinary tokens, the end-of-sentence token included."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(8, vocabulary_size, (num_sources, num_tokens - 1))
    return [(*map(int, row), eos_id) for row in drawn]
