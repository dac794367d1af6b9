"""Imports CTranslate2's models, by themselves or in packages of Argos Translate, which LibreTranslate serves."""

import hashlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from export.architecture import ModelConfig
from export.architecture.stored import StoredModel
from export.importers.assembly import assemble
from export.importers.ctranslate2.architecture import TokenIds, check_spec, read_config, starts_from_zero
from export.importers.ctranslate2.container import read_container
from export.importers.ctranslate2.files import METADATA_NAME, MODEL_NAME, ModelFiles, open_files
from export.importers.ctranslate2.languages import Languages, read_languages
from export.importers.ctranslate2.reference import open_ctranslate2
from export.importers.ctranslate2.settings import Settings, read_settings
from export.importers.ctranslate2.tokenizer import read_tokenizer
from export.importers.ctranslate2.variables import Variables
from export.importers.ctranslate2.vocabulary import SHARED, SOURCE, SUFFIXES, TARGET, Vocabulary, read_vocabulary
from export.importers.ctranslate2.weights import our_weights
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.json_file import parse_json
from export.importers.model_card import CARD_NAME, UNKNOWN_LICENCE, stated_licence
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from service.bundle.manifest_parts import GenerationDefaults, Limits, directions
from service.domain.errors import shown

_CONFIG_NAME = "config.json"
_SHORTLIST_NAME = "vmap.txt"
MAX_SOURCE_TOKENS = 512  # as of transformers' models: longer texts should be split anyway
MAX_OUTPUT_TOKENS = 256  # CTranslate2's own default
# What `Translator.translate_batch` does if nothing is said, and what Argos Translate says. Both stop early.
DEFAULTS = GenerationDefaults(beam_size=2, length_penalty=1.0, stops_early=True)
DEFAULTS_OF_ARGOS = GenerationDefaults(beam_size=4, length_penalty=0.2, stops_early=True)


