"""User-supplied facts about a checkpoint that its files leave open."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

# Options that few kinds of checkpoints take.
_FOR: Mapping[str, str] = {
    "--names": "bare state dicts",
    "--like": "bare state dicts",
    "--logits": "modules in memory",
    "--config": "bare state dicts",
    "--tokenizer": "bare state dicts and CTranslate2",
    "--target-tokenizer": "bare state dicts and CTranslate2",
    "--source-prefix": "T5",
    "--positions": "folders of transformers' Marian",
}


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Each importer uses the options that apply to it and rejects the rest; empty or `None` means not given.

    `source_language` and `target_language` are codes for checkpoints that don't name their languages. `config`,
    `tokenizer` and `target_tokenizer` are files that accompany a bare state dict, the tokenizers also a model of
    CTranslate2's. `source_prefix` is a text that precedes each source, as in "translate English to German: ".
    `positions` is "marian" for those that Marian computes, in a folder of transformers, which computes others. `names`
    is the file of a layout for a bare state dict's names (`state_dict/layout.py`); `like` is the author's code that
    builds the module, FILE:FUNCTION, which is run. In Python, `config` may be the file's content, paths may be texts,
    and `logits(model, source_ids, target_ids)` calls a module in memory that is called otherwise.
    """

    source_language: str = ""
    target_language: str = ""
    config: Path | Mapping[str, Any] | None = None
    tokenizer: Path | None = None
    target_tokenizer: Path | None = None
    source_prefix: str = ""
    positions: str | None = None
    names: Path | None = None
    like: str = ""
    logits: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        for name in ("config", "tokenizer", "target_tokenizer", "names"):
            if isinstance(given := getattr(self, name), str):
                object.__setattr__(self, name, Path(given))

    def unsuited(self, *taken: str) -> list[str]:
        given = [flag for flag in self.given() if flag in _FOR and flag not in taken]
        return [f"{flag} is for {_FOR[flag]}; this checkpoint has its own" for flag in given]

    def given(self) -> list[str]:
        return [f"--{item.name.replace('_', '-')}" for item in fields(self) if getattr(self, item.name)]


NOTHING_SAID = ImportOptions()
