"""Chooses the decoder layer and heads whose attention best locates a token's source, measured on the model itself."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy import typing as npt
from torch import Tensor, nn

from export.alignment import IdenticalPieces, Translated, identical_pieces, share_found
from export.architecture import Transformer
from export.architecture.attention import MultiHeadAttention
from export.architecture.decoder import DecoderLayer
from export.graphs.alignment_graph import AlignmentHeads
from export.importers.imported import ImportedCheckpoint
from service.text.tokenizers import Tokenizer

MIN_PIECES = 16  # fewer are not significant

_ByLayer = npt.NDArray[np.float32]  # (layers, heads, T + 1, S)


@dataclass(frozen=True, slots=True)
class AlignmentChoice:
    """The chosen heads, and the share of the identical pieces that point at each other by their attention."""

    heads: AlignmentHeads
    num_pieces: int
    share_found: float

    def line(self) -> str:
        """Return a line for the terminal."""
        where = f"layer {self.heads.layer}, heads {', '.join(map(str, self.heads.heads))}"
        when = "read" if self.heads.reads else "predicted"
        if self.num_pieces < MIN_PIECES:
            return f"alignment by {where}: translations share too little with their sources to choose better"
        return (
            f"alignment by {where}, as tokens are {when}: {self.share_found:.0%} of {self.num_pieces} identical pieces "
            "point at each other"
        )

    def document(self) -> dict[str, Any]:
        """Return the entry for the manifest."""
        heads = asdict(self.heads) | {"heads": list(self.heads.heads)}
        return {**heads, "num_pieces": self.num_pieces, "share_found": self.share_found}


def choose_alignment(
    checkpoint: ImportedCheckpoint, tokenizer: Tokenizer, translated: Sequence[Translated]
) -> AlignmentChoice:
    """Choose the best among, for every layer, its best single head, its best two heads, and so on up to all of them.

    If the translations share too little with their sources, choose the mean over all heads of the last layer but one,
    which works well in many models (Garg et al. 2019), or of the last layer if there are only two.
    """
    pieces = [identical_pieces(tokenizer, each) for each in translated]
    num_pieces = sum(len(each.places) for each in pieces)
    config = checkpoint.model.config
    if num_pieces < MIN_PIECES:
        layer = config.num_decoder_layers - (2 if config.num_decoder_layers > 2 else 1)
        return AlignmentChoice(AlignmentHeads(layer, tuple(range(config.num_heads))), num_pieces, 0.0)
    by_layer = [cross_attention(checkpoint.model, each.source_ids, each.target_ids) for each in translated]
    choices = [
        AlignmentChoice(heads, num_pieces, share_found(pieces, (mean_of(each, heads) for each in by_layer)))
        for heads in _candidates(checkpoint, pieces, by_layer)
    ]
    # Among equals, prefer the cheaper layer and more heads, whose result is less likely to be an accident.
    return max(choices, key=lambda choice: (choice.share_found, -choice.heads.layer, len(choice.heads.heads)))


def _candidates(
    checkpoint: ImportedCheckpoint, pieces: Sequence[IdenticalPieces], by_layer: Sequence[_ByLayer]
) -> Iterator[AlignmentHeads]:
    config = checkpoint.model.config
    longest_prefix = max(len(pair.target_prefix_ids) for pair in checkpoint.pairs())
    has_room = checkpoint.limits.max_output_tokens + longest_prefix < config.max_target_positions
    for layer in range(config.num_decoder_layers):
        for reads in (False, True)[: 1 + has_room]:
            alone = [AlignmentHeads(layer, (head,), reads) for head in range(config.num_heads)]
            shares = [share_found(pieces, (mean_of(each, heads) for each in by_layer)) for heads in alone]
            best_first = sorted(range(config.num_heads), key=lambda head: -shares[head])
            for count in range(1, config.num_heads + 1):
                yield AlignmentHeads(layer, tuple(sorted(best_first[:count])), reads)


def mean_of(by_layer: _ByLayer, heads: AlignmentHeads) -> npt.NDArray[np.float32]:
    """Return what an alignment graph with these heads outputs for one text: (T, S)."""
    mean = by_layer[heads.layer][list(heads.heads)].mean(axis=0)
    return cast(npt.NDArray[np.float32], mean[1:] if heads.reads else mean[:-1])


@torch.no_grad()
def cross_attention(model: Transformer, source_ids: Iterable[int], target_ids: Iterable[int]) -> _ByLayer:
    """Return the torch model's cross-attention probabilities from start and target ids (T + 1) to the source (S).

    They come from one teacher-forced pass of the model; a last token that has no position left gets zeros.
    """
    seen: list[Tensor] = []

    def look(module: nn.Module, given: tuple[Tensor, ...], result: Any) -> None:
        attention, (queries_from, keys_from) = cast(MultiHeadAttention, module), given[:2]
        queries, keys = (
            attention.split_heads(project(x))
            for project, x in ((attention.query, queries_from), (attention.key, keys_from))
        )
        seen.append((queries @ keys.transpose(-1, -2) * attention.scale).softmax(-1)[0])

    hooks = [
        layer.cross_attention.register_forward_hook(look)
        for layer in cast(Iterable[DecoderLayer], model.decoder.layers)
    ]
    read = [model.config.decoder_start_id, *target_ids]
    room = model.config.max_target_positions
    try:
        model(torch.tensor([[*source_ids]]), torch.tensor([read[:room]]))
    finally:
        for hook in hooks:
            hook.remove()
    # The padding at the model's last position is never read.
    return nn.functional.pad(torch.stack(seen), (0, 0, 0, max(len(read) - room, 0))).numpy()
