"""Companions of bare weights (settings, tokenizers, languages), and the checkpoint that they make together."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from export.architecture import ModelConfig
from export.architecture.stored import Array
from export.importers import stored_file
from export.importers.assembly import assemble, limit_problems
from export.importers.imported import CheckpointError, ImportedCheckpoint, TokenizerFile
from export.importers.listed_pieces import listed_pieces
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from export.importers.state_dict.saved import Saved
from export.importers.state_dict.settings import Settings, read_settings
from export.importers.vocabulary import Vocabulary, misfits, numbered_vocabulary, read_vocabulary
from export.importers.word_tokenizer import WordOptions
from service.bundle.checksums import file_sha256
from service.bundle.manifest_parts import GenerationDefaults, LanguagePair, Limits, TokenizerSpec
from service.text.languages import is_well_formed

T = TypeVar("T")
_NAMED_IDS = ("eos_id", "unk_id")  # which files of tokenizers may name, too, besides padding


@dataclass(frozen=True, slots=True)
class Companions:
    """The user's files beside weights; `None` is what was missing or unusable, and is among the problems."""

    options: ImportOptions
    settings: Settings | None
    source: Vocabulary | None
    target: Vocabulary | None


def read_companions(options: ImportOptions, saved: Saved, problems: list[str]) -> Companions:
    """Read the files that `options` name, beside what a checkpoint has `saved`; add every problem to `problems`."""
    problems += _language_problems(options)

    def read(given: Path | Mapping[str, Any] | None) -> Settings:
        return read_settings(given, saved.settings, problems)

    is_needed = options.config is not None or not saved.settings
    settings = _read("--config", options.config, read, problems) if is_needed else read(None)
    if settings is None:  # which tells how vocabularies are read
        for flag, path in (("--tokenizer", options.tokenizer), ("--target-tokenizer", options.target_tokenizer)):
            if path is not None or (flag == "--tokenizer" and saved.source is None):
                _read(flag, path, lambda given: None, problems)
        return Companions(options, None, None, None)
    words = (settings.tokenizer, settings.target_tokenizer or settings.tokenizer)
    source = target = _vocabulary("--tokenizer", options.tokenizer, saved.source, words[0], problems)
    if options.target_tokenizer is not None or saved.source != saved.target:
        path = options.target_tokenizer
        flag, path = ("--tokenizer", options.tokenizer) if path is None else ("--target-tokenizer", path)
        target = _vocabulary(flag, path, saved.target, words[1], problems)
    if target is not None:
        settings = settings.with_ids(target.special_ids, problems)
    return Companions(options, settings, source, target)


def finish(
    path: Path,
    file: Path | None,
    companions: Companions,
    config: ModelConfig | None,
    weights: Mapping[str, Any] | None,
    problems: list[str],
    notes: tuple[str, ...] = (),
) -> ImportedCheckpoint:
    """Return the checkpoint of `weights`, arrays or tensors by our names, in the file `file` at `path`, or in memory.

    `None` could not be read, for a reason in `problems`. The `CheckpointError` has all of these, and how weights,
    vocabularies and settings don't fit `config`. `notes` are for whoever converts it.
    """
    settings, source, target, options = companions.settings, companions.source, companions.target, companions.options
    if config is not None and settings is not None:
        problems += _settings_problems(settings, config)
        if source is not None and target is not None:
            problems += _vocabulary_problems(settings, config, source, target)
    model = None if config is None or weights is None else assemble(config, weights, problems)
    if problems or settings is None or source is None or target is None or model is None:
        raise CheckpointError(path, problems)
    spec, tokenizer_files = _tokenizer(settings, model.config, source, target)
    return ImportedCheckpoint(
        name=settings.name or path.stem,
        model=model,
        tokenizer=spec,
        tokenizer_files=tokenizer_files,
        languages=(LanguagePair(options.source_language, options.target_language, settings.source_prefix_ids),),
        limits=Limits(
            settings.max_source_tokens or model.config.max_source_positions,
            settings.max_output_tokens or model.config.max_target_positions,
        ),
        checkpoint_sha256=_sha256(model.weights) if file is None else file_sha256(file),
        suppressed_ids=_suppressed_ids(settings, model.config),
        generation=GenerationDefaults(settings.beam_size, settings.length_penalty),
        family="pytorch",
        licence=settings.licence,
        notes=notes,
    )


def _read(flag: str, given: Path | Mapping[str, Any] | None, read: Callable[[Any], T], problems: list[str]) -> T | None:
    if given is None:
        problems.append(f"{flag} is missing; a state dict needs it")
        return None
    if isinstance(given, Path) and not given.is_file():
        problems.append(f"{flag} {given} is not a file")
        return None
    return read_part(f"{flag} {given.name}" if isinstance(given, Path) else flag, lambda: read(given), problems)


def _sha256(weights: Mapping[str, Array]) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(weights.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(value).view(np.uint8).data)
    return digest.hexdigest()


