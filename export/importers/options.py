"""User-supplied facts about a checkpoint that its files leave open."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

# Options that few kinds of checkpoints take.
_FOR: Mapping[str, str] = {
    "--names": "bare state dicts",
    "--like": "bare state dicts",
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
    builds the module, FILE:FUNCTION, which is run.
    """

    source_language: str = ""
    target_language: str = ""
    config: Path | None = None
    tokenizer: Path | None = None
    target_tokenizer: Path | None = None
    source_prefix: str = ""
    positions: str | None = None
    names: Path | None = None
    like: str = ""

    def unsuited(self, *taken: str) -> list[str]:
        given = [flag for flag in self.given() if flag in _FOR and flag not in taken]
        return [f"{flag} is for {_FOR[flag]}; this checkpoint has its own" for flag in given]

    def given(self) -> list[str]:
        return [f"--{item.name.replace('_', '-')}" for item in fields(self) if getattr(self, item.name)]


NOTHING_SAID = ImportOptions()
