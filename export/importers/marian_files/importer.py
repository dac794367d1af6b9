"""Imports a folder of Mozilla's or Bergamot's, or of any student that Marian trained: model, vocabularies, metadata."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export.importers.assembly import assemble
from export.importers.files import find
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.json_file import read_json
from export.importers.model_card import UNKNOWN_LICENCE, licence_of
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from export.importers.sentencepiece_file import SentencePieceFacts, facts_of
from export.importers.students import stored_file
from export.importers.students.container import read_model
from export.importers.students.parameters import TokenIds, our_weights, read_config
from export.shortlist import Shortlist, read_shortlist
from service.bundle.manifest_parts import GenerationDefaults, LanguagePair, Limits, TokenizerSpec
from service.text.languages import is_well_formed

METADATA_NAME = "metadata.json"
_MODELS = ("model*.bin", "*.intgemm*.bin", "model*.npz")
_SHORTLISTS = ("lex*.bin",)
_VOCABULARIES, _SOURCES, _TARGETS = ("vocab*.spm",), ("srcvocab*.spm",), ("trgvocab*.spm",)
_PAIR = re.compile(r"\.([a-z]{2,3})-?([a-z]{2,3})\.")  # of a name such as model.ende.intgemm.alphas.bin
_MOZILLA_LICENCE = "MPL-2.0"
MAX_SOURCE_TOKENS = 128  # Firefox splits longer sentences: students have seen no longer ones
MAX_LENGTH_RATIO = 2.0  # Firefox's limit of the output
_MAX_OUTPUT_TOKENS = int(MAX_LENGTH_RATIO * MAX_SOURCE_TOKENS) + 16


def import_student(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; languages that neither `metadata.json` nor the model's name tells come from `options`.

    Raises:
        CheckpointError: it can't be converted; all problems are listed.
    """
    problems = options.without_files()
    path = _one(directory, _MODELS, "model", problems)
    metadata = _metadata(directory, problems)
    vocabularies = _vocabularies(directory, problems)
    data = None if path is None else read_part(path.name, lambda: stored_file.read(path), problems)
    if path is None or data is None or vocabularies is None:
        raise CheckpointError(directory, problems)
    digest = hashlib.sha256(data).hexdigest()
    expected = metadata.get("hash")
    if isinstance(expected, str) and expected not in (digest, hashlib.sha256(path.read_bytes()).hexdigest()):
        problems.append(
            f"{path.name} is not the model of {METADATA_NAME}: its SHA-256 is {digest}, not {expected[:64]}"
        )
    stored = read_part(path.name, lambda: read_model(data), problems)
    languages = _languages(path, metadata, options, problems)
    model = None
    if stored is not None:
        ids = TokenIds(vocabularies.target.facts.eos_id, vocabularies.target.facts.unk_id)
        faults: list[str] = []
        config = read_config(stored, ids, faults)
        if config is not None:
            sizes = (config.source_vocabulary_size - 1, config.target_vocabulary_size - 1)
            faults += vocabularies.misfits(sizes)
            model = assemble(config, our_weights(stored, config, faults), faults)
        problems += [f"{path.name}: {fault}" for fault in faults]
    shortlist = _shortlist(directory, vocabularies, problems)
    if problems or model is None or languages is None:
        raise CheckpointError(directory, problems)
    start_id = model.config.decoder_start_id
    return ImportedCheckpoint(
        name=f"{languages.source_language_code}-{languages.target_language_code}",
        model=model,
        tokenizer=vocabularies.spec(start_id),
        tokenizer_files=vocabularies.files(),
        languages=(languages,),
        limits=Limits(MAX_SOURCE_TOKENS, _MAX_OUTPUT_TOKENS),
        checkpoint_sha256=digest,
        suppressed_ids=tuple(sorted({model.config.unk_id, start_id})),
        generation=GenerationDefaults(options={"max_length_ratio": MAX_LENGTH_RATIO}),
        shortlist=shortlist,
        family="Marian student",
        licence=_licence(directory, metadata),
    )


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    path: Path
    data: bytes
    facts: SentencePieceFacts

    @property
    def name(self) -> str:
        return stored_file.plain_name(self.path)

    def write(self, path: Path) -> None:
        path.write_bytes(self.data)


