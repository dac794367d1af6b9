"""The tokenizer files of BART, byte-level BPE as GPT-2's: a `tokenizer.json`, or `vocab.json` and `merges.txt`.

transformers 5 takes pieces, merges and added tokens from them and builds the rest itself (`models/roberta`).
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from export.importers.huggingface.json_tokenizer import (
    NAMED_DEFAULTS,
    add_tokens,
    content_of,
    merges_of,
    refusals,
)
from export.importers.json_file import read_json
from export.importers.mbart.tokenizer_files import BartFiles
from service.bundle.manifest_parts import TokenizerSpec
from service.bundle.regular_file import check_regular

TOKENIZER_NAME = "tokenizer.json"
VOCABULARY_NAME = "vocab.json"
MERGES_NAME = "merges.txt"


def read_bart(directory: Path, config: Mapping[str, Any]) -> BartFiles:
    """Read BART's files; see `read_tokenizer`. It has no languages; sources begin with "<s>"."""
    tokenizer = _build(directory, config)
    ids = tokenizer.get_vocab()
    named = {name: ids[content_of(config.get(name) or default)] for name, default in NAMED_DEFAULTS.items()}
    mask_id = named["mask_token"]  # published models have no row for it, and no text has it
    return BartFiles(
        size=max(index for index in ids.values() if index != mask_id) + 1,
        template=TokenizerSpec(
            kind="tokenizers",
            file=TOKENIZER_NAME,
            pad_id=named["pad_token"],
            eos_id=named["eos_token"],
            unk_id=named["unk_token"],
            decoder_start_id=named["eos_token"],
            source_eos_id=None if named["sep_token"] == named["eos_token"] else named["sep_token"],
        ),
        written={TOKENIZER_NAME: partial(_write, directory, config)},
        first_ids=(named["cls_token"],),
    )


def _write(directory: Path, config: Mapping[str, Any], destination: Path) -> None:
    _build(directory, config).save(str(destination))


def _build(directory: Path, config: Mapping[str, Any]) -> Tokenizer:
    path = directory / TOKENIZER_NAME
    if not path.exists() and (directory / VOCABULARY_NAME).exists():
        path = directory / VOCABULARY_NAME
    with refusals(path, "BART"):
        if path.name == VOCABULARY_NAME:
            files = (path, directory / MERGES_NAME)
            for each in files:
                check_regular(each)
            pieces, merges = BPE.read_file(*map(str, files))
            listed: list[Any] = []
        else:
            document = read_json(path)
            model, listed = document["model"], document["added_tokens"]
            if model.get("type", "BPE") != "BPE":
                raise ValueError(f"its model is {model['type']!r}, expected 'BPE'")
            pieces, merges = model["vocab"], merges_of(model)
        bpe = BPE(vocab=pieces, merges=merges, continuing_subword_prefix="", end_of_word_suffix="", fuse_unk=False)
        tokenizer = Tokenizer(bpe)
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=config.get("add_prefix_space") is True)
        tokenizer.decoder = decoders.ByteLevel()
        add_tokens(tokenizer, listed, config)
    return tokenizer
