"""The common parts of transformers' checkpoint folders."""

import dataclasses
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from export.architecture import ModelConfig, PositionConfig
from export.architecture.stored import Array, StoredModel
from export.importers.assembly import assemble
from export.importers.huggingface.config_fields import TokenIds
from export.importers.huggingface.generation import (
    GenerationSettings,
    read_generation,
    settings_of_config,
    without_prefix,
)
from export.importers.huggingface.tokenizer_config import read_optional
from export.importers.imported import ImportedCheckpoint, Reference, TokenizerFile
from export.importers.json_file import read_json
from export.importers.model_card import licence_of
from export.importers.parts import read_part
from export.importers.weight_files import SINGLE_NAMES, WeightFiles, without_wrappers
from service.bundle.manifest_parts import Language, LanguagePair, Limits, TokenizerSpec, directions

CONFIG_NAME = "config.json"
GENERATION_NAME = "generation_config.json"
# A cache row is reserved for every possible source token; longer texts should be split anyway.
MAX_SOURCE_TOKENS = 512
MAX_DECODER_TOKENS = 512  # if the checkpoint does not specify it


@dataclass(frozen=True, slots=True)
class HuggingFaceModel:
    """The contents of a folder besides its tokenizer."""

    model: StoredModel
    generation: GenerationSettings
    checkpoint_sha256: str


class Layout(Protocol):
    """How an architecture's `config.json` and weights are read; `name` is the architecture's, for people."""

    @property
    def name(self) -> str: ...

    def read_architecture(
        self, document: Mapping[str, Any], ids: TokenIds, weights: Mapping[str, Array], problems: list[str]
    ) -> ModelConfig | None:
        """Return our configuration for `config.json` with these weights; add everything unsupported to `problems`."""
        ...

    def our_weights(
        self, document: Mapping[str, Any], given: Mapping[str, Array], config: ModelConfig, problems: list[str]
    ) -> tuple[ModelConfig, dict[str, Array]]:
        """Return the weights under our names, and the configuration with the tables that they have.

        Weights that have no name in our model, or contradict each other, are added to `problems`.
        """
        ...


class TokenizerFiles(Protocol):
    """The common interface of all kinds of tokenizer files."""

    @property
    def pad_id(self) -> int: ...
    @property
    def eos_id(self) -> int: ...
    @property
    def unk_id(self) -> int: ...
    def spec(self, decoder_start_id: int) -> TokenizerSpec: ...


def read_model(
    directory: Path,
    layout: Layout,
    tokenizer: TokenizerFiles | None,
    vocabulary_sizes: tuple[int, int] | None,
    problems: list[str],
    first_ids: Collection[int] | None = (),
    document: Mapping[str, Any] | None = None,
) -> HuggingFaceModel | None:
    """Read configuration, generation settings and weights; `vocabulary_sizes` are the tokenizer's, source and target.

    Tokenizer values are `None` if they could not be read: everything that does not need them is still checked.
    `first_ids` are the languages' tokens if translations begin with one, `None` if unknown. `document` is what
    `config.json` says, in BART's terms, if the file has others.
    """
    if document is None:
        document = read_part(CONFIG_NAME, lambda: read_json(directory / CONFIG_NAME), problems)
    weight_files = read_part("weights", lambda: WeightFiles(directory), problems)
    weights = None if weight_files is None else read_part("weights", weight_files.read, problems)
    if weights is not None:
        weights = read_part("weights", partial(_plain, weights, problems), problems)
    if document is None:
        return None
    elsewhere = document.get("transformers_weights")
    if elsewhere is not None:
        names = " or ".join(SINGLE_NAMES)
        problems.append(f"transformers_weights is {str(elsewhere)[:80]!r}; remove it and name the weights {names}")
    generation = _read_generation(directory, document, first_ids, problems)
    pad_id = generation.pad_id or 0
    if tokenizer is not None:
        pad_id = tokenizer.pad_id
        for name, index, expected in (
            (f"{CONFIG_NAME}: pad_token_id", document.get("pad_token_id"), tokenizer.pad_id),
            ("pad_token_id", generation.pad_id, tokenizer.pad_id),
            ("eos_token_id", generation.eos_id, tokenizer.eos_id),
        ):
            if index is not None and index != expected:
                problems.append(f"{name} is {index}, the tokenizer's is {expected}")
    unk_id = 0 if tokenizer is None else tokenizer.unk_id
    ids = TokenIds(pad_id, generation.eos_id, unk_id, generation.decoder_start_id)
    config = layout.read_architecture(document, ids, weights or {}, problems)
    if config is None or weights is None or weight_files is None:
        return None
    if vocabulary_sizes is not None:
        sizes = (config.source_vocabulary_size, config.target_vocabulary_size)
        for side, given, size in zip(("source", "target"), vocabulary_sizes, sizes, strict=True):
            if given > size:
                problems.append(f"the {side} tokenizer has {given} tokens, the model {size}")
    unknown = [index for index in generation.suppressed_ids if index >= config.target_vocabulary_size]
    if unknown:
        problems.append(f"bad_words_ids has {unknown[0]}, the model has {config.target_vocabulary_size} tokens")
    config, ours = layout.our_weights(document, weights, config, problems)
    model = assemble(config, ours, problems)
    return None if model is None else HuggingFaceModel(model, generation, weight_files.sha256())


