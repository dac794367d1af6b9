"""The tokenizer file of NLLB checkpoints: a `tokenizer.json`, or the SentencePiece model that it was made from.

transformers 5 takes only the pieces, merges, character map and added tokens from it and builds the rest itself
(`models/nllb/tokenization_nllb.py`), so that files of all ages behave alike. This module does the same without
transformers.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from export.importers.huggingface.tokenizer_config import CONFIG_NAME, NAMED_TOKENS, check_class, read_optional
from export.importers.json_file import read_json
from export.importers.sentencepiece_file import read_pieces
from service.bundle.manifest_parts import TokenizerSpec
from service.text.languages import is_well_formed

TOKENIZER_NAME = "tokenizer.json"
MODEL_NAME = "sentencepiece.bpe.model"

_LANGUAGE = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
_DEFAULTS = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "cls_token": "<s>",
    "mask_token": "<mask>",
}


@dataclass(frozen=True, slots=True)
class NllbFiles:
    """The content of the file.

    `size` is the highest id plus one. `languages` maps each language's code, such as "eng_Latn", to the id of its
    token, which comes before a source in it and before a translation into it. `others` are added tokens that may be
    codes of languages or words, as they are not special.
    """

    size: int
    pad_id: int
    eos_id: int
    unk_id: int
    languages: dict[str, int]
    others: tuple[str, ...] = ()

    def spec(self, decoder_start_id: int) -> TokenizerSpec:
        """Return the manifest's entry; `write_nllb_tokenizer` writes the file."""
        return TokenizerSpec(
            kind="tokenizers",
            file=TOKENIZER_NAME,
            pad_id=self.pad_id,
            eos_id=self.eos_id,
            unk_id=self.unk_id,
            decoder_start_id=decoder_start_id,
        )


def is_nllb_language(token: str) -> bool:
    """Return whether a token is that of one of NLLB's languages, such as "eng_Latn"."""
    return _LANGUAGE.fullmatch(token) is not None


def read_nllb(directory: Path) -> NllbFiles:
    """Read and check a checkpoint's tokenizer files.

    Raises:
        ValueError: the file is missing, damaged or truncated, or requires a feature that this service does not support.
    """
    config = _config(directory)
    tokenizer = _build(directory, config)
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    ids = {name: vocabulary[_content(config.get(name) or default)] for name, default in _DEFAULTS.items()}
    added = tokenizer.get_added_tokens_decoder()
    languages = {
        token.content: index
        for index, token in added.items()
        if _LANGUAGE.fullmatch(token.content) or (token.special and is_well_formed(token.content))
    }
    words = [token.content for token in added.values() if is_well_formed(token.content)]
    if len(languages) < 2:
        raise ValueError(
            f"{TOKENIZER_NAME}: it has {len(languages)} tokens of languages, such as eng_Latn; expected two"
        )
    return NllbFiles(
        size=max(vocabulary.values()) + 1,
        pad_id=ids["pad_token"],
        eos_id=ids["eos_token"],
        unk_id=ids["unk_token"],
        languages=languages,
        others=tuple(word for word in words if word not in languages),
    )


def write_nllb_tokenizer(directory: Path, destination: Path) -> None:
    """Write to `destination` a `tokenizer.json` that behaves like the checkpoint's in transformers 5.

    Raises:
        ValueError: as for `read_nllb`.
    """
    _build(directory, _config(directory)).save(str(destination))


def _config(directory: Path) -> dict[str, Any]:
    problems: list[str] = []
    config = read_optional(directory / CONFIG_NAME, problems)
    check_class(directory, config, "NllbTokenizer", problems)
    if config.get("legacy_behaviour"):
        problems.append(f"{CONFIG_NAME}: legacy_behaviour (the language after the text) is not supported")
    if problems:
        raise ValueError("; ".join(problems))
    return config


