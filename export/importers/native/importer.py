"""Imports our own checkpoints: `config.json`, `checkpoint.json`, `model.safetensors`, and one or two tokenizers."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from export.architecture import ModelConfig
from export.architecture.stored import Array
from export.importers.assembly import assemble, limit_problems
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.json_file import read_json
from export.importers.native.folder import (
    CHECKPOINT_NAME,
    CONFIG_NAME,
    TOKENIZERS,
    WEIGHTS_NAME,
    CheckpointInfo,
)
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.parts import read_part
from export.importers.safetensors_file import read_safetensors
from export.importers.sentencepiece_file import read_facts
from export.importers.vocabulary import Vocabulary, read_vocabulary
from service.bundle.checksums import file_sha256
from service.bundle.manifest_parts import GenerationDefaults, LanguagePair, Limits, TokenizerSpec

T = TypeVar("T")


def import_native(directory: Path, options: ImportOptions = NOTHING_SAID) -> ImportedCheckpoint:
    """Read and check a checkpoint folder, which is self-contained: `options` must be empty."""
    problems = [f"{flag} is not for Dragoman's own checkpoints, which need no options" for flag in options.given()]
    config = _read(directory / CONFIG_NAME, lambda path: ModelConfig.from_document(read_json(path)), problems)
    info = _read(directory / CHECKPOINT_NAME, lambda path: CheckpointInfo.from_document(read_json(path)), problems)
    names = next((each for each in TOKENIZERS if all((directory / name).is_file() for name in each)), TOKENIZERS[0])
    vocabularies = [_read(directory / name, read_vocabulary, problems) for name in names]
    weights = _read(directory / WEIGHTS_NAME, _load_weights, problems)
    model = None
    if config is not None:
        problems += _tokenizer_problems(config, names, vocabularies)
        if info is not None:
            problems += (f"{CHECKPOINT_NAME}: {problem}" for problem in limit_problems(info, config))
        if weights is not None:
            faults: list[str] = []
            model = assemble(config, weights, faults)
            problems += [f"{WEIGHTS_NAME}: {fault}" for fault in faults]
    if problems or config is None or info is None or model is None:
        raise CheckpointError(directory, problems)
    facts = [read_facts(directory / name) for name in names if name.endswith(".model")]
    reserved = facts[0].reserved_symbols if facts else ()
    never_generated = (facts[-1].bos_id if facts else config.decoder_start_id, config.pad_id, config.unk_id)
    return ImportedCheckpoint(
        name=info.name,
        model=model,
        tokenizer=TokenizerSpec(
            kind="sentencepiece" if facts else "tokenizers",
            file=names[0],
            target_file="".join(names[1:]),
            pad_id=config.pad_id,
            eos_id=config.eos_id,
            unk_id=config.unk_id,
            decoder_start_id=config.decoder_start_id,
            reserved_symbols=tuple(each for each in reserved if each in facts[-1].reserved_symbols),
        ),
        tokenizer_files={name: directory / name for name in names},
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


def _tokenizer_problems(
    config: ModelConfig, names: Sequence[str], vocabularies: Sequence[Vocabulary | None]
) -> Iterator[str]:
    """Yield how the tokenizers of source and target, or the one of both, differ from the model's ids."""
    for side, position in (("source", 0), ("target", -1)):
        name, vocabulary, size = names[position], vocabularies[position], getattr(config, f"{side}_vocabulary_size")
        if vocabulary is None:
            continue
        if vocabulary.size != size:
            yield f"{name} has {vocabulary.size} pieces, {CONFIG_NAME} says {side}_vocabulary_size {size}"
        if side == "source" and len(names) == 1:
            continue  # its ids are checked as the target's
        for key in ("pad_id", "eos_id", "unk_id"):
            said, own = getattr(config, key), vocabulary.special_ids.get(key)
            if own != said and (own is not None or vocabulary.kind == "sentencepiece"):
                yield f"{name} has {key} {-1 if own is None else own}, {CONFIG_NAME} says {said}"