@dataclass(frozen=True, slots=True)
class _Vocabularies:
    """Both sides' vocabularies, which may be one."""

    source: _Vocabulary
    target: _Vocabulary

    def spec(self, decoder_start_id: int) -> TokenizerSpec:
        return TokenizerSpec(
            kind="sentencepiece",
            file=self.source.name,
            pad_id=self.target.facts.eos_id,
            eos_id=self.target.facts.eos_id,
            unk_id=self.target.facts.unk_id,
            decoder_start_id=decoder_start_id,
            target_file="" if self.target is self.source else self.target.name,
            source_eos_id=self.source.facts.eos_id,
            reserved_symbols=self.source.facts.reserved_symbols,
        )

    def files(self) -> Mapping[str, Callable[[Path], None]]:
        return {each.name: each.write for each in (self.source, self.target)}

    def misfits(self, sizes: tuple[int, int]) -> list[str]:
        """Return a problem for each side whose pieces are not those of the embedding."""
        return [
            f"it has {size} tokens, {each.path.name} has {each.facts.size}"
            for each, size in zip((self.source, self.target), sizes, strict=True)
            if each.facts.size != size
        ]


def _vocabularies(directory: Path, problems: list[str]) -> _Vocabularies | None:
    if find(directory, _VOCABULARIES):
        both = _vocabulary(directory, _VOCABULARIES, problems)
        return None if both is None else _Vocabularies(both, both)
    source, target = (_vocabulary(directory, patterns, problems) for patterns in (_SOURCES, _TARGETS))
    return None if source is None or target is None else _Vocabularies(source, target)


def _vocabulary(directory: Path, patterns: tuple[str, ...], problems: list[str]) -> _Vocabulary | None:
    path = _one(directory, patterns, "vocabulary", problems)
    data = None if path is None else read_part(path.name, lambda: stored_file.read(path), problems)
    if path is None or data is None:
        return None
    facts = read_part(path.name, lambda: facts_of(data), problems)
    if facts is None:
        return None
    if facts.eos_id < 0 or facts.unk_id < 0:
        problems.append(f"{path.name} has no piece for the end of a sentence, or none for unknown text")
        return None
    return _Vocabulary(path, data, facts)


def _shortlist(directory: Path, vocabularies: _Vocabularies, problems: list[str]) -> Shortlist | None:
    if not find(directory, _SHORTLISTS):
        return None
    path = _one(directory, _SHORTLISTS, "shortlist", problems)
    if path is None:
        return None
    sizes = vocabularies.source.facts.size, vocabularies.target.facts.size
    return read_part(path.name, lambda: read_shortlist(stored_file.read(path), *sizes), problems)


def _one(directory: Path, patterns: tuple[str, ...], what: str, problems: list[str]) -> Path | None:
    found = find(directory, patterns)
    if len(found) == 1:
        return found[0]
    names = ", ".join(path.name for path in found[:5])
    problems.append(
        f"it has {len(found)} files of a {what} ({names}); keep one"
        if found
        else f"it has no {what}; expected is {' or '.join(patterns)}, or one of these with .gz or .zst"
    )
    return None


def _metadata(directory: Path, problems: list[str]) -> Mapping[str, Any]:
    path = directory / METADATA_NAME
    found = read_part(METADATA_NAME, lambda: read_json(path), problems) if path.exists() else None
    return found or {}


def _languages(
    path: Path, metadata: Mapping[str, Any], options: ImportOptions, problems: list[str]
) -> LanguagePair | None:
    named = _PAIR.search(path.name)
    codes = []
    for side, given, from_name in (
        ("source", options.source_language, named[1] if named else None),
        ("target", options.target_language, named[2] if named else None),
    ):
        code = given or metadata.get(f"{side}Language") or from_name
        if not isinstance(code, str) or not is_well_formed(code):
            problems.append(
                f"neither {METADATA_NAME} nor the model's name tells the {side} language; give --{side}-language"
            )
        else:
            codes.append(code)
    if len(codes) < 2:
        return None
    source, target = codes
    return LanguagePair(source, target)


def _licence(directory: Path, metadata: Mapping[str, Any]) -> str:
    """Return the licence that the card states, or that of all of Mozilla's models, which have metadata."""
    stated = licence_of(directory)
    return _MOZILLA_LICENCE if stated == UNKNOWN_LICENCE and "modelConfig" in metadata else stated
