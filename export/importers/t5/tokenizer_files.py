"""The tokenizer of T5's checkpoints: a unigram model, in `tokenizer.json` or in the SentencePiece model behind it.

transformers 5 takes only pieces, scores, character map and added tokens from either and builds the rest itself
(`models/t5/tokenization_t5.py`). This module does the same, but for two things:

- It never gives unknown text the id 2, whatever that is: in MADLAD-400 it is the end of a sentence. Text without a
  piece becomes its UTF-8 bytes, where the model has pieces for these, as with SentencePiece; otherwise "<unk>".
- Texts never have special tokens, languages' tokens and byte pieces, even if they are spelled like them.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import Unigram

from export.importers.huggingface.json_tokenizer import (
    add_tokens,
    character_map,
    content_of,
    listed_tokens,
    refusals,
    unspelled,
)
from export.importers.huggingface.tokenizer_config import CONFIG_NAME, class_of, read_optional
from export.importers.json_file import read_json
from export.importers.sentencepiece_file import read_pieces
from service.bundle.manifest_parts import TokenizerSpec
from service.text.languages import is_well_formed

TOKENIZER_NAME = "tokenizer.json"
MODEL_NAME = "spiece.model"
_MODEL_CONFIG_NAME = "config.json"

_DEFAULTS = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
_CLASSES = ("T5Tokenizer", "MT5Tokenizer", "TokenizersBackend")  # the last one for UMT5, with the same files
_LANGUAGE = re.compile(r"<2(?P<code>[A-Za-z0-9_-]+)>")
_SENTINEL = re.compile(r"<extra_id_\d+>")
_SPACE = "▁"
_BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))


@dataclass(frozen=True, slots=True)
class T5Files:
    """The content of the files, and the tokenizer that is made of it.

    `size` is the highest id plus one; models have some more unused ids. `languages` maps the code of each language to
    the ids that precede a text to be translated into it, in models that have tokens for that, such as `<2de>`.
    """

    tokenizer: Tokenizer
    size: int
    pad_id: int
    eos_id: int
    unk_id: int
    languages: dict[str, tuple[int, ...]]
    cleans_up_spaces: bool

    def spec(self, decoder_start_id: int) -> TokenizerSpec:
        """Return the manifest's entry; `save` writes the file."""
        return TokenizerSpec(
            kind="tokenizers",
            file=TOKENIZER_NAME,
            pad_id=self.pad_id,
            eos_id=self.eos_id,
            unk_id=self.unk_id,
            decoder_start_id=decoder_start_id,
            cleans_up_spaces=self.cleans_up_spaces,
        )

    def save(self, destination: Path) -> None:
        """Write a `tokenizer.json`."""
        self.tokenizer.save(str(destination))

    def ids(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)


def read_t5(directory: Path) -> T5Files:
    """Read and check a checkpoint's tokenizer files."""
    problems: list[str] = []
    config = read_optional(directory / CONFIG_NAME, problems)
    class_of(directory, config, _CLASSES, problems)
    if problems:
        raise ValueError("; ".join(problems))
    path = directory / TOKENIZER_NAME
    if not path.exists() and (directory / MODEL_NAME).exists():
        path = directory / MODEL_NAME
    with refusals(path, "T5"):
        return _files(directory, *_read(path), config)


def _read(path: Path) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the relevant parts of a `tokenizer.json`, and the pieces that no text has."""
    if path.name == TOKENIZER_NAME:
        return read_json(path), frozenset()
    model = read_pieces(path)
    document = {
        "model": {"type": "Unigram", "vocab": list(zip(model.pieces, model.scores, strict=True))},
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(model.character_map).decode()},
        "added_tokens": [
            {"id": index, "content": piece, "special": True, "normalized": False}
            for index, piece in enumerate(model.pieces)
            if piece in model.special
        ],
    }
    return document, model.special


def _files(directory: Path, document: Mapping[str, Any], special: frozenset[str], config: Mapping[str, Any]) -> T5Files:
    tokenizer = _model(document, config)
    pieces: dict[str, int] = tokenizer.get_vocab(with_added_tokens=False)
    listed = [
        {**token, "special": bool(token.get("special")) or _language(content_of(token)) is not None}
        for token in listed_tokens(document["added_tokens"], config)
    ]
    add_tokens(tokenizer, listed, _further(config, pieces), defaults={})
    ids: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    languages = {code: text for text in ids if (code := _language(text))}
    tokenizer.add_special_tokens([*sorted(special), *languages.values()])
    unk_id = ids[_text(config, "unk_token")]
    return T5Files(
        tokenizer=unspelled(tokenizer),
        size=max(ids.values()) + 1,
        pad_id=_pad_id(directory, ids, _text(config, "pad_token")),
        eos_id=ids[_text(config, "eos_token")],
        unk_id=unk_id,
        languages={code: (ids.get(_SPACE, unk_id), ids[text]) for code, text in languages.items()},
        cleans_up_spaces=config.get("clean_up_tokenization_spaces") is True,
    )


def _model(document: Mapping[str, Any], config: Mapping[str, Any]) -> Tokenizer:
    """Return a tokenizer with the pieces, without added tokens."""
    model = document["model"]
    if model["type"] != "Unigram":
        raise ValueError(f"its model is {model['type']!r}, expected 'Unigram'")
    pieces = [(str(piece), float(score)) for piece, score in model["vocab"]]
    ids = {piece: index for index, (piece, _) in enumerate(pieces)}
    missing = [text for name in ("eos_token", "unk_token") if (text := _text(config, name)) not in ids]
    if missing:
        raise ValueError(f"it has no piece {' and no '.join(missing)}")
    falls_back = set(_BYTES) <= ids.keys()
    tokenizer = Tokenizer(Unigram(pieces, unk_id=ids[_text(config, "unk_token")], byte_fallback=falls_back))
    if charsmap := character_map(document.get("normalizer")):
        tokenizer.normalizer = normalizers.Precompiled(charsmap)
    decoder: Any = decoders.Metaspace(replacement=_SPACE, prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoder]) if falls_back else decoder
    spaces = pre_tokenizers.Metaspace(replacement=_SPACE, prepend_scheme="always", split=True)
    words = [pre_tokenizers.WhitespaceSplit(), spaces]
    bytes_apart = pre_tokenizers.Split(Regex("<(?=0x[0-9A-F]{2}>)"), "merged_with_previous")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*words, bytes_apart] if falls_back else words)
    return tokenizer


def _text(config: Mapping[str, Any], name: str) -> str:
    return content_of(config.get(name) or _DEFAULTS[name])


def _further(config: Mapping[str, Any], pieces: Mapping[str, int]) -> dict[str, Any]:
    """Return the settings of tokens that are not listed, but for padding and sentinels that the pieces lack."""
    given = [
        content_of(token)
        for token in config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    ]
    extra = [text for text in given if text in pieces or not _SENTINEL.fullmatch(text)]
    named = {name: text for name in _DEFAULTS if (text := _text(config, name)) in pieces}
    return {**named, "extra_special_tokens": extra}


def _language(text: str) -> str | None:
    """Return the code in the token of a target language: "de" for "<2de>"; `None` if `text` is not such a token."""
    found = _LANGUAGE.fullmatch(text)
    return found["code"] if found and is_well_formed(found["code"]) else None


def _pad_id(directory: Path, ids: Mapping[str, int], text: str) -> int:
    """Return the id of the padding token or, if there is none, of what the model takes instead."""
    padding = read_optional(directory / _MODEL_CONFIG_NAME, []).get("pad_token_id")
    return ids[text] if text in ids or not isinstance(padding, int) else padding
