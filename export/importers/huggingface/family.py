"""Import of the folder of any family of transformers' models, and the differences between families."""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from export.architecture import PositionConfig
from export.architecture.stored import StoredModel
from export.importers.huggingface.folder import CONFIG_NAME, HuggingFaceModel, Layout, read_model
from export.importers.huggingface.generation import GenerationSettings, without_prefix
from export.importers.huggingface.tokenizer_config import read_optional
from export.importers.huggingface.tokenizer_files import TokenizerFiles
from export.importers.imported import CheckpointError, ImportedCheckpoint, Reference
from export.importers.language_choice import asked_languages, chosen_directions
from export.importers.model_card import UNKNOWN_LICENCE, licence_of
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from service.bundle.manifest_parts import Language, LanguagePair, Limits, directions

# A cache row is reserved for every possible source token; longer texts should be split anyway.
MAX_SOURCE_TOKENS = 512
MAX_DECODER_TOKENS = 512  # if the checkpoint does not specify it

Files = TypeVar("Files", bound=TokenizerFiles)
Directions = tuple[tuple[LanguagePair, ...], tuple[Language, ...]]  # pairs, and languages each translated into all


@dataclass(frozen=True, slots=True)
class Folder(Generic[Files]):
    """Facts about a folder when its directions are chosen; `generation` is `None` if its model is unusable."""

    path: Path
    files: Files
    generation: GenerationSettings | None
    options: ImportOptions
    problems: list[str]

    def config(self) -> dict[str, Any]:
        """Return `config.json`; empty if it is unusable, which is among the problems already."""
        return read_optional(self.path / CONFIG_NAME, [])


@dataclass(frozen=True, slots=True)
class Family(Generic[Files]):
    """A family of models.

    `read_tokenizer` reads and checks the tokenizer's files. `directions` returns what a folder translates, by its files
    and the user's options, and adds what is unknown to the problems. `takes` are options that few kinds take.
    `first_ids` are tokens that a translation may be forced to begin with if the tokenizer can't be read, `None` for
    any. `positions`, the model's and its reference's, replace those that transformers computes.
    """

    layout: Layout
    read_tokenizer: Callable[[Path], Files]
    directions: Callable[[Folder[Files]], Directions]
    takes: tuple[str, ...] = ()
    first_ids: Collection[int] | None = ()
    positions: PositionConfig | None = None


def many_to_many(folder: Folder[Files]) -> Directions:
    """Return what a model between all its languages translates: everything, or as the user chose."""
    every = folder.files.entries()
    return chosen_directions(every, *asked_languages(folder.options, every, folder.problems))


def import_folder(directory: Path, options: ImportOptions, family: Family[Files]) -> ImportedCheckpoint:
    """Read and check a folder. All problems that can be found at once are in one error."""
    problems = options.unsuited(*family.takes)
    files = read_part("tokenizer", lambda: family.read_tokenizer(directory), problems)
    first_ids = family.first_ids if files is None else files.first_ids
    model = read_model(directory, family.layout, files, first_ids, problems)
    chosen: Directions = ((), ())
    if files is not None:
        generation = None if model is None else model.generation
        chosen = family.directions(Folder(directory, files, generation, options, problems))
    if problems or files is None or model is None:
        raise CheckpointError(directory, problems)
    return _checkpoint(directory, family, model, files, *chosen)


def by_model_type(directory: Path, families: Mapping[str, Family[Files]]) -> Family[Files]:
    """Return the family that `config.json` names; the first one if it names none of them."""
    model_type = read_optional(directory / CONFIG_NAME, []).get("model_type")
    return families.get(str(model_type), next(iter(families.values())))


def _checkpoint(
    directory: Path,
    family: Family[Any],
    found: HuggingFaceModel,
    files: TokenizerFiles,
    languages: tuple[LanguagePair, ...],
    any_to_any: tuple[Language, ...],
) -> ImportedCheckpoint:
    generation, config = found.generation, found.model.config
    longest_prefix = max(len(pair.target_prefix_ids) for pair in directions(languages, any_to_any))
    limits = _limits(found, longest_prefix)
    stated = licence_of(directory)
    return ImportedCheckpoint(
        name=directory.resolve().name,
        model=StoredModel(
            dataclasses.replace(config, positions=family.positions or config.positions), found.model.weights
        ),
        tokenizer=dataclasses.replace(files.spec, decoder_start_id=generation.decoder_start_id),
        tokenizer_files=files.written,
        languages=languages,
        any_to_any=any_to_any,
        limits=limits,
        checkpoint_sha256=found.checkpoint_sha256,
        suppressed_ids=generation.suppressed_ids,
        renormalizes=generation.renormalizes,
        generation=without_prefix(generation.defaults, longest_prefix, limits.max_output_tokens),
        family=family.layout.name,
        licence=files.licence if stated == UNKNOWN_LICENCE else stated,
        notes=(*generation.notes, *files.notes),
        open_reference=partial(_open_reference, directory, family.positions),
    )


def _open_reference(directory: Path, positions: PositionConfig | None) -> AbstractContextManager[Reference]:
    from export.importers.huggingface.reference import open_transformers  # needs torch

    return open_transformers(directory, positions)


def _limits(found: HuggingFaceModel, longest_prefix: int) -> Limits:
    """Return the limits of sources and outputs; `max_length` counts the start token, forced ones, and a forced end."""
    config, generation = found.model.config, found.generation
    decoder_tokens = generation.max_decoder_tokens or MAX_DECODER_TOKENS
    forced = 1 + longest_prefix + generation.defaults.forces_end
    return Limits(
        max_source_tokens=min(config.max_source_positions, MAX_SOURCE_TOKENS),
        max_output_tokens=max(1, min(decoder_tokens, config.max_target_positions) - forced),
    )
