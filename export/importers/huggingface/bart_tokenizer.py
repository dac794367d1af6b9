"""The tokenizer files of BART, byte-level BPE as GPT-2's: a `tokenizer.json`, or `vocab.json` and `merges.txt`.
transformers 5 takes pieces, merges and added tokens from them and builds the rest itself (`models/roberta`)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from export.importers.huggingface.json_tokenizer import (
    TOKENIZER_NAME,
    add_tokens,
    json_spec,
    merges_of,
    named_ids,
    refusals,
    tokenizer_path,
)
from export.importers.huggingface.tokenizer_files import TokenizerFiles
from export.importers.json_file import read_json
from service.bundle.regular_file import check_regular

VOCABULARY_NAME = "vocab.json"
MERGES_NAME = "merges.txt"


def read_bart(directory: Path, config: Mapping[str, Any]) -> TokenizerFiles:
    """Read the files; `config` is the content of `tokenizer_config.json`. There are no languages."""
    tokenizer = _build(directory, config)
    ids = named_ids(tokenizer, config)
    mask_id = ids["mask_token"]  # published models have no row for it, and no text has it
    size = max(index for index in tokenizer.get_vocab().values() if index != mask_id) + 1
    return TokenizerFiles(
        spec=json_spec(ids, source_eos_id=None if ids["sep_token"] == ids["eos_token"] else ids["sep_token"]),
        written={TOKENIZER_NAME: lambda path: tokenizer.save(str(path))},
        sizes=(size, size),
        begin_ids=(ids["cls_token"],),
        first_ids=None,
    )


def _build(directory: Path, config: Mapping[str, Any]) -> Tokenizer:
    path = tokenizer_path(directory, VOCABULARY_NAME)
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
