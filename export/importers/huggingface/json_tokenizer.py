"""The parts of a `tokenizer.json` that transformers 5 takes from a folder; its classes build the rest themselves.

It takes pieces, merges, the character map and the added tokens (`convert_to_native_format` and `TokenizersBackend` of
`tokenization_utils_tokenizers.py`), so that files of all ages behave alike.
"""

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

from export.importers.huggingface.tokenizer_config import NAMED_TOKENS

# The tokens that classes of fairseq's models name.
NAMED_DEFAULTS = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "cls_token": "<s>",
    "mask_token": "<mask>",
}
_SETTINGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


@contextlib.contextmanager
def refusals(path: Path, kind: str) -> Iterator[None]:
    """Turn any exception into a `ValueError` of one line: the file is not a tokenizer like that of `kind`."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # tokenizers raises plain Exceptions, and panics, which are BaseExceptions
        reason = " ".join(str(error).split())
        raise ValueError(f"{path.name}: it is not a tokenizer like {kind}'s: {reason[:200]}") from error


def listed_tokens(listed: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tokens that files add, by id: those of `tokenizer_config.json`, which are newer, or else `listed`."""
    if "added_tokens_decoder" in config:
        listed = [{"id": int(index), **token} for index, token in config["added_tokens_decoder"].items()]
    return sorted(listed, key=lambda token: int(token["id"]))


def add_tokens(
    tokenizer: Tokenizer,
    listed: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any],
    further: Sequence[str] = (),
    defaults: Mapping[str, str] = NAMED_DEFAULTS,
) -> None:
    """Add the special tokens in transformers' order: those that a file lists, named ones, extra ones and `further`.

    `config` is the content of `tokenizer_config.json`, `defaults` are the tokens that the class names.
    """
    listed = listed_tokens(listed, config)
    tokens = [
        AddedToken(token["content"], **{name: token[name] for name in _SETTINGS if name in token}) for token in listed
    ]
    present = {token.content for token in tokens}
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    named = (config.get(name) or defaults.get(name) for name in NAMED_TOKENS)
    for token in [*filter(None, named), *extra, *further]:
        text = content_of(token)
        if text not in present:
            present.add(text)
            is_mask = text == defaults.get("mask_token")
            tokens.append(AddedToken(text, special=True, lstrip=is_mask, normalized=is_mask))
    tokenizer.add_tokens(tokens)
    for token in listed:
        text, index = token["content"], token["id"]
        if tokenizer.token_to_id(text) != index:
            raise ValueError(f"{text!r} has the id {index}, but by its place {tokenizer.token_to_id(text)}")


def unspelled(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer with names of special tokens that no text can spell: the texts' pieces never have a space.

    Unigram prefers a piece of score 0, as they have, to all others, whatever is asked: a caller's "</s>" would end the
    source.
    """
    document = json.loads(tokenizer.to_str())
    special = {token["content"] for token in document["added_tokens"] if token["special"]}
    for token in document["added_tokens"]:
        if token["special"]:
            token |= {"content": token["content"] + " ", "normalized": False}
    pieces = document["model"]["vocab"]
    document["model"]["vocab"] = [[f"{piece} " if piece in special else piece, score] for piece, score in pieces]
    changed = Tokenizer.from_str(json.dumps(document, ensure_ascii=False))
    changed.encode_special_tokens = True  # their names as texts, too, which is not saved
    return changed


def character_map(normalizer: Any) -> bytes:
    """Return SentencePiece's character map from a file's normalizer; empty if it has none."""
    steps = normalizer["normalizers"] if normalizer and normalizer["type"] == "Sequence" else [normalizer]
    found = (step["precompiled_charsmap"] for step in steps if step and step["type"] == "Precompiled")
    return base64.b64decode(next(found, ""))


def merges_of(model: Mapping[str, Any]) -> list[Any]:
    """Return the pairs of a BPE model, which older files hold as texts."""
    return [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in model["merges"]]


def content_of(token: Any) -> str:
    """Return a token's text, which files hold plain or with settings."""
    text = token.get("content") if isinstance(token, dict) else token
    if not isinstance(text, str):
        raise ValueError(f"{str(token)[:60]!r} stands where a special token is expected")
    return text
