"""Computes gradients of a batch in parts: in threads on a CPU, each part small enough for its caches."""

import copy
import itertools
import queue
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from export.architecture.transformer import Transformer
from export.training.batches import Batch

PART_TOKENS = 1000  # activations stay in a CPU's caches; smaller parts cost more in calls than they save


class ParallelGradients:
    """Accumulates gradients in the parameters of `model`, on a CPU.

    Each worker has a core, a copy of the model that shares its weights, and its own gradients. Workers wait for each
    other once per step, not at every operation as torch's threads do, which is slow on a busy machine. Parts go to
    workers in no fixed order: sums differ in their last bits from run to run.
    """

    def __init__(self, model: Transformer, label_smoothing: float, workers: int, bfloat16: bool) -> None:
        self._model, self._label_smoothing, self._bfloat16 = model, label_smoothing, bfloat16
        self._pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
        self._copies = [_sharing_weights(model) for _ in range(workers)]
        self._free: queue.SimpleQueue[Transformer] = queue.SimpleQueue()
        for replica in self._copies:
            self._free.put(replica)

    def add(self, batch: Batch) -> float:
        """Add the gradients of the batch's mean loss, and return the loss."""
        pad_id = self._model.config.pad_id
        count = int((batch.target_ids[:, 1:] != pad_id).sum())
        parts = _parts(batch, PART_TOKENS, pad_id)
        losses = list(self._pool.map(self._backward, parts, itertools.repeat(count)))
        for parameter, *shared in zip(*(model.parameters() for model in (self._model, *self._copies)), strict=True):
            for other in shared:
                if other.grad is not None:
                    parameter.grad = other.grad if parameter.grad is None else parameter.grad.add_(other.grad)
                    other.grad = None
        return sum(losses)

    def _backward(self, part: Batch, count: int) -> float:
        source, target = torch.from_numpy(part.source_ids), torch.from_numpy(part.target_ids)
        model = self._free.get()
        try:
            with torch.autocast("cpu", torch.bfloat16, enabled=self._bfloat16):
                loss = smoothed_loss(model, source, target, self._label_smoothing) / count
            loss.backward()
        finally:
            self._free.put(model)
        return float(loss.detach())


def smoothed_loss(model: Transformer, source: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
    logits = model(source, target[:, :-1])  # (B, T, V)
    return functional.cross_entropy(
        logits.flatten(0, 1).float(),
        target[:, 1:].flatten(),
        ignore_index=model.config.pad_id,
        label_smoothing=label_smoothing,
        reduction="sum",
    )


def _sharing_weights(model: Transformer) -> Transformer:
    replica = copy.deepcopy(model).train()
    for own, original in zip(replica.parameters(), model.parameters(), strict=True):
        own.data = original.data
    return replica


def _parts(batch: Batch, tokens: int, pad_id: int) -> Iterator[Batch]:
    """Cut a batch into parts of about `tokens`, each with as little padding as its rows need."""
    rows = max(1, tokens * len(batch.source_ids) // batch.num_tokens)
    for start in range(0, len(batch.source_ids), rows):
        target = batch.target_ids[start : start + rows]
        width = int(np.flatnonzero((target != pad_id).any(axis=0))[-1]) + 1
        yield Batch(batch.source_ids[start : start + rows], target[:, :width])
