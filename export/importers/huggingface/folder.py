"""The model in a folder of transformers: configuration, generation settings and weights."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from export.architecture import ModelConfig
from export.architecture.stored import Array, StoredModel
from export.importers.assembly import assemble
from export.importers.huggingface.config_fields import TokenIds
from export.importers.huggingface.generation import (
    GenerationSettings,
    read_generation,
    settings_of_config,
)
from export.importers.huggingface.tokenizer_config import read_optional
from export.importers.huggingface.tokenizer_files import TokenizerFiles
from export.importers.json_file import read_json
from export.importers.parts import read_part
from export.importers.weight_files import SINGLE_NAMES, WeightFiles, without_wrappers

CONFIG_NAME = "config.json"
GENERATION_NAME = "generation_config.json"


@dataclass(frozen=True, slots=True)
class HuggingFaceModel:
    """The contents of a folder besides its tokenizer."""

    model: StoredModel
    generation: GenerationSettings
    checkpoint_sha256: str


class Layout(Protocol):
    """A reader of an architecture's `config.json` and weights; `name` is the architecture's, for people."""

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
        """Return the weights under our names, and the configuration with their tables; add misfits to `problems`."""
        ...


def read_model(
    directory: Path,
    layout: Layout,
    files: TokenizerFiles | None,
    first_ids: Collection[int] | None,
    problems: list[str],
) -> HuggingFaceModel | None:
    """Read configuration, generation settings and weights.

    `files` are `None` if unreadable: everything else is still checked. `first_ids` are tokens that a translation may be
    forced to begin with, `None` for any.
    """
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
    pad_id, unk_id = generation.pad_id or 0, 0
    if files is not None:
        pad_id, unk_id = files.spec.pad_id, files.spec.unk_id
        for name, index, expected in (
            (f"{CONFIG_NAME}: pad_token_id", document.get("pad_token_id"), pad_id),
            ("pad_token_id", generation.pad_id, pad_id),
            ("eos_token_id", generation.eos_id, files.spec.eos_id),
        ):
            if index is not None and index != expected:
                problems.append(f"{name} is {index}, the tokenizer's is {expected}")
    ids = TokenIds(pad_id, generation.eos_id, unk_id, generation.decoder_start_id)
    config = layout.read_architecture(document, ids, weights or {}, problems)
    if config is None or weights is None or weight_files is None:
        return None
    if files is not None:
        sizes = (config.source_vocabulary_size, config.target_vocabulary_size)
        for side, given, size in zip(("source", "target"), files.sizes, sizes, strict=True):
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


def _plain(weights: Mapping[str, Array], problems: list[str]) -> dict[str, Array]:
    """Return the weights without wrapper names; those go to `problems`, as transformers, our reference, reads none."""
    plain = without_wrappers(weights)
    wrapped = sorted(weights.keys() - plain.keys())
    if wrapped:
        problems.append(f"{wrapped[0]} is a name that DataParallel or torch.compile gives; save the model without them")
    return plain
