"""What transformers takes from a `tokenizer.json` and its companions for tokenizers that it builds itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from tokenizers import AddedToken, Tokenizer

from export.importers.huggingface.tokenizer_config import NAMED_TOKENS


def listed_tokens(document: Mapping[str, Any], config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the added tokens, by id, of `tokenizer.json` and `tokenizer_config.json`; the latter takes precedence."""
    listed = document["added_tokens"]
    if "added_tokens_decoder" in config:
        listed = [{"id": int(index), **token} for index, token in config["added_tokens_decoder"].items()]
    return sorted(listed, key=lambda token: int(token["id"]))


def add_tokens(
    tokenizer: Tokenizer, listed: Sequence[Mapping[str, Any]], config: Mapping[str, Any], defaults: Mapping[str, str]
) -> None:
    """Add `listed_tokens`, and then the special ones of `tokenizer_config.json`, in transformers' order.

    `defaults` are the texts of the class's named tokens.

    Raises:
        ValueError: one does not get the id that it is listed with.
    """
    settings = ("single_word", "lstrip", "rstrip", "normalized", "special")
    ids = {token["content"]: token["id"] for token in listed}
    tokens = [
        AddedToken(token["content"], **{name: token[name] for name in settings if name in token}) for token in listed
    ]
    present = set(ids)
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    named = (config.get(name) or defaults.get(name) for name in NAMED_TOKENS)
    for token in [*filter(None, named), *extra]:
        text = content(token)
        if text not in present:
            present.add(text)
            is_mask = text == defaults.get("mask_token")
            tokens.append(AddedToken(text, special=True, lstrip=is_mask, normalized=is_mask))
    tokenizer.add_tokens(tokens)
    for text, index in ids.items():
        if tokenizer.token_to_id(text) != index:
            raise ValueError(f"{text!r} has the id {index}, but by its place {tokenizer.token_to_id(text)}")


def character_map(normalizer: Any) -> str:
    """Return SentencePiece's character map from the normalizer, in base 64; empty if it has none."""
    steps = normalizer["normalizers"] if normalizer and normalizer["type"] == "Sequence" else [normalizer]
    return next((str(step["precompiled_charsmap"]) for step in steps if step and step["type"] == "Precompiled"), "")


def content(token: Any) -> str:
    """Return a token's text, which files hold plain or with settings."""
    text = token.get("content") if isinstance(token, dict) else token
    if not isinstance(text, str):
        raise ValueError(f"{str(token)[:60]!r} stands where a special token is expected")
    return text
