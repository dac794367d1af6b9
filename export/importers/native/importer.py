"""Imports our own checkpoints: `config.json`, `checkpoint.json`, `model.safetensors` and `tokenizer.model`."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from export.architecture import ModelConfig
from export.architecture.stored import Array
from export.importers.assembly import assemble
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.json_file import read_json
from export.importers.native.folder import (
    CHECKPOINT_NAME,
    CONFIG_NAME,
    TOKENIZER_NAME,
    WEIGHTS_NAME,
    CheckpointInfo,
)
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.parts import read_part
from export.importers.safetensors_file import read_safetensors
from export.importers.sentencepiece_file import SentencePieceFacts, read_facts
from service.bundle.checksums import file_sha256
from service.bundle.manifest_parts import GenerationDefaults, LanguagePair, Limits, TokenizerSpec

T = TypeVar("T")


def import_native(directory: Path, options: ImportOptions = NOTHING_SAID) -> ImportedCheckpoint:
    """Read and check a checkpoint folder, which is self-contained: `options` must be empty."""
    problems = [f"{flag} is not for our own checkpoints, which say everything themselves" for flag in options.given()]
    config = _read(directory / CONFIG_NAME, lambda path: ModelConfig.from_document(read_json(path)), problems)
    info = _read(directory / CHECKPOINT_NAME, lambda path: CheckpointInfo.from_document(read_json(path)), problems)
    facts = _read(directory / TOKENIZER_NAME, read_facts, problems)
    weights = _read(directory / WEIGHTS_NAME, _load_weights, problems)
    model = None
    if config is not None:
        if facts is not None:
            problems += _tokenizer_problems(config, facts)
        if info is not None:
            problems += _limit_problems(config, info)
        if weights is not None:
            faults: list[str] = []
            model = assemble(config, weights, faults)
            problems += [f"{WEIGHTS_NAME}: {fault}" for fault in faults]
    if problems or config is None or info is None or facts is None or model is None:
        raise CheckpointError(directory, problems)
    never_generated = (facts.bos_id, config.pad_id, config.unk_id)
    return ImportedCheckpoint(
        name=info.name,
        model=model,
        tokenizer=TokenizerSpec(
            kind="sentencepiece",
            file=TOKENIZER_NAME,
            pad_id=config.pad_id,
            eos_id=config.eos_id,
            unk_id=config.unk_id,
            decoder_start_id=config.decoder_start_id,
            reserved_symbols=facts.reserved_symbols,
        ),
        tokenizer_files={TOKENIZER_NAME: directory / TOKENIZER_NAME},
        languages=(LanguagePair(info.source_language_code, info.target_language_code),),
        limits=Limits(info.max_source_tokens, info.max_output_tokens),
        checkpoint_sha256=file_sha256(directory / WEIGHTS_NAME),
        suppressed_ids=tuple(sorted({index for index in never_generated if index >= 0 and index != config.eos_id})),
        licence=info.licence,
        generation=GenerationDefaults(beam_size=info.beam_size, length_penalty=info.length_penalty),
    )


def _read(path: Path, parse: Callable[[Path], T], problems: list[str]) -> T | None:
    if not path.is_file():
        problems.append(f"{path.name} is missing")
        return None
    return read_part(path.name, lambda: parse(path), problems)


def _load_weights(path: Path) -> dict[str, Array]:
    weights = read_safetensors(path)
    for name, value in weights.items():
        if value.dtype.kind in "biu":
            raise ValueError(f"{name} holds {value.dtype}, expected floating-point numbers")
    return weights


def _tokenizer_problems(config: ModelConfig, facts: SentencePieceFacts) -> list[str]:
    sizes = {
        "source_vocabulary_size": config.source_vocabulary_size,
        "target_vocabulary_size": config.target_vocabulary_size,
    }
    problems = [
        f"{TOKENIZER_NAME} has {facts.size} pieces, {CONFIG_NAME} says {name} {size}"
        for name, size in sizes.items()
        if size != facts.size
    ]
    for name in ("pad_id", "eos_id", "unk_id"):
        if getattr(config, name) != getattr(facts, name):
            problems.append(
                f"{TOKENIZER_NAME} has {name} {getattr(facts, name)}, {CONFIG_NAME} says {getattr(config, name)}"
            )
    return problems


def _limit_problems(config: ModelConfig, info: CheckpointInfo) -> list[str]:
    problems = []
    if info.max_source_tokens > config.max_source_positions:
        problems.append(
            f"{CHECKPOINT_NAME}: max_source_tokens is {info.max_source_tokens}, "
            f"the model has {config.max_source_positions} positions"
        )
    if info.max_output_tokens > config.max_target_positions:
        problems.append(
            f"{CHECKPOINT_NAME}: max_output_tokens is {info.max_output_tokens}, "
            f"the model has {config.max_target_positions} positions"
        )
    return problems