def _read_generation(
    directory: Path, document: Mapping[str, Any], first_ids: Collection[int] | None, problems: list[str]
) -> GenerationSettings:
    """Return the settings of `generation_config.json`; those of `config.json` count only if that file is missing."""
    name, settings = CONFIG_NAME, settings_of_config(document)
    if (directory / GENERATION_NAME).exists():
        num_problems = len(problems)
        given = read_optional(directory / GENERATION_NAME, problems)
        if len(problems) == num_problems:
            name, settings = GENERATION_NAME, given
    found: list[str] = []
    generation = read_generation(settings, found, first_ids)
    problems += [f"{name}: {problem}" for problem in found]
    return generation


def checkpoint(
    directory: Path,
    layout: Layout,
    found: HuggingFaceModel,
    tokenizer: TokenizerFiles,
    tokenizer_files: Mapping[str, TokenizerFile],
    languages: tuple[LanguagePair, ...] = (),
    any_to_any: tuple[Language, ...] = (),
    notes: tuple[str, ...] = (),
    positions: PositionConfig | None = None,
) -> ImportedCheckpoint:
    """Return the complete checkpoint, with transformers' own model as the reference.

    `positions` are the model's, and the reference's, in place of those that transformers computes.
    """
    generation = found.generation
    longest_prefix = max(len(pair.target_prefix_ids) for pair in directions(languages, any_to_any))
    limits = _limits(found, longest_prefix)
    config = found.model.config
    return ImportedCheckpoint(
        name=directory.resolve().name,
        model=StoredModel(dataclasses.replace(config, positions=positions or config.positions), found.model.weights),
        tokenizer=tokenizer.spec(generation.decoder_start_id),
        tokenizer_files=tokenizer_files,
        languages=languages,
        any_to_any=any_to_any,
        limits=limits,
        checkpoint_sha256=found.checkpoint_sha256,
        suppressed_ids=generation.suppressed_ids,
        renormalizes=generation.renormalizes,
        generation=without_prefix(generation.defaults, longest_prefix, limits.max_output_tokens),
        family=layout.name,
        licence=licence_of(directory),
        notes=notes,
        open_reference=partial(_open_reference, directory, positions),
    )


def _open_reference(directory: Path, positions: PositionConfig | None) -> AbstractContextManager[Reference]:
    from export.importers.huggingface.reference import open_transformers  # needs torch

    return open_transformers(directory, positions)


def _plain(weights: Mapping[str, Array], problems: list[str]) -> dict[str, Array]:
    """Return the weights without wrapper names; those go to `problems`, as transformers, our reference, reads none."""
    plain = without_wrappers(weights)
    wrapped = sorted(weights.keys() - plain.keys())
    if wrapped:
        problems.append(f"{wrapped[0]} is a name in DataParallel or torch.compile; save the model itself, without them")
    return plain


def _limits(found: HuggingFaceModel, longest_prefix: int) -> Limits:
    """Return the limits of sources and outputs; `max_length` counts the start token, forced ones, and a forced end."""
    config, generation = found.model.config, found.generation
    decoder_tokens = generation.max_decoder_tokens or MAX_DECODER_TOKENS
    forced = 1 + longest_prefix + generation.defaults.forces_end
    return Limits(
        max_source_tokens=min(config.max_source_positions, MAX_SOURCE_TOKENS),
        max_output_tokens=max(1, min(decoder_tokens, config.max_target_positions) - forced),
    )