def import_ctranslate2(path: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a model, or a package with one; `options` name languages and a tokenizer that it lacks."""
    problems = options.unsuited("--tokenizer", "--target-tokenizer")
    try:
        files = open_files(path)
        data = files.read_model()
        variables = Variables(read_container(data))
    except ValueError as error:
        raise CheckpointError(path, [*problems, f"{MODEL_NAME}: {error}"]) from error
    found: list[str] = []
    check_spec(variables, found)
    metadata = _json(files, METADATA_NAME, found) if files.base else {}
    settings = read_settings(_json(files, f"{files.base}{_CONFIG_NAME}", found), variables, found)
    vocabularies = None if found else _vocabularies(files, settings, found)
    if vocabularies is None or found:
        raise CheckpointError(path, [*problems, *found])
    start_id = _start_id(variables, settings, vocabularies[1], problems)
    model = _model(variables, settings, vocabularies, start_id, problems)
    languages = read_languages(vocabularies, settings, metadata, options, problems)
    tokenizer = read_tokenizer(files, vocabularies, settings, start_id, languages.tokens, options, problems)
    if problems or model is None or tokenizer is None:
        raise CheckpointError(path, problems)
    generation = DEFAULTS_OF_ARGOS if metadata else DEFAULTS
    # Argos replaces an unknown token by a word of the source: it is no token that may be seen.
    suppressed = {tokenizer.spec.unk_id} if metadata else set[int]()
    if starts_from_zero(variables):
        suppressed.add(start_id)
    suppressed_ids = tuple(sorted(suppressed))
    reference = partial(
        open_ctranslate2, files, vocabularies, settings, generation.length_penalty, suppressed_ids=suppressed_ids
    )
    return ImportedCheckpoint(
        name=_named(path, metadata, languages),
        model=model,
        tokenizer=tokenizer.spec,
        tokenizer_files=tokenizer.files,
        languages=languages.pairs,
        any_to_any=languages.any_to_any,
        limits=_limits(model, languages),
        checkpoint_sha256=hashlib.sha256(data).hexdigest(),
        suppressed_ids=suppressed_ids,
        renormalizes=True,  # CTranslate2 changes scores before the softmax
        generation=generation,
        family="CTranslate2",
        licence=_licence(files, metadata),
        notes=_notes(files, variables),
        open_reference=reference,
    )


def _json(files: ModelFiles, name: str, problems: list[str]) -> Mapping[str, Any]:
    """Return a file's object; an empty one if it is missing, as with older models."""
    if files.first(name) is None:
        return {}
    return read_part(name, lambda: parse_json(files.read(name)), problems) or {}


def _vocabularies(files: ModelFiles, settings: Settings, problems: list[str]) -> tuple[Vocabulary, Vocabulary] | None:
    read = {}
    for stem in (SHARED, SOURCE, TARGET):
        name = files.first(*(f"{files.base}{stem}{suffix}" for suffix in SUFFIXES))
        if name is not None:
            read[stem] = read_part(name, partial(_vocabulary, files, name, settings), problems)
    if SHARED in read:
        read = dict.fromkeys((SOURCE, TARGET), read[SHARED])
    missing = [stem for stem in (SOURCE, TARGET) if stem not in read]
    problems += [f"{stem}.json or .txt is missing, and {SHARED}, which would do for both sides" for stem in missing]
    source, target = read.get(SOURCE), read.get(TARGET)
    if source is None or target is None:
        return None
    needed = [(source, SOURCE, settings.bos_token)] if settings.adds_source_bos else []
    needed += [(source, SOURCE, settings.eos_token)] if settings.adds_source_eos else []
    for vocabulary, stem, token in (*needed, (target, TARGET, settings.eos_token)):
        if token not in vocabulary.ids:
            problems.append(f"{stem} lacks {shown(token)}")
    return source, target


def _vocabulary(files: ModelFiles, name: str, settings: Settings) -> Vocabulary:
    return read_vocabulary(files.read(name), is_json=name.endswith(".json"), unk_token=settings.unk_token)


def _start_id(variables: Variables, settings: Settings, target: Vocabulary, problems: list[str]) -> int:
    """Return the id of the decoder's first token; of zeros, it follows the vocabulary."""
    if starts_from_zero(variables):
        return len(target.tokens)
    # Models between many languages whose callers say it begin with the end of a sentence (fairseq's M2M100).
    token = settings.eos_token if settings.start_token is None else settings.start_token
    if token not in target.ids:
        problems.append(f"decoder_start_token is {shown(token)}, which is not in the target's vocabulary")
    return target.ids.get(token, 0)


def _model(
    variables: Variables,
    settings: Settings,
    vocabularies: tuple[Vocabulary, Vocabulary],
    start_id: int,
    problems: list[str],
) -> StoredModel | None:
    faults = [*variables.refused()]
    model = None
    if not faults:
        source, target = vocabularies
        eos_id = target.ids[settings.eos_token]
        ids = TokenIds(min(eos_id, len(source.tokens) - 1), eos_id, target.ids[settings.unk_token], start_id)
        try:
            config = read_config(variables, settings, ids, faults)
            if config is not None:
                adds_start = starts_from_zero(variables)
                weights = our_weights(variables, config, faults, adds_start=adds_start)
                faults += _misfits(config, vocabularies, adds_start=adds_start)
                faults += variables.unread()
                model = assemble(config, weights, faults)
        except ValueError as error:  # a flag that is no number
            faults.append(str(error))
    problems += [f"{MODEL_NAME}: {fault}" for fault in faults]
    return model


def _misfits(config: ModelConfig, vocabularies: tuple[Vocabulary, Vocabulary], *, adds_start: bool) -> Iterator[str]:
    sizes = (config.source_vocabulary_size, config.target_vocabulary_size)
    added = (int(adds_start and config.share_embeddings), int(adds_start))
    for side, vocabulary, size, more in zip(("source", "target"), vocabularies, sizes, added, strict=True):
        if len(vocabulary.tokens) + more != size:
            yield f"it has {size - more} {side} tokens, the vocabulary {len(vocabulary.tokens)}"


def _named(path: Path, metadata: Mapping[str, Any], languages: Languages) -> str:
    if metadata and languages.pairs:
        pair = languages.pairs[0]
        return f"{pair.source_language_code}-{pair.target_language_code}"
    return path.resolve().name


def _limits(model: StoredModel, languages: Languages) -> Limits:
    config = model.config
    longest = max(len(pair.target_prefix_ids) for pair in directions(languages.pairs, languages.any_to_any))
    return Limits(
        min(config.max_source_positions, MAX_SOURCE_TOKENS),
        max(1, min(config.max_target_positions - 1 - longest, MAX_OUTPUT_TOKENS)),
    )


def _licence(files: ModelFiles, metadata: Mapping[str, Any]) -> str:
    for name in ("license", "licence"):
        if isinstance(metadata.get(name), str) and metadata[name].strip():
            return " ".join(str(metadata[name]).split())[:100]
    try:
        return stated_licence(files.read(CARD_NAME).decode("utf-8", "replace"))
    except ValueError:
        return UNKNOWN_LICENCE


def _notes(files: ModelFiles, variables: Variables) -> tuple[str, ...]:
    kinds = {each.kind for each in variables.stored.variables.values() if len(each.shape) > 1}
    notes = [f"its weights are in {'int8' if 'int8' in kinds else ' and '.join(sorted(kinds))}"]
    if files.first(f"{files.base}{_SHORTLIST_NAME}"):
        notes.append(f"{_SHORTLIST_NAME}, a shortlist that CTranslate2 uses only when it is asked to, is not used")
    return tuple(notes)
