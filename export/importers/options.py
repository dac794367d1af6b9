"""User-supplied facts about a checkpoint that its files leave open."""

from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Each importer uses the options that apply to it and rejects the rest; empty or `None` means not given.

    `source_language` and `target_language` are codes for checkpoints that don't name their languages. `config`,
    `tokenizer` and `target_tokenizer` are files that accompany a bare state dict. `source_prefix` is a text that
    precedes each source, as in "translate English to German: ".
    """

    source_language: str = ""
    target_language: str = ""
    config: Path | None = None
    tokenizer: Path | None = None
    target_tokenizer: Path | None = None
    source_prefix: str = ""

    def without_files(self, *, takes_prefix: bool = False) -> list[str]:
        """Return a problem for each file that was given for a checkpoint that has its own, and for a useless prefix."""
        flags = ("--config", "--tokenizer", "--target-tokenizer")
        problems = [
            f"{flag} is for bare state dicts; this checkpoint has its own" for flag in self.given() if flag in flags
        ]
        return problems if takes_prefix else [*problems, *self.without_prefix()]

    def without_prefix(self) -> list[str]:
        """Return a problem if a prefix was given."""
        return ["--source-prefix is for T5; this checkpoint has no such texts"] if self.source_prefix else []

    def given(self) -> list[str]:
        """Return the flags of the options given."""
        return [f"--{item.name.replace('_', '-')}" for item in fields(self) if getattr(self, item.name)]


NOTHING_SAID = ImportOptions()
