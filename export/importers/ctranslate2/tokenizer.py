"""The tokenizer of a CTranslate2 model, whose folder has only the vocabulary: SentencePiece's model lies beside."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from export.importers import stored_file
from export.importers.ctranslate2.files import INNER, ModelFiles
from export.importers.ctranslate2.settings import Settings
from export.importers.ctranslate2.vocabulary import Vocabulary
from export.importers.huggingface.json_tokenizer import TOKENIZER_NAME as NLLB_NAME
from export.importers.huggingface.nllb_tokenizer import is_nllb_language, read_nllb
from export.importers.imported import TokenizerFile
from export.importers.listed_pieces import listed_pieces, other_model
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from service.bundle.manifest_parts import TokenizerSpec

_SUFFIXES = (".model", ".spm")
_SOURCE_NAMES, _TARGET_NAMES = ("source.spm", "source.model"), ("target.spm", "target.model")
_COMMON_NAMES = ("sentencepiece.model", "sentencepiece.bpe.model", "spiece.model", "shared.model")
_SUBWORD_NMT = "bpe.model"  # in Argos' packages: merges of subword-nmt, for texts that Moses' scripts split
_START = "<s>"  # of OpenNMT's targets


@dataclass(frozen=True, slots=True)
class ModelTokenizer:
    """The manifest's entry, and its files."""

    spec: TokenizerSpec
    files: Mapping[str, TokenizerFile]


def read_tokenizer(
    files: ModelFiles,
    vocabularies: tuple[Vocabulary, Vocabulary],
    settings: Settings,
    start_id: int,
    languages: Sequence[str],
    options: ImportOptions,
    problems: list[str],
) -> ModelTokenizer | None:
    """Return the tokenizer of these vocabularies, source and target; or `None`, and add why to `problems`."""
    source, target = vocabularies
    found = len(problems)
    if (
        options.tokenizer is None
        and files.is_folder
        and files.first(NLLB_NAME)
        and any(map(is_nllb_language, target.ids))
    ):
        return _of_nllb(files, target, start_id, problems)
    models = [_source_model(files, options, problems), _target_model(files, options, problems)]
    for data, vocabulary, where in zip(models, (source, target), ("source", "target"), strict=True):
        if data is not None:
            _check(data, vocabulary, where, problems)
    first, second = models
    if first is None or len(problems) > found:
        return None
    spec, written = listed_pieces(
        (first, second),
        (source.ids, target.ids),
        {"eos": settings.eos_token, "unk": settings.unk_token},
        [settings.bos_token, *languages],
        start_id,
        adds_source_eos=ends_sources(settings),
    )
    return ModelTokenizer(spec, written)


def _of_nllb(files: ModelFiles, target: Vocabulary, start_id: int, problems: list[str]) -> ModelTokenizer | None:
    """Return NLLB's own tokenizer, which transformers builds from a file of its own."""
    found = read_part("tokenizer", lambda: read_nllb(files.path), problems)
    if found is None:
        return None
    differing = [code for code, ids in found.languages.items() if (target.ids.get(code),) != ids]
    if differing or (found.spec.eos_id, found.spec.unk_id) != (target.ids.get("</s>"), target.ids.get("<unk>")):
        problems.append(
            f"{NLLB_NAME}: it has other ids than the vocabulary, such as those of {differing or 'unknowns'}"
        )
    return ModelTokenizer(dataclasses.replace(found.spec, decoder_start_id=start_id), found.written)


def ends_sources(settings: Settings) -> bool:
    """Return whether a source ends with the end of a sentence.

    CTranslate2 adds it, or the tokenizers of transformers do, whose models don't begin with `<s>`, as OpenNMT's do.
    """
    return settings.adds_source_eos or settings.start_token != _START


def _source_model(files: ModelFiles, options: ImportOptions, problems: list[str]) -> bytes | None:
    if options.tokenizer is not None:
        return _given(options.tokenizer, problems)
    name = files.first(*(f"{base}{each}" for each in (*_SOURCE_NAMES, *_COMMON_NAMES) for base in ("", INNER)))
    if name is None:
        others = [each for each in files.names if each.endswith(_SUFFIXES) and each != _SUBWORD_NMT]
        if len(others) != 1:
            problems.append(_missing(files, others))
            return None
        name = others[0]
    return read_part(name, lambda: files.read(name), problems)


def _missing(files: ModelFiles, others: Sequence[str]) -> str:
    if others:
        return f"it has {', '.join(others[:5])}; say with --tokenizer which one is the source's SentencePiece model"
    if files.first(_SUBWORD_NMT):
        return f"{_SUBWORD_NMT} is subword-nmt's, for texts that Moses' scripts split; only SentencePiece is supported"
    return "it has a vocabulary but no SentencePiece model; give the file with --tokenizer"


def _target_model(files: ModelFiles, options: ImportOptions, problems: list[str]) -> bytes | None:
    if options.target_tokenizer is not None:
        return _given(options.target_tokenizer, problems)
    name = files.first(*(f"{base}{each}" for each in _TARGET_NAMES for base in ("", INNER)))
    return None if name is None else read_part(name, lambda: files.read(name), problems)


def _given(path: Path, problems: list[str]) -> bytes | None:
    return read_part(str(path), lambda: stored_file.read(path), problems)


def _check(data: bytes, vocabulary: Vocabulary, where: str, problems: list[str]) -> None:
    what = f"the {where}'s SentencePiece model"
    if problem := read_part(what, lambda: other_model(data, vocabulary.ids), problems):
        problems.append(f"{what} {problem}")