def _build(directory: Path, config: Mapping[str, Any]) -> Tokenizer:
    path = directory / TOKENIZER_NAME
    if not path.exists() and (directory / MODEL_NAME).exists():
        path = directory / MODEL_NAME
    try:
        document = _converted(path) if path.name == MODEL_NAME else read_json(path)
        model = document["model"]
        if model["type"] != "BPE":
            raise ValueError(f"its model is {model['type']!r}, expected 'BPE'")
        merges: list[Any] = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in model["merges"]]
        unk_token = _content(config.get("unk_token") or _DEFAULTS["unk_token"])
        tokenizer = Tokenizer(BPE(vocab=model["vocab"], merges=merges, unk_token=unk_token, fuse_unk=True))
        if charsmap := _character_map(document.get("normalizer")):
            steps = [normalizers.Precompiled(base64.b64decode(charsmap)), normalizers.Replace(Regex(" {2,}"), " ")]
            tokenizer.normalizer = normalizers.Sequence(steps)
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
        tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
        for text, index in _add_tokens(tokenizer, document["added_tokens"], config).items():
            if tokenizer.token_to_id(text) != index:
                raise ValueError(f"{text!r} has the id {index}, but by its place {tokenizer.token_to_id(text)}")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # tokenizers raises plain Exceptions, and panics, which are BaseExceptions
        reason = " ".join(str(error).split())
        raise ValueError(f"{path.name}: it is not a tokenizer like NLLB's: {reason[:200]}") from error
    return tokenizer


def _converted(path: Path) -> dict[str, Any]:
    """Convert a SentencePiece model to `tokenizer.json`'s relevant parts: two pieces merge if they make a third."""
    model = read_pieces(path)
    first = (_DEFAULTS[name] for name in ("bos_token", "pad_token", "eos_token", "unk_token"))
    known = set(model.pieces)
    return {
        "model": {
            "type": "BPE",
            "vocab": {piece: index for index, piece in enumerate(dict.fromkeys([*first, *model.pieces]))},
            "merges": [
                (piece[:cut], piece[cut:])
                for piece in model.pieces
                for cut in range(1, len(piece))
                if piece[:cut] in known and piece[cut:] in known
            ],
        },
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(model.character_map).decode()},
        "added_tokens": [],
    }


def _add_tokens(tokenizer: Tokenizer, listed: list[dict[str, Any]], config: Mapping[str, Any]) -> dict[str, int]:
    """Add the special tokens in transformers' order; return the ids that the files assign to them."""
    if "added_tokens_decoder" in config:  # it takes precedence; the file's list may be outdated
        listed = [{"id": int(index), **token} for index, token in config["added_tokens_decoder"].items()]
    listed = sorted(listed, key=lambda token: int(token["id"]))
    settings = ("single_word", "lstrip", "rstrip", "normalized", "special")
    tokens = [
        AddedToken(token["content"], **{name: token[name] for name in settings if name in token}) for token in listed
    ]
    present = {token.content for token in tokens}
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    for token in [*(config.get(name) or _DEFAULTS[name] for name in NAMED_TOKENS), *extra]:
        text = _content(token)
        if text not in present:
            present.add(text)
            is_mask = text == _DEFAULTS["mask_token"]
            tokens.append(AddedToken(text, special=True, lstrip=is_mask, normalized=is_mask))
    tokenizer.add_tokens(tokens)
    return {token["content"]: token["id"] for token in listed}


def _character_map(normalizer: Any) -> str:
    """Return SentencePiece's character map from the normalizer, in base 64; empty if it has none."""
    steps = normalizer["normalizers"] if normalizer and normalizer["type"] == "Sequence" else [normalizer]
    return next((str(step["precompiled_charsmap"]) for step in steps if step and step["type"] == "Precompiled"), "")


def _content(token: Any) -> str:
    """Return a token's text, which files hold plain or with settings."""
    text = token.get("content") if isinstance(token, dict) else token
    if not isinstance(text, str):
        raise ValueError(f"{str(token)[:60]!r} stands where a special token is expected")
    return text
