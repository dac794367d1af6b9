"""Small tokenizers of every kind, and the manifest of a model with a small token limit; made once per process."""

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from export.importers.huggingface.t5_tokenizer import read_t5
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import GoldenPair, LanguagePair, Limits, ModelShape, TokenizerSpec
from service.text.tokenizers import Tokenizer, load_tokenizer
from tests.tokenizer_folders import (
    ENGLISH,
    GERMAN,
    train_sentencepiece,
    write_bpe,
    write_m2m100,
    write_madlad,
    write_marian,
    write_word_level,
)

SPECIAL = {"</s>": 0, "<unk>": 1, "<pad>": 2}
SYMBOLS = tuple(map(chr, range(0xE000, 0xE008)))
_IDS: dict[str, Any] = {"pad_id": 2, "eos_id": 0, "unk_id": 1, "decoder_start_id": 2}


@functools.cache
def folder() -> Path:
    """Return a folder for this process's files; it is removed when the process ends."""
    _keep.append(kept := tempfile.TemporaryDirectory(prefix="fuzz-"))
    return Path(kept.name)


_keep: list[tempfile.TemporaryDirectory[str]] = []


@functools.cache
def _sentencepiece() -> Tokenizer:
    (folder() / "source.model").write_bytes(train_sentencepiece(ENGLISH + GERMAN))
    return load_tokenizer(TokenizerSpec("sentencepiece", "source.model", **_IDS), folder())


@functools.cache
def _json() -> Tokenizer:
    write_bpe(folder() / "bpe.json")
    return load_tokenizer(TokenizerSpec("tokenizers", "bpe.json", **_IDS), folder())


@functools.cache
def _word_level() -> Tokenizer:
    write_word_level(folder() / "words.json")
    return load_tokenizer(TokenizerSpec("tokenizers", "words.json", **_IDS, cleans_up_spaces=True), folder())


@functools.cache
def _marian() -> Tokenizer:
    directory = write_marian(folder() / "marian", ("fr", "de"))
    spec = TokenizerSpec(
        "marian",
        "source.spm",
        **_IDS,
        target_file="target.spm",
        vocabulary_file="vocab.json",
        special_tokens=SPECIAL,
        cleans_up_spaces=True,
    )
    return load_tokenizer(spec, directory)


@functools.cache
def _m2m100() -> Tokenizer:
    directory = write_m2m100(folder() / "m2m100")
    special = SPECIAL | {"__en__": 600, "__de__": 601}
    spec = TokenizerSpec(
        "m2m100", "sentencepiece.bpe.model", **_IDS, vocabulary_file="vocab.json", special_tokens=special
    )
    return load_tokenizer(spec, directory)


@functools.cache
def _madlad() -> Tokenizer:
    files = read_t5(write_madlad(folder() / "madlad"))
    files.tokenizer.save(str(folder() / "madlad.json"))
    return load_tokenizer(TokenizerSpec("tokenizers", "madlad.json", **_IDS), folder())


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "sentencepiece": _sentencepiece,
    "tokenizer-json": _json,
    "word-level": _word_level,
    "marian": _marian,
    "m2m100": _m2m100,
    "madlad": _madlad,
}

MANIFEST = Manifest(
    name="fuzz",
    model=ModelShape(1, 1, 8, 700),
    tokenizer=TokenizerSpec("sentencepiece", "source.model", **_IDS, reserved_symbols=SYMBOLS),
    languages=(LanguagePair("en", "de"),),
    limits=Limits(24, 64),
    golden=(GoldenPair("en", "de", "Hello", (3, 0), (4, 0), "Hallo"),),
    checksums=dict.fromkeys(("encoder.onnx", "decoder_step.onnx", "source.model"), "0" * 64),
    checkpoint_sha256="0" * 64,
)
