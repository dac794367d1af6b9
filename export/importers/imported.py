"""What every importer hands over: a checkpoint in our own terms, whatever it looked like on disk."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from export.architecture import Transformer
from service.bundle.manifest import GenerationDefaults, LanguagePair, Limits, TokenizerSpec


class CheckpointError(Exception):
    """A checkpoint can't be converted; the message lists every problem that was found."""

    def __init__(self, directory: Path, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        # One line, whatever the problems' own texts hold: they quote files from elsewhere.
        listed = "; ".join(" ".join(problem.split()).rstrip(".") for problem in problems)
        super().__init__(f"{directory} can't be converted: {listed}.")


@dataclass(frozen=True, slots=True)
class ImportedCheckpoint:
    """A model with all that a bundle says about it.

    `model` is float32 and in evaluation mode. `tokenizer_files` maps each file's name in the bundle to where it lies.
    """

    name: str
    model: Transformer
    tokenizer: TokenizerSpec
    tokenizer_files: dict[str, Path]
    languages: tuple[LanguagePair, ...]
    limits: Limits
    checkpoint_sha256: str
    suppressed_ids: tuple[int, ...] = ()
    generation: GenerationDefaults = field(default_factory=GenerationDefaults)
