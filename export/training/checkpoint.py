"""Writes a trained model as a native checkpoint folder, which `importers.native` reads; keeps the best of a run."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save_file

from export.architecture.transformer import Transformer
from export.importers.native.folder import CONFIG_NAME, TOKENIZER_NAME, WEIGHTS_NAME, CheckpointInfo

LOSS_NAME = "best.json"


def save_checkpoint(model: Transformer, info: CheckpointInfo, tokenizer: Path, directory: Path) -> None:
    """Write weights (float16, replaced atomically), configuration and the tokenizer file into `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    weights = {name: value.detach().to("cpu", torch.float16).contiguous() for name, value in model.weights().items()}
    temporary = directory / f"{WEIGHTS_NAME}.partial"
    save_file(weights, temporary)
    temporary.replace(directory / WEIGHTS_NAME)
    config = json.dumps(model.config.to_document(), indent=2)
    (directory / CONFIG_NAME).write_text(config + "\n", encoding="utf-8")
    info.save(directory)
    shutil.copyfile(tokenizer, directory / TOKENIZER_NAME)


class BestCheckpoint:
    """Calls `write` for each model with the lowest validation loss so far in `output`, earlier runs included."""

    def __init__(self, output: Path, write: Callable[[Transformer], None]) -> None:
        self._path, self._write = output / LOSS_NAME, write
        self.loss = float("inf")
        if self._path.exists():
            self.loss = json.loads(self._path.read_text(encoding="utf-8"))["validation_loss"]

    def offer(self, model: Transformer, loss: float) -> None:
        if loss < self.loss:
            self._write(model)
            self.loss = loss
            self._path.write_text(json.dumps({"validation_loss": loss}) + "\n", encoding="utf-8")
