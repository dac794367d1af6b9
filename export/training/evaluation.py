"""Evaluation during training: validation loss, and sample translations by plain greedy decoding."""

from collections.abc import Iterable, Sequence

import numpy as np
import sentencepiece
import torch
from torch import Tensor
from torch.nn import functional

from export.architecture.transformer import Transformer, padding_mask
from export.training.batches import Batch


@torch.no_grad()
def validation_loss(model: Transformer, batches: Iterable[Batch], device: torch.device) -> float:
    """Return the mean cross-entropy per target token in nats, without label smoothing."""
    model.eval()
    total, count = 0.0, 0
    for batch in batches:
        source = torch.from_numpy(batch.source_ids).to(device)
        target = torch.from_numpy(batch.target_ids).to(device)
        logits = model(source, target[:, :-1])  # (B, T, V)
        labels = target[:, 1:]
        pad_id = model.config.pad_id
        loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=pad_id, reduction="sum")
        total += float(loss)
        count += int((labels != pad_id).sum())
    return total / max(count, 1)


@torch.no_grad()
def translate_greedily(
    model: Transformer,
    tokenizer: sentencepiece.SentencePieceProcessor,
    texts: Sequence[str],
    device: torch.device,
    max_output_tokens: int = 128,
    batch_size: int = 64,
) -> list[str]:
    """Translate by re-decoding the whole prefix at each step: slow and simple, an independent check of the engine."""
    model.eval()
    sources = tokenizer.encode(list(texts), add_eos=True)
    order = sorted(range(len(texts)), key=lambda i: len(sources[i]))
    outputs: list[str] = [""] * len(texts)
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        decoded = greedy_ids(model, [sources[i] for i in rows], device, max_output_tokens)
        for i, ids in zip(rows, decoded, strict=True):
            outputs[i] = tokenizer.decode(ids)
    return outputs


@torch.no_grad()
def greedy_ids(
    model: Transformer, sources: Sequence[Sequence[int]], device: torch.device, max_output_tokens: int
) -> list[list[int]]:
    """Return the greedy token ids of a batch, without start and end-of-sentence ids."""
    config = model.config
    lengths = torch.tensor([len(ids) for ids in sources], device=device)
    padded = np.full((len(sources), int(lengths.max())), config.pad_id, dtype=np.int64)
    for row, ids in zip(padded, sources, strict=True):
        row[: len(ids)] = ids
    mask = padding_mask(lengths, padded.shape[1])
    memory = model.encoder(torch.from_numpy(padded).to(device), mask)
    output = torch.full((len(sources), 1), config.decoder_start_id, device=device)
    done = torch.zeros(len(sources), dtype=torch.bool, device=device)
    for _ in range(max_output_tokens):
        logits: Tensor = model.projection(model.decoder(output, memory, mask)[:, -1])
        logits[:, config.pad_id] = -torch.inf
        chosen = logits.argmax(-1).masked_fill(done, config.eos_id)
        output = torch.cat([output, chosen[:, None]], dim=1)
        done |= chosen == config.eos_id
        if bool(done.all()):
            break
    rows = [[int(token) for token in row] for row in output[:, 1:]]
    return [row[: row.index(config.eos_id)] if config.eos_id in row else row for row in rows]
