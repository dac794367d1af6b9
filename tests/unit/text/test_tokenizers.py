"""Tokenizers."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.bundle.manifest import BundleError, Manifest, TokenizerSpec
from service.text.tokenizers import SentencePieceTokenizer, load_tokenizer


@pytest.fixture(scope="module")
def spec(tiny_bundle: Path) -> Any:
    return Manifest.load(tiny_bundle).tokenizer


@pytest.fixture(scope="module")
def tokenizer(tiny_bundle: Path, spec: TokenizerSpec) -> Any:
    return load_tokenizer(spec, tiny_bundle)


def test_known_text_comes_back(tokenizer: SentencePieceTokenizer, spec: TokenizerSpec) -> None:
    ids = tokenizer.encode("Where is the train station?")
    assert tokenizer.decode(ids) == "Where is the train station?"
    assert spec.eos_id not in ids


def test_ids_beyond_the_vocabulary_are_skipped(tokenizer: SentencePieceTokenizer) -> None:
    ids = tokenizer.encode("keys")
    assert tokenizer.decode([*ids, tokenizer.vocabulary_size, 10**6]) == "keys"
    assert tokenizer.decode([]) == ""


@given(st.text())
@settings(derandomize=True, max_examples=200, deadline=None)
def test_any_text_can_be_encoded(tokenizer: SentencePieceTokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert all(0 <= token_id < tokenizer.vocabulary_size for token_id in ids)
    assert isinstance(tokenizer.decode(ids), str)


def test_threads_do_not_disturb_each_other(tokenizer: SentencePieceTokenizer) -> None:
    texts = [f"Save the file {'window ' * (number % 7)}" for number in range(400)]
    expected = [tokenizer.encode(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(tokenizer.encode, texts)) == expected
        assert list(pool.map(tokenizer.decode, expected)) == [tokenizer.decode(ids) for ids in expected]


def test_an_unknown_kind_or_file_is_refused(spec: TokenizerSpec, tiny_bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="'wordpiece'"):
        load_tokenizer(replace(spec, kind="wordpiece"), tiny_bundle)
    with pytest.raises(BundleError, match="can't be read"):
        load_tokenizer(spec, tmp_path)
    (tmp_path / spec.file).write_bytes(b"no model")
    with pytest.raises(BundleError, match="SentencePiece"):
        load_tokenizer(spec, tmp_path)
