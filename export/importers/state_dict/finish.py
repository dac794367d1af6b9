"""What accompanies bare weights (settings, tokenizers, languages), and the checkpoint that they make together."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from export.architecture import ModelConfig
from export.importers import stored_file
from export.importers.assembly import assemble
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


@dataclass(frozen=True, slots=True)
class Companions:
    """What the user gives beside weights; `None` is what was missing or unusable, and is among the problems."""

    options: ImportOptions
    settings: Settings | None
    source: Vocabulary | None
    target: Vocabulary | None


def read_companions(options: ImportOptions, saved: Saved, problems: list[str]) -> Companions:
    """Read the files that `options` name, beside what a checkpoint has `saved`; add every problem to `problems`."""
    problems += _language_problems(options)

    def read(path: Path | None) -> Settings:
        return read_settings(path, saved.settings, problems)

    is_needed = options.config is not None or not saved.settings
    settings = _read("--config", options.config, read, problems) if is_needed else read(None)
    words = settings.tokenizer if settings is not None else None
    source = _vocabulary("--tokenizer", options.tokenizer, saved.source, words, problems)
    target = source
    if options.target_tokenizer is not None or saved.source != saved.target:
        words = (settings.target_tokenizer if settings is not None else None) or words
        flag, path = "--target-tokenizer", options.target_tokenizer
        if path is None:
            flag, path = "--tokenizer", options.tokenizer
        target = _vocabulary(flag, path, saved.target, words, problems)
    if settings is not None and target is not None:
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
    """Return the checkpoint of `weights`, arrays or tensors by our names, in the file `file` at `path`.

    `None` is what could not be read, for a reason that is among `problems`. All of these, and how weights, vocabularies
    and settings don't fit `config`, are in the `CheckpointError`. `notes` are for whoever converts it.
    """
    settings, source, target, options = companions.settings, companions.source, companions.target, companions.options
    if config is not None and settings is not None:
        problems += _settings_problems(settings, config)
        if source is not None and target is not None:
            problems += _vocabulary_problems(settings, config, source, target)
    model = None if config is None or weights is None else assemble(config, weights, problems)
    if problems or file is None or settings is None or source is None or target is None or model is None:
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
        checkpoint_sha256=file_sha256(file),
        suppressed_ids=_suppressed_ids(settings, model.config),
        generation=GenerationDefaults(settings.beam_size, settings.length_penalty),
        family="pytorch",
        licence=settings.licence,
        notes=notes,
    )


def _read(flag: str, path: Path | None, read: Callable[[Path], T], problems: list[str]) -> T | None:
    if path is None:
        problems.append(f"{flag} is missing, which a state dict needs beside it")
        return None
    if not path.is_file():
        problems.append(f"{flag} {path} is not a file")
        return None
    return read_part(f"{flag} {path.name}", lambda: read(path), problems)


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
            yield f"{flag} is missing, which a state dict needs beside it"
        elif not is_well_formed(code):
            yield f"{flag} is {code!r}, expected a code such as en or pt-BR"


def _settings_problems(settings: Settings, config: ModelConfig) -> Iterator[str]:
    source_size, target_size = config.source_vocabulary_size, config.target_vocabulary_size
    named = [("source_prefix_ids", index, source_size) for index in settings.source_prefix_ids]
    named += [("suppressed_ids", index, target_size) for index in settings.suppressed_ids or ()]
    named += [("source_eos_id", index, source_size) for index in (settings.source_eos_id,) if index is not None]
    if settings.source_pad_id is not None:
        named += [("source_pad_id", settings.source_pad_id, source_size)]
        named += [("pad_id", _target_pad_id(settings, config), target_size)]
    for name, index, size in named:
        if index >= size:
            yield f"--config: {name} {index} is outside the vocabulary of {size}"
    limits = (
        ("max_source_tokens", settings.max_source_tokens, config.max_source_positions),
        ("max_output_tokens", settings.max_output_tokens, config.max_target_positions),
    )
    for name, limit, num_positions in limits:
        if limit is not None and limit > num_positions:
            yield f"--config: {name} is {limit}, the model has {num_positions} positions"


def _vocabulary_problems(
    settings: Settings, config: ModelConfig, source: Vocabulary, target: Vocabulary
) -> Iterator[str]:
    if source.kind != target.kind:
        yield f"--tokenizer is of kind {source.kind}, --target-tokenizer of kind {target.kind}; both must be of one"
    pad_id = _target_pad_id(settings, config)
    ids = {"pad_id": pad_id if settings.source_pad_id is None else settings.source_pad_id}
    if settings.source_eos_id is not None:
        ids["eos_id"] = settings.source_eos_id
    size = config.source_vocabulary_size
    for problem in misfits(source, size, ids, settings.source_prefix_ids, "source"):
        yield f"--tokenizer: {problem}"
    ids = {"pad_id": pad_id, "eos_id": config.eos_id, "unk_id": config.unk_id}
    others = [config.decoder_start_id]
    for problem in misfits(target, config.target_vocabulary_size, ids, others, "target"):
        yield f"--target-tokenizer: {problem}"


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
    files = {f"tokenizer{source.suffix}": source.file}
    if target is not source:
        files = {f"source{source.suffix}": source.file, f"target{target.suffix}": target.file}
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