def _vocabulary(
    flag: str, path: Path | None, ids: Mapping[str, int] | None, words: WordOptions | None, problems: list[str]
) -> Vocabulary | None:
    if ids is None:
        return _read(flag, path, lambda given: read_vocabulary(given, words), problems)
    if path is None and words is None:
        problems.append(f"{flag} is missing: the SentencePiece model whose pieces are in the checkpoint's vocabulary")
        return None
    return read_part(flag, lambda: numbered_vocabulary(ids, path, words), problems)


def _language_problems(options: ImportOptions) -> Iterator[str]:
    for flag, code in (("--source-language", options.source_language), ("--target-language", options.target_language)):
        if not code:
            yield f"{flag} is missing; a state dict needs it"
        elif not is_well_formed(code):
            yield f"{flag} is {code!r}, expected a code such as en or pt-BR"


def _settings_problems(settings: Settings, config: ModelConfig) -> Iterator[str]:
    of_source, of_target = config.source_vocabulary_size, config.target_vocabulary_size
    ids: dict[str, tuple[Iterable[int | None], int]] = {
        "source_prefix_ids": (settings.source_prefix_ids, of_source),
        "source_eos_id": ([settings.source_eos_id], of_source),
        "source_pad_id": ([settings.source_pad_id], of_source),
        "pad_id": ([_target_pad_id(settings, config)], of_target),
        "suppressed_ids": (settings.suppressed_ids or (), of_target),
    }
    for name, (given, size) in ids.items():
        outside = [index for index in given if index is not None and index >= size]
        yield from (f"--config: {name} {index} is outside the vocabulary of {size}" for index in outside)
    yield from (f"--config: {problem}" for problem in limit_problems(settings, config))


def _vocabulary_problems(
    settings: Settings, config: ModelConfig, source: Vocabulary, target: Vocabulary
) -> Iterator[str]:
    if source.kind != target.kind:
        yield (f"--tokenizer is of kind {source.kind}, --target-tokenizer of kind {target.kind}; they must be the same")
    ids = {name: index for name, index in settings.model.items() if name in _NAMED_IDS and isinstance(index, int)}
    ids["pad_id"] = _target_pad_id(settings, config)
    said = {"pad_id": settings.source_pad_id, "eos_id": settings.source_eos_id}
    of_source = {"pad_id": ids["pad_id"]} | {name: index for name, index in said.items() if index is not None}
    size = config.source_vocabulary_size
    if size != source.size == config.target_vocabulary_size and target.size == size:
        yield f"--tokenizer has the {source.size} tokens of the target, and the other way round: swap them"
        return
    for problem in misfits(source, size, of_source, settings.source_prefix_ids, "source"):
        yield f"--tokenizer: {problem}"
    flag = "--tokenizer, without --target-tokenizer" if target is source else "--target-tokenizer"
    for problem in misfits(target, config.target_vocabulary_size, ids, [config.decoder_start_id], "target"):
        yield f"{flag}: {problem}"


def _tokenizer(
    settings: Settings, config: ModelConfig, source: Vocabulary, target: Vocabulary
) -> tuple[TokenizerSpec, dict[str, TokenizerFile]]:
    if source.ids and isinstance(source.file, Path) and isinstance(target.file, Path):
        second = None if source.file == target.file else stored_file.read(target.file)
        texts = {index: text for text, index in target.ids.items()}
        return listed_pieces(
            (stored_file.read(source.file), second),
            (source.ids, target.ids),
            {"eos": texts[config.eos_id], "unk": texts[config.unk_id]},
            [texts[config.decoder_start_id]],
            config.decoder_start_id,
            adds_source_eos=settings.source_eos_id is not None,
            pad_id=config.pad_id,
        )
    sides = {"tokenizer": source} if target is source else {"source": source, "target": target}
    files = {f"{name}{side.suffix}": side.file for name, side in sides.items()}
    names = list(files)
    spec = TokenizerSpec(
        kind=source.kind,
        file=names[0],
        pad_id=config.pad_id,
        eos_id=config.eos_id,
        unk_id=config.unk_id,
        decoder_start_id=config.decoder_start_id,
        target_file="".join(names[1:]),
        source_eos_id=None if settings.source_eos_id == config.eos_id else settings.source_eos_id,
        adds_source_eos=settings.source_eos_id is not None,
    )
    return spec, files


def _suppressed_ids(settings: Settings, config: ModelConfig) -> tuple[int, ...]:
    """Return the ids that are never generated: those without text, unless the user overrides them."""
    if settings.suppressed_ids is not None:
        return tuple(sorted(set(settings.suppressed_ids)))
    special = {_target_pad_id(settings, config), config.unk_id, config.decoder_start_id}
    return tuple(sorted(special - {config.eos_id}))


def _target_pad_id(settings: Settings, config: ModelConfig) -> int:
    """Return the target's own id; `ModelConfig` keeps the smaller of both sides'."""
    said = settings.model.get("pad_id")
    return said if isinstance(said, int) else config.pad_id
