"""Greedy outputs of a model in torch, which need no graphs."""

from collections.abc import Sequence

import torch

from export.architecture.transformer import Transformer, padding_mask
from export.importers.imported import ImportedCheckpoint, Row
from export.verify import first_difference, top_two_gap


@torch.no_grad()
def greedy(checkpoint: ImportedCheckpoint, rows: Sequence[Row], max_output_tokens: int) -> list[tuple[int, ...]]:
    """Return the outputs of rows whose prefixes have one length, without start, prefix and end; none is empty."""
    model, spec = Transformer.of(checkpoint.model), checkpoint.tokenizer
    lengths = torch.tensor([len(row.source_ids) for row in rows])
    width = int(lengths.max())
    sources = torch.tensor([[*row.source_ids, *[spec.pad_id] * (width - len(row.source_ids))] for row in rows])
    mask = padding_mask(lengths, width)
    memory = model.encoder(sources, mask)
    fed = torch.tensor([[spec.decoder_start_id, *row.target_prefix_ids] for row in rows])
    first = fed.shape[1]
    for step in range(max_output_tokens):
        logits = model.projection(model.decoder(fed, memory, mask)[:, -1])
        logits[:, [*checkpoint.suppressed_ids, *([] if step else [spec.eos_id])]] = -torch.inf
        fed = torch.cat([fed, logits.argmax(dim=-1, keepdim=True)], dim=1)
    outputs = [row[first:] for row in fed.tolist()]
    return [tuple(ids[: ids.index(spec.eos_id)] if spec.eos_id in ids else ids) for ids in outputs]


@torch.no_grad()
def gap_at_difference(
    checkpoint: ImportedCheckpoint, row: Row, output: tuple[int, ...], other: tuple[int, ...]
) -> float:
    """Return how far apart the two best tokens are where two outputs of a row begin to differ."""
    place = first_difference(output, other)
    fed = (checkpoint.tokenizer.decoder_start_id, *row.target_prefix_ids, *output[:place])
    logits = Transformer.of(checkpoint.model)(torch.tensor([row.source_ids]), torch.tensor([fed]))[0, -1]
    return top_two_gap(logits.numpy(), checkpoint.suppressed_ids)
