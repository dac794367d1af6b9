"""Parallel text: reads it, holds out validation pairs, and encodes it as token ids."""

import dataclasses
import itertools
import lzma
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import sentencepiece

from export.training.noise import noisy_copy
from export.training.placeholders import MAX_SYMBOLS, reserved_symbols, substitute
from export.training.recipe import DataRecipe, NoiseRecipe


@dataclass(frozen=True, slots=True)
class Pair:
    """One line of a corpus: a sentence, its translation, and the set it comes from."""

    source: str
    target: str
    part: str


def read_pairs(path: Path) -> list[Pair]:
    """Read `source<TAB>target<TAB>set` lines (the set is optional), plain or xz-compressed, UTF-8."""
    content = path.read_bytes()
    text = (lzma.decompress(content) if path.suffix == ".xz" else content).decode("utf-8")
    pairs = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        columns = line.split("\t")
        if len(columns) < 2:
            raise ValueError(f"{path}, line {number}: expected source<TAB>target, found {line[:60]!r}.")
        pairs.append(Pair(columns[0], columns[1], columns[2] if len(columns) > 2 else ""))
    return pairs


def hold_out(pairs: Sequence[Pair], count: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Split into (training, validation) pairs; no validation sentence is in the training pairs."""
    held = random.Random(seed).sample(range(len(pairs)), count)
    validation = [pairs[i] for i in held]
    return without_sources(pairs, validation), validation


def without_sources(pairs: Sequence[Pair], others: Sequence[Pair]) -> list[Pair]:
    sources = {pair.source for pair in others}
    return [pair for pair in pairs if pair.source not in sources]


@dataclass(frozen=True, slots=True)
class WeightedPair:
    """The two sides of a pair, and how often an epoch draws it on average."""

    source: str
    target: str
    weight: float


@dataclass(frozen=True, slots=True)
class EncodedCorpus:
    """Token ids of all pairs, concatenated; `source[source_starts[i] : source_starts[i + 1]]` is of pair i, as for the
    target.

    `weights` (N,) float32: how often an epoch draws the pair. Every side ends with the end-of-sentence id.
    """

    source: npt.NDArray[np.uint16]
    target: npt.NDArray[np.uint16]
    source_starts: npt.NDArray[np.int64]
    target_starts: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.weights)

    def save(self, path: Path) -> None:
        np.savez(path, **{name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def load(cls, path: Path) -> "EncodedCorpus":
        with np.load(path, allow_pickle=False) as arrays:
            return cls(**{name: arrays[name] for name in cls.__slots__})


def weigh(pairs: Sequence[Pair], recipe: DataRecipe, symbols: tuple[str, ...], seed: int) -> list[WeightedPair]:
    """Substitute reserved symbols in a share of the pairs, and give each pair its weight."""
    rng = random.Random(seed)
    weighted = []
    for pair in pairs:
        replaced = None
        # Only about a third of the pairs share an item: draw more often to reach the share over all pairs.
        if symbols and rng.random() < min(1.0, 3 * recipe.placeholder_share):
            replaced = substitute(pair.source, pair.target, symbols, rng)
        source, target = replaced or (pair.source, pair.target)
        weighted.append(WeightedPair(source, target, recipe.weight(pair.part, pair.source)))
    return weighted


def add_noise(
    pairs: Sequence[WeightedPair], recipe: NoiseRecipe, symbols: tuple[str, ...], seed: int
) -> list[WeightedPair]:
    """Return each pair followed by noisy copies, which take the noise's share of its weight.

    There are as many copies as an epoch draws of them, at least one, so that frequently drawn pairs vary.
    """
    kinds, shares = list(recipe.shares()), list(recipe.shares().values())
    total = sum(shares)
    if not total:
        return list(pairs)
    rng = random.Random(seed)
    weights = list(itertools.accumulate(pair.weight for pair in pairs))

    def another() -> tuple[str, str]:
        (pair,) = rng.choices(pairs, cum_weights=weights)
        return pair.source, pair.target

    result = []
    for pair in pairs:
        count = math.ceil(pair.weight * total)
        drawn = (
            noisy_copy(kind, pair.source, pair.target, symbols, rng, another)
            for kind in rng.choices(kinds, shares, k=count)
        )
        copies = [texts for texts in drawn if texts]
        each = pair.weight * total / max(count, 1)
        result.append(dataclasses.replace(pair, weight=pair.weight - each * len(copies)))
        result += [WeightedPair(*texts, each) for texts in copies]
    return result


def encode_corpus(
    pairs: Sequence[WeightedPair], tokenizer: sentencepiece.SentencePieceProcessor, max_tokens: int
) -> EncodedCorpus:
    """Tokenize, and drop pairs with more than `max_tokens` on a side or characters that the tokenizer lacks.

    The service never shows a model such characters: reserved symbols stand for them.
    """
    sources = tokenizer.encode([pair.source for pair in pairs], add_eos=True, num_threads=2)
    targets = tokenizer.encode([pair.target for pair in pairs], add_eos=True, num_threads=2)
    unknown = tokenizer.unk_id()
    kept = [
        i
        for i, (source, target) in enumerate(zip(sources, targets, strict=True))
        if max(len(source), len(target)) <= max_tokens and unknown not in source and unknown not in target
    ]
    source_ids, source_starts = _concatenate([sources[i] for i in kept])
    target_ids, target_starts = _concatenate([targets[i] for i in kept])
    weights = np.asarray([pairs[i].weight for i in kept], dtype=np.float32)
    return EncodedCorpus(source_ids, target_ids, source_starts, target_starts, weights)


def known_symbols(tokenizer: sentencepiece.SentencePieceProcessor) -> tuple[str, ...]:
    known = {tokenizer.id_to_piece(i) for i in range(tokenizer.get_piece_size())}
    return tuple(symbol for symbol in reserved_symbols(MAX_SYMBOLS) if symbol in known)


def _concatenate(rows: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
    starts = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=starts[1:])
    return np.fromiter((token for row in rows for token in row), dtype=np.uint16, count=int(starts[-1])), starts
