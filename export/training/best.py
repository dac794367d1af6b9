"""Keeps the best checkpoint of a run, on disk from the first evaluation on."""

import json
from collections.abc import Callable
from pathlib import Path

from export.architecture.transformer import Transformer

LOSS_NAME = "best.json"


class BestCheckpoint:
    """Calls `write` for each model with the lowest validation loss so far in `output`, earlier runs included."""

    def __init__(self, output: Path, write: Callable[[Transformer], None]) -> None:
        self._path, self._write = output / LOSS_NAME, write
        self.loss = float("inf")
        if self._path.exists():
            self.loss = json.loads(self._path.read_text(encoding="utf-8"))["validation_loss"]

    def offer(self, model: Transformer, loss: float) -> None:
        """Write the model if it is the best so far."""
        if loss < self.loss:
            self._write(model)
            self.loss = loss
            self._path.write_text(json.dumps({"validation_loss": loss}) + "\n", encoding="utf-8")
