"""Measures how well attention locates what a translation copied verbatim, such as names, numbers and marks.

A piece that occurs once in the source and once in its translation came from there. Does not import torch.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy import typing as npt

from service.bundle.manifest_parts import LanguagePair
from service.text.tokenizers import Tokenizer, of_pair

Attention = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class AlignmentHeads:
    """The cross-attention that locates a token's source: the mean over some heads of one decoder layer.

    It is taken at the position where the token is predicted or, with `reads`, at the next one, where it is read.
    """

    layer: int
    heads: tuple[int, ...]
    reads: bool = False


class Translated(NamedTuple):
    """A text with the ids that the encoder reads and those that the decoder wrote, without start and end."""

    text: str
    languages: LanguagePair
    source_ids: tuple[int, ...]
    output_ids: tuple[int, ...]

    @property
    def target_ids(self) -> tuple[int, ...]:
        return (*self.languages.target_prefix_ids, *self.output_ids)


@dataclass(frozen=True, slots=True)
class IdenticalPieces:
    """Positions (target, source) of pieces that occur once on both sides, and the range of the text's source ids."""

    places: tuple[tuple[int, int], ...]
    source: slice

    def num_found(self, attention: Attention) -> int:
        """Count the pieces that point at each other: each attends most to the other one in `attention` (T, S)."""
        if not self.places:
            return 0  # an empty translation has no attention to examine
        among = attention[:, self.source]
        best_source, best_target = among.argmax(axis=1) + self.source.start, among.argmax(axis=0)
        return sum(
            bool(best_source[target] == source and best_target[source - self.source.start] == target)
            for target, source in self.places
        )


def identical_pieces(tokenizer: Tokenizer, translated: Translated) -> IdenticalPieces:
    tokenizer = of_pair(tokenizer, translated.languages)
    text, output = translated.text, tokenizer.decode(translated.target_ids)
    sources = [text[start:end].strip() for start, end in tokenizer.source_spans(text)]
    targets = [output[start:end].strip() for start, end in tokenizer.target_spans(translated.target_ids)]
    num_before = len(translated.languages.source_prefix_ids)
    places = {piece: num_before + index for index, piece in enumerate(sources)}
    in_source, in_target = Counter(sources), Counter(targets)
    return IdenticalPieces(
        tuple(
            (index, places[piece])
            for index, piece in enumerate(targets)
            if piece and in_source[piece] == in_target[piece] == 1
        ),
        slice(num_before, num_before + len(sources)),
    )


def share_found(pieces: Sequence[IdenticalPieces], attentions: Iterable[Attention]) -> float:
    """Return the share of identical pieces that point at each other, to four places; 0 if there are none."""
    total = sum(len(each.places) for each in pieces)
    found = sum(each.num_found(attention) for each, attention in zip(pieces, attentions, strict=True))
    return round(found / total, 4) if total else 0.0
