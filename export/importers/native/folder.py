"""The files of our own checkpoints, `checkpoints/<name>/`: written by training, read by `native`."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export.importers.model_card import UNKNOWN_LICENCE

CONFIG_NAME = "config.json"  # ModelConfig
CHECKPOINT_NAME = "checkpoint.json"  # CheckpointInfo
WEIGHTS_NAME = "model.safetensors"
TOKENIZER_NAME = "tokenizer.model"  # SentencePiece, as training writes it
# What else may be there: JSON of the tokenizers library, and one tokenizer for each side.
TOKENIZERS = (
    (TOKENIZER_NAME,),
    ("tokenizer.json",),
    ("source.model", "target.model"),
    ("source.json", "target.json"),
)


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A checkpoint's metadata besides its `ModelConfig`.

    The limits count special tokens; after training on short pairs, quality drops before positions run out. `bos_id`,
    `pad_id` and `unk_id` are never generated.
    """

    name: str
    source_language_code: str
    target_language_code: str
    max_source_tokens: int = 128
    max_output_tokens: int = 192
    beam_size: int = 1
    length_penalty: float = 1.0
    licence: str = UNKNOWN_LICENCE

    def save(self, directory: Path) -> None:
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        (directory / CHECKPOINT_NAME).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "CheckpointInfo":
        known = {item.name: item for item in dataclasses.fields(cls)}
        problems = [f"unknown key {name!r}" for name in sorted(document.keys() - known.keys())]
        for name, item in known.items():
            if name not in document:
                if item.default is dataclasses.MISSING:
                    problems.append(f"{name} is missing")
                continue
            problems += _problems_with(name, document[name], item.type)
        if problems:
            raise ValueError(", ".join(problems))
        return cls(**document)


def _problems_with(name: str, value: Any, kind: Any) -> list[str]:
    accepted: tuple[type, ...] = (int, float) if kind is float else (kind,)
    if not isinstance(value, accepted) or isinstance(value, bool):
        return [f"{name} is {value!r}, expected {kind.__name__}"]
    if isinstance(value, int) and kind is int and value < 1:
        return [f"{name} is {value}, expected at least 1"]
    if kind is str and not value:
        return [f"{name} is empty"]
    return []
