"""Imports a bare state dict of a notebook's Transformer, accompanied by `--config`, tokenizers and languages."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from export.architecture import ModelConfig
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.notebook.config import NotebookConfig, read_config
from export.importers.notebook.model import build_model
from export.importers.notebook.state_dict import find_state_dict, read_state_dict
from export.importers.notebook.vocabulary import Vocabulary, misfits, read_vocabulary
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from service.bundle.checksums import file_sha256
from service.bundle.manifest_parts import GenerationDefaults, LanguagePair, Limits, TokenizerSpec
from service.text.languages import is_well_formed

T = TypeVar("T")


def import_notebook(path: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a state dict's file, or a folder that contains one, and the files that `options` name."""
    problems = [*_language_problems(options), *options.unsuited("--config", "--tokenizer", "--target-tokenizer")]
    file = read_part(path.name, lambda: find_state_dict(path), problems)
    weights = None if file is None else read_part("the state dict", lambda: read_state_dict(file), problems)
    config = _read("--config", options.config, lambda given: read_config(given, problems), problems)
    source = _read("--tokenizer", options.tokenizer, read_vocabulary, problems)
    target = source
    if options.target_tokenizer is not None:
        target = _read("--target-tokenizer", options.target_tokenizer, read_vocabulary, problems)
    model_config, model = (None, None) if config is None else build_model(config, weights, problems)
    if config is not None and model_config is not None:
        problems += _config_problems(config, model_config)
        if source is not None and target is not None:
            problems += _vocabulary_problems(config, model_config, source, target)
    if problems or file is None or config is None or source is None or model is None:
        raise CheckpointError(path, problems)
    spec, tokenizer_files = _tokenizer(config, model.config, options, source)
    return ImportedCheckpoint(
        name=config.name or path.stem,
        model=model,
        tokenizer=spec,
        tokenizer_files=tokenizer_files,
        languages=(LanguagePair(options.source_language, options.target_language, config.source_prefix_ids),),
        limits=Limits(
            config.max_source_tokens or model.config.max_source_positions,
            config.max_output_tokens or model.config.max_target_positions,
        ),
        checkpoint_sha256=file_sha256(file),
        suppressed_ids=_suppressed_ids(config, model.config),
        generation=GenerationDefaults(config.beam_size, config.length_penalty),
        family="notebook",
        licence=config.licence,
    )


def _read(flag: str, path: Path | None, read: Callable[[Path], T], problems: list[str]) -> T | None:
    if path is None:
        problems.append(f"{flag} is missing, which a state dict needs beside it")
        return None
    if not path.is_file():
        problems.append(f"{flag} {path} is not a file")
        return None
    return read_part(f"{flag} {path.name}", lambda: read(path), problems)


def _language_problems(options: ImportOptions) -> Iterator[str]:
    for flag, code in (("--source-language", options.source_language), ("--target-language", options.target_language)):
        if not code:
            yield f"{flag} is missing, which a state dict needs beside it"
        elif not is_well_formed(code):
            yield f"{flag} is {code!r}, expected a code such as en or pt-BR"


def _config_problems(config: NotebookConfig, model_config: ModelConfig) -> Iterator[str]:
    source_size, target_size = model_config.source_vocabulary_size, model_config.target_vocabulary_size
    named = [("source_prefix_ids", index, source_size) for index in config.source_prefix_ids]
    named += [("suppressed_ids", index, target_size) for index in config.suppressed_ids or ()]
    named += [("source_eos_id", index, source_size) for index in (config.source_eos_id,) if index is not None]
    if config.source_pad_id is not None:
        named += [("source_pad_id", config.source_pad_id, source_size)]
        named += [("pad_id", _target_pad_id(config, model_config), target_size)]
    for name, index, size in named:
        if index >= size:
            yield f"--config: {name} {index} is outside the vocabulary of {size}"
    limits = (
        ("max_source_tokens", config.max_source_tokens, model_config.max_source_positions),
        ("max_output_tokens", config.max_output_tokens, model_config.max_target_positions),
    )
    for name, limit, num_positions in limits:
        if limit is not None and limit > num_positions:
            yield f"--config: {name} is {limit}, the model has {num_positions} positions"


def _vocabulary_problems(
    config: NotebookConfig, model_config: ModelConfig, source: Vocabulary, target: Vocabulary
) -> Iterator[str]:
    if source.kind != target.kind:
        yield f"--tokenizer is of kind {source.kind}, --target-tokenizer of kind {target.kind}; both must be of one"
    pad_id = _target_pad_id(config, model_config)
    ids = {"pad_id": pad_id if config.source_pad_id is None else config.source_pad_id}
    if config.source_eos_id is not None:
        ids["eos_id"] = config.source_eos_id
    size = model_config.source_vocabulary_size
    for problem in misfits(source, size, ids, config.source_prefix_ids, "source"):
        yield f"--tokenizer: {problem}"
    ids = {"pad_id": pad_id, "eos_id": model_config.eos_id, "unk_id": model_config.unk_id}
    others = [model_config.decoder_start_id]
    for problem in misfits(target, model_config.target_vocabulary_size, ids, others, "target"):
        yield f"--target-tokenizer: {problem}"


def _tokenizer(
    config: NotebookConfig, model_config: ModelConfig, options: ImportOptions, vocabulary: Vocabulary
) -> tuple[TokenizerSpec, dict[str, Path]]:
    assert options.tokenizer is not None
    names = [f"tokenizer{vocabulary.suffix}"]
    if options.target_tokenizer is not None:
        names = [f"source{vocabulary.suffix}", f"target{vocabulary.suffix}"]
    paths = [path for path in (options.tokenizer, options.target_tokenizer) if path is not None]
    spec = TokenizerSpec(
        kind=vocabulary.kind,
        file=names[0],
        pad_id=model_config.pad_id,
        eos_id=model_config.eos_id,
        unk_id=model_config.unk_id,
        decoder_start_id=model_config.decoder_start_id,
        target_file="".join(names[1:]),
        source_eos_id=None if config.source_eos_id == model_config.eos_id else config.source_eos_id,
        adds_source_eos=config.source_eos_id is not None,
    )
    return spec, dict(zip(names, paths, strict=True))


def _suppressed_ids(config: NotebookConfig, model_config: ModelConfig) -> tuple[int, ...]:
    """Return the ids that are never generated: those without text, unless the user overrides them."""
    if config.suppressed_ids is not None:
        return tuple(sorted(set(config.suppressed_ids)))
    special = {_target_pad_id(config, model_config), model_config.unk_id, model_config.decoder_start_id}
    return tuple(sorted(special - {model_config.eos_id}))


def _target_pad_id(config: NotebookConfig, model_config: ModelConfig) -> int:
    """Return the target's own id; `ModelConfig` keeps the smaller of both sides'."""
    said = config.model.get("pad_id")
    return said if isinstance(said, int) else model_config.pad_id
