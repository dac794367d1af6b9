"""The tokenizer files of PLBart: a SentencePiece model whose pieces have other ids (transformers, `models/plbart`)."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from export.importers.huggingface.json_tokenizer import NAMED_DEFAULTS
from export.importers.huggingface.tokenizer_config import CONFIG_NAME
from export.importers.huggingface.tokenizer_files import TokenizerFiles
from export.importers.sentencepiece_file import read_pieces
from service.bundle.manifest_parts import TokenizerSpec

MODEL_NAME = "sentencepiece.bpe.model"
VOCABULARY_NAME = "vocab.json"
_FIRST = ("<s>", "<pad>", "</s>", "<unk>")  # in place of the model's own three
_NUM_SPECIAL = 3
_LANGUAGES = {  # in the order of their ids, which follow the pieces'
    "base": ("java", "python", "en_XX"),
    "multi": ("java", "python", "en_XX", "javascript", "php", "ruby", "go"),
}


def read_plbart(directory: Path, config: Mapping[str, Any]) -> TokenizerFiles:
    """Read the files, where a source's language follows its end; `config` is `tokenizer_config.json`'s content."""
    family = config.get("language_codes", "base")
    if family not in _LANGUAGES:
        raise ValueError(f"{CONFIG_NAME}: language_codes is {str(family)[:60]!r}; known: {', '.join(_LANGUAGES)}")
    named = {name: config.get(name) or text for name, text in NAMED_DEFAULTS.items()}
    other = next((name for name, text in NAMED_DEFAULTS.items() if named[name] != text), None)
    if other is not None:
        raise ValueError(f"{CONFIG_NAME}: {other} is {str(named[other])[:60]!r}; supported: {NAMED_DEFAULTS[other]}")
    try:
        pieces = read_pieces(directory / MODEL_NAME).pieces[_NUM_SPECIAL:]
    except ValueError as error:
        raise ValueError(f"{MODEL_NAME}: {error}") from error
    marks = [f"__{language}__" for language in _LANGUAGES[family]]
    last = [*marks, "<mask>"] if family == "base" else marks
    special = {text: index for index, text in enumerate(_FIRST)}
    special |= {text: len(_FIRST) + len(pieces) + place for place, text in enumerate(last)}
    languages = {language.split("_")[0]: mark for language, mark in zip(_LANGUAGES[family], marks, strict=True)}
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    if strange := [text for text in extra if text not in special]:
        raise ValueError(f"{CONFIG_NAME}: the special token {str(strange[0])[:60]!r} is not supported")
    source = str(config.get("src_lang") or "").strip("_").split("_")[0]
    vocabulary = {piece: len(_FIRST) + place for place, piece in enumerate(pieces)} | special
    size = max(vocabulary.values()) + 1
    return TokenizerFiles(
        spec=TokenizerSpec(
            kind="m2m100",
            file=MODEL_NAME,
            pad_id=special["<pad>"],
            eos_id=special["</s>"],
            unk_id=special["<unk>"],
            decoder_start_id=special["</s>"],
            vocabulary_file=VOCABULARY_NAME,
            special_tokens=special,
            cleans_up_spaces=config.get("clean_up_tokenization_spaces", True) is True,
        ),
        written={MODEL_NAME: directory / MODEL_NAME, VOCABULARY_NAME: partial(_write, vocabulary)},
        sizes=(size, size),
        languages={code: (special[mark],) for code, mark in languages.items()},
        place="after source",
        source=source if source in languages else "",
        first_ids=[special[mark] for mark in languages.values()],
    )


def _write(vocabulary: Mapping[str, int], destination: Path) -> None:
    destination.write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
