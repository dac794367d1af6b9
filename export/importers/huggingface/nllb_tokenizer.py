"""The tokenizer file of NLLB checkpoints: a `tokenizer.json`, or the SentencePiece model that it was made from.

transformers 5 takes only the pieces, merges, character map and added tokens from it and builds the rest itself
(`models/nllb/tokenization_nllb.py`), so files of all ages behave alike; this does the same without transformers.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, normalizers
from tokenizers.models import BPE

from export.importers.huggingface.json_tokenizer import (
    NAMED_DEFAULTS,
    TOKENIZER_NAME,
    add_tokens,
    character_map,
    content_of,
    converted,
    json_spec,
    merges_of,
    model_of,
    named_ids,
    refusals,
    single_spaces,
    tokenizer_path,
    use_metaspace,
)
from export.importers.huggingface.tokenizer_config import CONFIG_NAME, class_of, read_optional
from export.importers.huggingface.tokenizer_files import TokenizerFiles, raise_if_any
from export.importers.json_file import read_json
from export.importers.model_card import NLLB_LICENCE
from export.importers.sentencepiece_file import read_pieces
from service.domain.errors import counted, listed
from service.text.languages import is_well_formed

MODEL_NAME = "sentencepiece.bpe.model"

_LANGUAGE = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")


def is_nllb_language(token: str) -> bool:
    return _LANGUAGE.fullmatch(token) is not None


def read_nllb(directory: Path) -> TokenizerFiles:
    tokenizer, config = _build(directory)
    size = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1
    added = tokenizer.get_added_tokens_decoder()
    languages = {
        token.content: index
        for index, token in added.items()
        if _LANGUAGE.fullmatch(token.content) or (token.special and is_well_formed(token.content))
    }
    words = [token.content for token in added.values() if is_well_formed(token.content)]
    if len(languages) < 2:
        raise ValueError(
            f"{TOKENIZER_NAME}: it has {counted(len(languages), 'language token')}, such as eng_Latn; expected two"
        )
    others = [word for word in words if word not in languages]
    note = (
        f"added tokens are taken as words, not as languages, unless they are special: {listed(others)}; if they are "
        "languages, list them in additional_special_tokens of tokenizer_config.json"
    )
    return TokenizerFiles(
        spec=json_spec(named_ids(tokenizer, config)),
        written={TOKENIZER_NAME: lambda path: tokenizer.save(str(path))},
        sizes=(size, size),
        languages={code: (index,) for code, index in languages.items()},
        place="both sides",
        first_ids=languages.values(),
        notes=(note,) if others else (),
        licence=NLLB_LICENCE,
    )


def _config(directory: Path) -> dict[str, Any]:
    problems: list[str] = []
    config = read_optional(directory / CONFIG_NAME, problems)
    class_of(directory, config, ("NllbTokenizer",), problems)
    if config.get("legacy_behaviour"):
        problems.append(f"{CONFIG_NAME}: legacy_behaviour (the language after the text) is not supported")
    raise_if_any(problems)
    return config


def _build(directory: Path) -> tuple[Tokenizer, Mapping[str, Any]]:
    config = _config(directory)
    path = tokenizer_path(directory, MODEL_NAME)
    with refusals(path, "NLLB"):
        document = _converted(path) if path.name == MODEL_NAME else read_json(path)
        model = model_of(document, "BPE")
        unk_token = content_of(config.get("unk_token") or NAMED_DEFAULTS["unk_token"])
        merges = merges_of(model)
        tokenizer = Tokenizer(BPE(vocab=model["vocab"], merges=merges, unk_token=unk_token, fuse_unk=True))
        if charsmap := character_map(document.get("normalizer")):
            tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap), single_spaces()])
        use_metaspace(tokenizer)
        add_tokens(tokenizer, document["added_tokens"], config)
    return tokenizer, config


def _converted(path: Path) -> dict[str, Any]:
    """Convert a SentencePiece model to `tokenizer.json`'s relevant parts: two pieces merge if they make a third."""
    model = read_pieces(path)
    first = (NAMED_DEFAULTS[name] for name in ("bos_token", "pad_token", "eos_token", "unk_token"))
    known = set(model.pieces)
    parts = {
        "type": "BPE",
        "vocab": {piece: index for index, piece in enumerate(dict.fromkeys([*first, *model.pieces]))},
        "merges": [
            (piece[:cut], piece[cut:])
            for piece in model.pieces
            for cut in range(1, len(piece))
            if piece[:cut] in known and piece[cut:] in known
        ],
    }
    return converted(model, parts)
