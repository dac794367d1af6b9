"""Chooses the decoder layer and heads whose attention best locates a token's source, measured on the model itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
from numpy import typing as npt

from export.alignment import AlignmentHeads, IdenticalPieces, Translated, identical_pieces, share_found
from export.architecture.config import ModelConfig
from export.architecture.stored import Array
from export.architecture.streamed import StreamedTransformer
from export.importers.imported import ImportedCheckpoint
from service.text.tokenizers import Tokenizer

MIN_PIECES = 16  # fewer are not significant
_BATCH_SIZE = 16

ByLayer = npt.NDArray[np.float32]  # (layers, heads, T + 1, S)


@dataclass(frozen=True, slots=True)
class AlignmentChoice:
    """The chosen heads, and the share of the identical pieces that point at each other by their attention."""

    heads: AlignmentHeads
    num_pieces: int
    share_found: float

    def line(self) -> str:
        where = f"layer {self.heads.layer}, heads {', '.join(map(str, self.heads.heads))}"
        when = "read" if self.heads.reads else "predicted"
        if self.num_pieces < MIN_PIECES:
            return f"alignment by {where}: translations share too little with their sources to choose better"
        return (
            f"alignment by {where}, as tokens are {when}: {self.share_found:.0%} of {self.num_pieces} identical pieces "
            "point at each other"
        )

    def document(self) -> dict[str, Any]:
        heads = asdict(self.heads) | {"heads": list(self.heads.heads)}
        return {**heads, "num_pieces": self.num_pieces, "share_found": self.share_found}


def choose_alignment(
    checkpoint: ImportedCheckpoint,
    tokenizer: Tokenizer,
    translated: Sequence[Translated],
    by_layer: Sequence[ByLayer],
) -> AlignmentChoice:
    """Choose the best among, for every layer, its best single head, its best two heads, and so on up to all of them.

    If translations share too little with their sources, choose the mean over the last layer but one, which works well
    in many models (Garg et al. 2019), or over the last of two.
    """
    pieces = [identical_pieces(tokenizer, each) for each in translated]
    num_pieces = sum(len(each.places) for each in pieces)
    config = checkpoint.model.config.of("decoder")
    if num_pieces < MIN_PIECES:
        layer = config.num_decoder_layers - (2 if config.num_decoder_layers > 2 else 1)
        return AlignmentChoice(AlignmentHeads(layer, tuple(range(config.num_heads))), num_pieces, 0.0)
    choices = [
        AlignmentChoice(heads, num_pieces, share_found(pieces, (mean_of(each, heads) for each in by_layer)))
        for heads in _candidates(checkpoint, pieces, by_layer)
    ]
    # Among equals, prefer the cheaper layer and more heads, whose result is less likely to be an accident.
    return max(choices, key=lambda choice: (choice.share_found, -choice.heads.layer, len(choice.heads.heads)))


def _candidates(
    checkpoint: ImportedCheckpoint, pieces: Sequence[IdenticalPieces], by_layer: Sequence[ByLayer]
) -> Iterator[AlignmentHeads]:
    config = checkpoint.model.config.of("decoder")
    longest_prefix = max(len(pair.target_prefix_ids) for pair in checkpoint.pairs())
    has_room = checkpoint.limits.max_output_tokens + longest_prefix < config.max_target_positions
    for layer in range(config.num_decoder_layers):
        for reads in (False, True)[: 1 + has_room]:
            alone = [AlignmentHeads(layer, (head,), reads) for head in range(config.num_heads)]
            shares = [share_found(pieces, (mean_of(each, heads) for each in by_layer)) for heads in alone]
            best_first = sorted(range(config.num_heads), key=lambda head: -shares[head])
            for count in range(1, config.num_heads + 1):
                yield AlignmentHeads(layer, tuple(sorted(best_first[:count])), reads)


def mean_of(by_layer: ByLayer, heads: AlignmentHeads) -> npt.NDArray[np.float32]:
    """Return what an alignment graph with these heads outputs for one text: (T, S)."""
    mean = by_layer[heads.layer][list(heads.heads)].mean(axis=0)
    return cast(npt.NDArray[np.float32], mean[1:] if heads.reads else mean[:-1])


def cross_attention(
    config: ModelConfig, weights: Mapping[str, Array], translated: Sequence[Translated], *, rounds: bool = False
) -> list[ByLayer]:
    """Return teacher-forced cross-attention probabilities from start and target ids (T + 1) to the source (S).

    In float, or in int8 if it `rounds`; a last token that has no position left gets zeros.
    """
    model, found = StreamedTransformer(config, weights, rounds=rounds), []
    for start in range(0, len(translated), _BATCH_SIZE):
        batch, attention = translated[start : start + _BATCH_SIZE], list[npt.NDArray[np.float32]]()
        read = [[config.decoder_start_id, *each.target_ids][: config.max_target_positions] for each in batch]
        model.hidden([each.source_ids for each in batch], read, attention)
        layers = np.stack(attention, axis=1)  # (B, layers, heads, T, S)
        for row, each, ids in zip(layers, batch, read, strict=True):
            own = row[..., : len(ids), : len(each.source_ids)]
            missing = len(each.target_ids) + 1 - len(ids)
            found.append(np.pad(own, ((0, 0), (0, 0), (0, missing), (0, 0))))
    return found
