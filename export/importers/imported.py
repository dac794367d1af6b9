"""The result of every importer: a checkpoint in our own terms, independent of its format on disk."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from export.architecture.stored import StoredModel
from export.importers.model_card import UNKNOWN_LICENCE
from export.shortlist import Shortlist
from service.bundle.manifest_parts import GenerationDefaults, Language, LanguagePair, Limits, TokenizerSpec, directions

_MAX_LISTED = 10_000  # characters of all problems together
_MAX_PROBLEM = 3000  # of one problem: it may quote untrusted text


class CheckpointError(Exception):
    """A checkpoint can't be converted; the message lists the problems found, the first ones if there are very many."""

    def __init__(self, directory: Path, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        # One line, even if the problems' texts, which quote files from elsewhere, contain line ends.
        super().__init__(f"{directory} can't be converted: {'; '.join(_listed(problems))}.")


def _listed(problems: Sequence[str]) -> list[str]:
    listed: list[str] = []
    for problem in problems:
        text = " ".join(problem.split()).rstrip(".")
        if len(text) > _MAX_PROBLEM:
            text = f"{text[:_MAX_PROBLEM]} ..."
        if sum(map(len, listed)) + len(text) > _MAX_LISTED:
            return [*listed, f"and {len(problems) - len(listed)} more"]
        listed.append(text)
    return listed


TokenizerFile = Path | Callable[[Path], None]  # where a file is, or a function that writes it


class Row(NamedTuple):
    """One sentence as token ids, special ones included."""

    source_ids: tuple[int, ...]
    target_prefix_ids: tuple[int, ...]


class Reference(Protocol):
    """Another implementation of a checkpoint's model."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> Mapping[str, float]:
        """Return the options, as in `GenerationDefaults`, that `generate` sets besides the checkpoint's own."""
        ...

    def generate(self, rows: Sequence[Row], beam_size: int, max_output_tokens: int) -> list[tuple[int, ...]]:
        """Return the best hypothesis of each row, with the checkpoint's own generation settings except for these two.

        Hypotheses exclude start, forced prefix and end.
        """
        ...


@dataclass(frozen=True, slots=True)
class ImportedCheckpoint:
    """A model with everything that a bundle states about it.

    `model` has its weights in the checkpoint's dtype, mapped from its files if possible. `tokenizer_files` maps names
    in the bundle to paths, or to functions that write them. `open_reference` opens another implementation, if there is
    one.
    """

    name: str
    model: StoredModel
    tokenizer: TokenizerSpec
    tokenizer_files: Mapping[str, TokenizerFile]
    languages: tuple[LanguagePair, ...]
    limits: Limits
    checkpoint_sha256: str
    suppressed_ids: tuple[int, ...] = ()
    renormalizes: bool = False  # probability is redistributed among the tokens that are not suppressed
    generation: GenerationDefaults = field(default_factory=GenerationDefaults)
    any_to_any: tuple[Language, ...] = ()
    family: str = "Dragoman"
    licence: str = UNKNOWN_LICENCE
    is_prose: bool = True  # what callers will send
    notes: tuple[str, ...] = ()  # what whoever converts it should know
    changes: Mapping[str, Any] = field(default_factory=dict)  # what was changed at the user's wish, for people
    shortlist: Shortlist | None = None
    open_reference: Callable[[], AbstractContextManager[Reference]] | None = None
    reference_searches: bool = True  # or translates greedily only

    def in_float32(self) -> "ImportedCheckpoint":
        return dataclasses.replace(self, model=self.model.in_float32())

    def architecture(self) -> dict[str, Any]:
        config = self.model.config.to_document()
        document = {"family": self.family, "num_parameters": self.model.num_weights, **config}
        return {**document, "changes": dict(self.changes)} if self.changes else document

    def pairs(self) -> Iterator[LanguagePair]:
        return directions(self.languages, self.any_to_any)
