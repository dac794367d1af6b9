"""The tokenizer of T5's checkpoints: a unigram model, in `tokenizer.json` or in the SentencePiece model behind it.

transformers 5 takes only pieces, scores, character map and added tokens from either and builds the rest itself
(`models/t5/tokenization_t5.py`). This module does the same, but for two things:

- It never gives unknown text the id 2, whatever that is: in MADLAD-400 it is the end of a sentence. Text without a
  piece becomes its UTF-8 bytes, where the model has pieces for these, as with SentencePiece; otherwise "<unk>".
- Texts never have special tokens, languages' tokens and byte pieces, even if they are spelled like them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import Unigram

from export.importers.huggingface.json_tokenizer import (
    SPACE,
    TOKENIZER_NAME,
    add_tokens,
    character_map,
    content_of,
    converted,
    listed_tokens,
    model_of,
    refusals,
    scored_pieces,
    tokenizer_path,
    unspelled,
    use_metaspace,
)
from export.importers.huggingface.tokenizer_config import CONFIG_NAME, class_of, read_optional
from export.importers.huggingface.tokenizer_files import TokenizerFiles, raise_if_any
from export.importers.json_file import read_json
from export.importers.sentencepiece_file import read_pieces
from service.bundle.manifest_parts import TokenizerSpec
from service.text.languages import is_well_formed

MODEL_NAME = "spiece.model"
_MODEL_CONFIG_NAME = "config.json"

_DEFAULTS = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
_CLASSES = ("T5Tokenizer", "MT5Tokenizer", "TokenizersBackend")  # the last one for UMT5, with the same files
_LANGUAGE = re.compile(r"<2(?P<code>[A-Za-z0-9_-]+)>")
_SENTINEL = re.compile(r"<extra_id_\d+>")
_BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))


@dataclass(frozen=True, slots=True, kw_only=True)
class T5Files(TokenizerFiles):
    """The content of the files, and the tokenizer that is made of it."""

    tokenizer: Tokenizer

    def ids(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)


def read_t5(directory: Path) -> T5Files:
    """Read and check a checkpoint's tokenizer files.

    Languages are those that the model has tokens for, such as `<2de>`, to precede a text to be translated into them.
    """
    problems: list[str] = []
    config = read_optional(directory / CONFIG_NAME, problems)
    class_of(directory, config, _CLASSES, problems)
    raise_if_any(problems)
    path = tokenizer_path(directory, MODEL_NAME)
    with refusals(path, "T5"):
        return _files(directory, *_read(path), config)


def _read(path: Path) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the relevant parts of a `tokenizer.json`, and the pieces that no text has."""
    if path.name == TOKENIZER_NAME:
        return read_json(path), frozenset()
    model = read_pieces(path)
    parts = {"type": "Unigram", "vocab": list(zip(model.pieces, model.scores, strict=True))}
    added = [
        {"id": index, "content": piece, "special": True, "normalized": False}
        for index, piece in enumerate(model.pieces)
        if piece in model.special
    ]
    return converted(model, parts, added), model.special


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
    tokenizer = unspelled(tokenizer)
    size, eos_id, unk_id = max(ids.values()) + 1, ids[_text(config, "eos_token")], ids[_text(config, "unk_token")]
    return T5Files(
        spec=TokenizerSpec(
            kind="tokenizers",
            file=TOKENIZER_NAME,
            pad_id=_pad_id(directory, ids, _text(config, "pad_token")),
            eos_id=eos_id,
            unk_id=unk_id,
            decoder_start_id=eos_id,
            cleans_up_spaces=config.get("clean_up_tokenization_spaces") is True,
        ),
        written={TOKENIZER_NAME: lambda path: tokenizer.save(str(path))},
        sizes=(size, size),
        languages={code: (ids.get(SPACE, unk_id), ids[text]) for code, text in languages.items()},
        place="target before source",
        tokenizer=tokenizer,
    )


def _model(document: Mapping[str, Any], config: Mapping[str, Any]) -> Tokenizer:
    pieces = scored_pieces(model_of(document, "Unigram"))
    ids = {piece: index for index, (piece, _) in enumerate(pieces)}
    missing = [text for name in ("eos_token", "unk_token") if (text := _text(config, name)) not in ids]
    if missing:
        raise ValueError(f"it has no piece {' and no '.join(missing)}")
    falls_back = set(_BYTES) <= ids.keys()
    tokenizer = Tokenizer(Unigram(pieces, unk_id=ids[_text(config, "unk_token")], byte_fallback=falls_back))
    if charsmap := character_map(document.get("normalizer")):
        tokenizer.normalizer = normalizers.Precompiled(charsmap)
    use_metaspace(tokenizer)
    words = [pre_tokenizers.WhitespaceSplit(), tokenizer.pre_tokenizer]
    if falls_back:
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), tokenizer.decoder])
        words.append(pre_tokenizers.Split(Regex("<(?=0x[0-9A-F]{2}>)"), "merged_with_previous"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(words)
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
