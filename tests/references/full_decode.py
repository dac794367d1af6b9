"""The reference: greedy decoding that runs the whole model over the whole prefix for every token, slow and simple."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from export.architecture.transformer import Transformer


@dataclass(frozen=True, slots=True)
class FullDecoding:
    """One sentence's greedy output, its end-of-sentence id included unless the limit cut it off.

    `logits` (T, V) float32 are those that each output token was chosen from, suppressed tokens included.
    """

    token_ids: tuple[int, ...]
    logits: Tensor


@torch.no_grad()
def decode_fully(
    model: Transformer,
    source_ids: Sequence[int],
    target_prefix_ids: Sequence[int],
    suppressed_ids: Sequence[int],
    max_tokens: int,
) -> FullDecoding:
    """Translate one sentence by itself: no batch, no padding, no cache.

    `target_prefix_ids` are forced after the start id and are not part of the output.
    """
    config = model.config
    source = torch.tensor([list(source_ids)], dtype=torch.int64)
    memory = model.encoder(source)  # (1, S, d)
    fed = [config.decoder_start_id, *target_prefix_ids]
    output: list[int] = []
    rows: list[Tensor] = []
    while len(output) < max_tokens:
        target = torch.tensor([fed + output], dtype=torch.int64)
        logits = model.projection(model.decoder(target, memory)[0, -1])  # (V,)
        rows.append(logits)
        allowed = logits.clone()
        allowed[list(suppressed_ids)] = -torch.inf
        output.append(int(allowed.argmax()))
        if output[-1] == config.eos_id:
            break
    return FullDecoding(tuple(output), torch.stack(rows))
