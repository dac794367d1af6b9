"""M2M100, SMaLL-100 and NLLB-200: one model, between all its languages.

M2M100's tokenizer files are a SentencePiece model and the ids of its pieces.
"""

import dataclasses
import re
from functools import partial
from pathlib import Path

from export.importers.huggingface.bart_layout import M2M100
from export.importers.huggingface.family import Family, import_folder, many_to_many
from export.importers.huggingface.nllb_tokenizer import read_nllb
from export.importers.huggingface.tokenizer_config import CONFIG_NAME, class_of, read_optional, read_tokenizer_config
from export.importers.huggingface.tokenizer_files import (
    TokenizerFiles,
    check_model,
    copied,
    raise_if_any,
    read_vocabulary,
)
from export.importers.imported import ImportedCheckpoint
from export.importers.options import ImportOptions

MODEL_NAME = "sentencepiece.bpe.model"
VOCABULARY_NAME = "vocab.json"
SMALL100_CODE = "tokenization_small100.py"

_SMALL100 = "SMALL100Tokenizer"
_SMALL100_LAYERS = (12, 3)
_DEFAULTS = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}

_ADDED = re.compile(r"__(?P<code>[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*)__")  # a language that somebody added

# The tokens of these languages, in this order, have the ids after vocab.json's. From transformers 5.23,
# models/m2m_100/tokenization_m2m_100.py.
_LANGUAGES = {
    "m2m100": (
        "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu "
        "hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt "
        "ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
    ),
    "wmt21": "en ha is ja cs ru zh de",
}


def import_m2m100(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a folder; `options` may choose some pairs of its languages."""
    if _is_small100(directory):
        return import_small100(directory, options)
    imported = import_folder(directory, options, _FAMILY)
    config = imported.model.config
    # Only its tokenizer tells SMaLL-100 from M2M100.
    if _has_vocabulary(directory) and (config.num_encoder_layers, config.num_decoder_layers) == _SMALL100_LAYERS:
        note = "if this is SMaLL-100, give --from small100: its language tokens are in another place"
        return dataclasses.replace(imported, notes=(*imported.notes, note))
    return imported


def import_small100(directory: Path, options: ImportOptions) -> ImportedCheckpoint:
    return import_folder(directory, options, _SMALL100_FAMILY)


def read_m2m100(directory: Path, is_small100: bool = False) -> TokenizerFiles:
    """Read and check a checkpoint's tokenizer files. SMaLL-100 has the same ones, but a class of its own."""
    problems: list[str] = []
    check_model(directory / MODEL_NAME, problems)
    vocabulary = read_vocabulary(directory / VOCABULARY_NAME, problems)
    size, highest = len(vocabulary), max(vocabulary.values(), default=-1)
    if highest != size - 1:
        problems.append(f"{VOCABULARY_NAME}: it has {size} pieces, and ids up to {highest} instead of {size - 1}")
    config = read_tokenizer_config(directory, vocabulary, _DEFAULTS, problems)
    document = dict(config.document)
    if is_small100:
        document.pop("auto_map", None)  # names its code, which need not be run
    class_of(directory, document, ("M2M100Tokenizer", *([_SMALL100] if is_small100 else [])), problems)
    family = config.document.get("language_codes", "m2m100")
    if family not in _LANGUAGES:
        problems.append(f"language_codes is {str(family)[:60]!r}; known: {', '.join(_LANGUAGES)}")
    codes = _LANGUAGES.get(str(family), "").split()
    languages = {code: size + place for place, code in enumerate(codes)}
    problems += [
        f"the special token __{code}__ has the id {config.special_tokens[f'__{code}__']}, expected {index}"
        for code, index in languages.items()
        if config.special_tokens.get(f"__{code}__", index) != index
    ]
    raise_if_any(problems)
    added = ((_ADDED.fullmatch(text), index) for text, index in config.special_tokens.items())
    languages |= {found["code"]: index for found, index in added if found and found["code"] not in languages}
    size = max(*languages.values(), *config.special_tokens.values()) + 1
    spec = config.spec("m2m100", MODEL_NAME, vocabulary_file=VOCABULARY_NAME)
    return TokenizerFiles(
        spec=spec,
        written=copied(directory, spec),
        sizes=(size, size),
        languages={code: (index,) for code, index in languages.items()},
        place="both sides",
        first_ids=languages.values(),
    )


def _read_tokenizer(directory: Path, is_small100: bool = False) -> TokenizerFiles:
    files = read_m2m100(directory, is_small100) if _has_vocabulary(directory) else read_nllb(directory)
    return dataclasses.replace(files, place="target before source", first_ids=()) if is_small100 else files


def _has_vocabulary(directory: Path) -> bool:
    """Return whether there are files of M2M100, whose pieces have their ids in `vocab.json`; NLLB has no such file."""
    return (directory / VOCABULARY_NAME).exists()


def _is_small100(directory: Path) -> bool:
    """Return whether a folder holds SMaLL-100's code, which is not run, or names its class of tokenizers."""
    documents = [read_optional(directory / name, []) for name in (CONFIG_NAME, "config.json")]
    return (directory / SMALL100_CODE).exists() or any(
        document.get("tokenizer_class") == _SMALL100 or _SMALL100 in str(document.get("auto_map"))
        for document in documents
    )


_FAMILY = Family(M2M100, _read_tokenizer, many_to_many, first_ids=None)
# It puts only the target's language in front of a source.
_SMALL100_FAMILY = dataclasses.replace(_FAMILY, read_tokenizer=partial(_read_tokenizer, is_small100=True))
