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

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from export.importers.huggingface.json_tokenizer import (
    NAMED_DEFAULTS,
    add_tokens,
    character_map,
    content_of,
    merges_of,
    refusals,
)
from export.importers.huggingface.tokenizer_config import CONFIG_NAME, class_of, read_optional
from export.importers.json_file import read_json
from export.importers.sentencepiece_file import read_pieces
from service.bundle.manifest_parts import TokenizerSpec
from service.text.languages import is_well_formed

TOKENIZER_NAME = "tokenizer.json"
MODEL_NAME = "sentencepiece.bpe.model"

_LANGUAGE = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")


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
    """Read and check a checkpoint's tokenizer files."""
    config = _config(directory)
    tokenizer = _build(directory, config)
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    ids = {name: vocabulary[content_of(config.get(name) or default)] for name, default in NAMED_DEFAULTS.items()}
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
    """Write to `destination` a `tokenizer.json` that behaves like the checkpoint's in transformers 5."""
    _build(directory, _config(directory)).save(str(destination))


def _config(directory: Path) -> dict[str, Any]:
    problems: list[str] = []
    config = read_optional(directory / CONFIG_NAME, problems)
    class_of(directory, config, ("NllbTokenizer",), problems)
    if config.get("legacy_behaviour"):
        problems.append(f"{CONFIG_NAME}: legacy_behaviour (the language after the text) is not supported")
    if problems:
        raise ValueError("; ".join(problems))
    return config


def _build(directory: Path, config: Mapping[str, Any]) -> Tokenizer:
    path = directory / TOKENIZER_NAME
    if not path.exists() and (directory / MODEL_NAME).exists():
        path = directory / MODEL_NAME
    with refusals(path, "NLLB"):
        document = _converted(path) if path.name == MODEL_NAME else read_json(path)
        model = document["model"]
        if model["type"] != "BPE":
            raise ValueError(f"its model is {model['type']!r}, expected 'BPE'")
        unk_token = content_of(config.get("unk_token") or NAMED_DEFAULTS["unk_token"])
        merges = merges_of(model)
        tokenizer = Tokenizer(BPE(vocab=model["vocab"], merges=merges, unk_token=unk_token, fuse_unk=True))
        if charsmap := character_map(document.get("normalizer")):
            steps = [normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")]
            tokenizer.normalizer = normalizers.Sequence(steps)
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
        tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
        add_tokens(tokenizer, document["added_tokens"], config)
    return tokenizer


def _converted(path: Path) -> dict[str, Any]:
    """Convert a SentencePiece model to `tokenizer.json`'s relevant parts: two pieces merge if they make a third."""
    model = read_pieces(path)
    first = (NAMED_DEFAULTS[name] for name in ("bos_token", "pad_token", "eos_token", "unk_token"))
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
