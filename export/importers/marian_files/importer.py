"""Imports a folder with a model that Marian wrote, its vocabularies, and what tells its languages and settings."""

import dataclasses
import hashlib
from collections.abc import Mapping
from glob import escape
from pathlib import Path
from typing import Any

from export.importers import stored_file
from export.importers.assembly import assemble
from export.importers.files import find, only
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.json_file import read_json
from export.importers.marian_files.container import read_model
from export.importers.marian_files.decoder_settings import DECODER_NAME, DecoderSettings, read_decoder
from export.importers.marian_files.languages import METADATA_NAME, read_languages
from export.importers.marian_files.parameters import our_weights
from export.importers.marian_files.settings import TokenIds, read_config
from export.importers.marian_files.vocabularies import Vocabularies, read_vocabularies
from export.importers.model_card import UNKNOWN_LICENCE, licence_of
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from export.shortlist import MOST_LIST_BYTES, Shortlist, read_shortlist
from service.bundle.checksums import file_sha256
from service.bundle.manifest_parts import LanguagePair, Limits

_MOST_MODEL_BYTES = 2**31  # twice as much as a transformer-big in float32
_MODELS = ("model*.bin", "*.intgemm*.bin", "*.npz")
_OTHER_ARCHIVES = ("*.optimizer.npz",)
_SHORTLISTS = ("lex*.bin",)
_MOZILLA_LICENCE = "MPL-2.0"
_MAX_TOKENS = 512  # a cache row is reserved for every possible source token; longer texts should be split anyway
_MAX_LENGTH_FACTOR = 3.0  # Marian's own limit of an output
MAX_STUDENT_TOKENS = 128  # Firefox splits longer sentences: students have seen no longer ones
_STUDENT_FACTOR = 2.0  # Firefox's limit of the output


def import_marian_files(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; languages that its files don't tell come from `options`."""
    problems = options.unsuited()
    path, decoder = _model(directory, problems)
    metadata = _metadata(directory, problems)
    vocabularies = read_vocabularies(directory, decoder.vocabularies, problems)
    data = None if path is None else read_part(path.name, lambda: stored_file.read(path, _MOST_MODEL_BYTES), problems)
    if path is None or data is None or vocabularies is None:
        raise CheckpointError(directory, problems)
    digest = hashlib.sha256(data).hexdigest()
    expected = metadata.get("hash")
    if isinstance(expected, str) and expected not in (digest, file_sha256(path)):
        problems.append(
            f"{path.name} is not the model of {METADATA_NAME}: its SHA-256 is {digest}, not {expected[:64]}"
        )
    stored = read_part(path.name, lambda: read_model(data), problems)
    paths = (path, *vocabularies.paths)
    languages = read_languages(paths, metadata, vocabularies.target_prefixes, options, problems)
    model = None
    if stored is not None:
        faults: list[str] = []
        config = read_config(stored, TokenIds(vocabularies.spec.eos_id, vocabularies.spec.unk_id), faults)
        if config is not None:
            sizes = (config.source_vocabulary_size - 1, config.target_vocabulary_size - 1)
            faults += vocabularies.misfits(sizes)
            model = assemble(config, our_weights(stored, config, faults), faults)
        problems += [f"{path.name}: {fault}" for fault in faults]
    shortlist = _shortlist(directory, vocabularies, problems)
    if problems or model is None:
        raise CheckpointError(directory, problems)
    config = model.config
    is_student = config.autoregression == "ssru"
    factor = _STUDENT_FACTOR if is_student else _MAX_LENGTH_FACTOR
    limits = Limits(_MAX_TOKENS, _MAX_TOKENS)
    if is_student:
        limits = Limits(MAX_STUDENT_TOKENS, int(_STUDENT_FACTOR * MAX_STUDENT_TOKENS) + 16)
    never = {config.decoder_start_id} if decoder.allows_unknown else {config.unk_id, config.decoder_start_id}
    return ImportedCheckpoint(
        name=_name(directory, languages),
        model=model,
        tokenizer=dataclasses.replace(vocabularies.spec, decoder_start_id=config.decoder_start_id),
        tokenizer_files=vocabularies.files,
        languages=languages,
        limits=limits,
        checkpoint_sha256=digest,
        suppressed_ids=tuple(sorted(never)),
        generation=decoder.defaults(factor),
        notes=decoder.notes(),
        shortlist=shortlist,
        family="Marian student" if is_student else "Marian",
        licence=_licence(directory, metadata),
    )


def _model(directory: Path, problems: list[str]) -> tuple[Path | None, DecoderSettings]:
    """Return the model that `decoder.yml` names or else the only one, and the settings that belong to it."""
    decoder = read_decoder(directory / DECODER_NAME, problems)
    if named := find(directory, tuple(map(escape, decoder.models))):
        return named[0], decoder
    others = find(directory, _OTHER_ARCHIVES)
    path = only([each for each in find(directory, _MODELS) if each not in others], _MODELS, "model", problems)
    if path is not None and not (directory / DECODER_NAME).is_file():
        decoder = read_decoder(path.with_name(f"{path.name}.{DECODER_NAME}"), problems)
    return path, decoder


def _metadata(directory: Path, problems: list[str]) -> Mapping[str, Any]:
    path = directory / METADATA_NAME
    found = read_part(METADATA_NAME, lambda: read_json(path), problems) if path.exists() else None
    return found or {}


def _name(directory: Path, languages: tuple[LanguagePair, ...]) -> str:
    if len(languages) > 1:
        return directory.resolve().name
    return f"{languages[0].source_language_code}-{languages[0].target_language_code}"


def _shortlist(directory: Path, vocabularies: Vocabularies, problems: list[str]) -> Shortlist | None:
    found = find(directory, _SHORTLISTS)
    path = only(found, _SHORTLISTS, "shortlist", problems) if found else None
    if path is None:
        return None
    return read_part(
        path.name, lambda: read_shortlist(stored_file.read(path, MOST_LIST_BYTES), *vocabularies.sizes), problems
    )


def _licence(directory: Path, metadata: Mapping[str, Any]) -> str:
    stated = licence_of(directory)
    return _MOZILLA_LICENCE if stated == UNKNOWN_LICENCE and "modelConfig" in metadata else stated
