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

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers

from export.importers.huggingface.tokenizer_config import NAMED_TOKENS
from export.importers.sentencepiece_file import SentencePieces
from service.bundle.manifest_parts import TokenizerSpec

TOKENIZER_NAME = "tokenizer.json"
SPACE = "▁"

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


def tokenizer_path(directory: Path, origin: str) -> Path:
    """Return the path of `tokenizer.json`, or of the file that it was made from if only that is there."""
    path = directory / TOKENIZER_NAME
    return directory / origin if not path.exists() and (directory / origin).exists() else path


def model_of(document: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return the model of a `tokenizer.json`, which must be of a kind such as "BPE"."""
    model: Mapping[str, Any] = document["model"]
    if model["type"] != kind:
        raise ValueError(f"its model is {model['type']!r}, expected {kind!r}")
    return model


def scored_pieces(model: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [(str(piece), float(score)) for piece, score in model["vocab"]]


def converted(model: SentencePieces, parts: Mapping[str, Any], added: Sequence[Any] = ()) -> dict[str, Any]:
    """Return a SentencePiece model as the relevant parts of a `tokenizer.json`, of which `parts` are its model's."""
    charsmap = base64.b64encode(model.character_map).decode()
    return {
        "model": parts,
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap},
        "added_tokens": added,
    }


def use_metaspace(tokenizer: Tokenizer) -> None:
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always", split=True)


def single_spaces() -> normalizers.Normalizer:
    return normalizers.Replace(Regex(" {2,}"), " ")


def named_ids(tokenizer: Tokenizer, config: Mapping[str, Any]) -> dict[str, int]:
    """Return the ids of the special tokens that classes of fairseq's models name, by the name in their settings."""
    ids = tokenizer.get_vocab(with_added_tokens=True)
    return {name: ids[content_of(config.get(name) or default)] for name, default in NAMED_DEFAULTS.items()}


def json_spec(ids: Mapping[str, int], **more: Any) -> TokenizerSpec:
    """Return the manifest's entry, with `more` of its fields; the model says later what translations start from."""
    return TokenizerSpec(
        kind="tokenizers",
        file=TOKENIZER_NAME,
        pad_id=ids["pad_token"],
        eos_id=ids["eos_token"],
        unk_id=ids["unk_token"],
        decoder_start_id=ids["eos_token"],
        **more,
    )


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
    """Add special tokens in transformers' order: those that a file lists, named ones, extra ones and `further`."""
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
            raise ValueError(f"{text!r} has the id {index}, but {tokenizer.token_to_id(text)} by its position")


def unspelled(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer with names of special tokens that no text can spell: the texts' pieces never have a space.

    Unigram prefers their score of 0 to all others, whatever is asked: a caller's "</s>" would end the source.
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
        raise ValueError(f"expected a special token, not {str(token)[:60]!r}")
    return text
