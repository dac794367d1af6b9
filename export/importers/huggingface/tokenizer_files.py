"""The content of a folder's tokenizer files, and the reading of those that several kinds share."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from export.importers import stored_file
from export.importers.imported import TokenizerFile
from export.importers.model_card import UNKNOWN_LICENCE
from export.importers.parts import read_part
from export.importers.sentencepiece_file import read_facts
from service.bundle.manifest_parts import Language, TokenizerSpec
from service.text.vocabulary import parse_vocabulary

Place = Literal["both sides", "target before source", "both before source", "after source", "nowhere"]
_Ids = tuple[int, ...]
_ENTRIES: Mapping[Place, Callable[[str, _Ids], Language]] = {
    "both sides": lambda code, ids: Language(code, source_prefix_ids=ids, target_prefix_ids=ids),
    "target before source": lambda code, ids: Language(code, into_prefix_ids=ids),
    "both before source": lambda code, ids: Language(code, source_prefix_ids=ids, into_prefix_ids=ids),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerFiles:
    """The content of the files.

    `spec` is the manifest's entry, but for the token that translations start from, which the model's settings name.
    `written` are the bundle's files. `sizes`, of source and target, are the highest ids plus one; models have more,
    unused ids. `languages` maps codes to the ids that stand for them, at `place`; `source` is the one that a folder was
    saved for, if it says so. `begin_ids` precede every source. `first_ids` are tokens that a translation may be forced
    to begin with, `None` for any. `licence` is that of the published weights.
    """

    spec: TokenizerSpec
    written: Mapping[str, TokenizerFile]
    sizes: tuple[int, int]
    languages: Mapping[str, _Ids] = field(default_factory=dict)
    place: Place = "nowhere"
    source: str = ""
    begin_ids: _Ids = ()
    first_ids: Collection[int] | None = ()
    notes: tuple[str, ...] = ()
    licence: str = UNKNOWN_LICENCE

    def entries(self) -> dict[str, Language]:
        entry = _ENTRIES[self.place]
        return {code: entry(code, ids) for code, ids in self.languages.items()}


def copied(directory: Path, spec: TokenizerSpec) -> dict[str, TokenizerFile]:
    return {name: directory / name for name in spec.files}


def check_model(path: Path, problems: list[str]) -> None:
    """Load a SentencePiece model; if it is missing, damaged or truncated, add that to `problems`."""
    read_part(path.name, lambda: read_facts(path), problems)


def read_vocabulary(path: Path, problems: list[str]) -> dict[str, int]:
    """Return the pieces and ids of a `vocab.json`; if it is unusable, an empty map, and add that to `problems`."""
    return read_part(path.name, lambda: parse_vocabulary(stored_file.read(path)), problems) or {}


def raise_if_any(problems: list[str]) -> None:
    if problems:
        raise ValueError("; ".join(problems))
