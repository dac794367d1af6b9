"""What is spelled like a token of control in a caller's text is text, for every kind of tokenizer."""

from collections.abc import Callable
from pathlib import Path

import pytest

from service.bundle.manifest_parts import TokenizerSpec
from service.text.tokenizers import Tokenizer, load_tokenizer
from tests.tokenizer_folders import pieces_of, train_sentencepiece, write_bpe, write_vocabulary, write_word_level

TOKENS = ("</s>", "<s>", "<unk>", "<pad>", "__de__", "deu_Latn", ">>de<<", "[SOS]", "<mask>")
SENTENCES = ("Where is de _ [SOS] < / s > unk pad mask deu Latn EOS ?",) * 3


def pieces(kind: str, folder: Path, sentences: tuple[str, ...] = SENTENCES) -> Tokenizer:
    model = train_sentencepiece(sentences, "bpe", 80)
    (folder / "m.spm").write_bytes(model)
    write_vocabulary(folder / "vocab.json", ["<s>", "<pad>", "</s>", "<unk>", ">>de<<", *pieces_of(model)])
    special = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "__de__": 900}
    spec = TokenizerSpec(kind, "m.spm", 1, 2, 3, 2, vocabulary_file="vocab.json", special_tokens=special)
    return load_tokenizer(spec, folder)


def nllb(folder: Path) -> Tokenizer:
    write_bpe(folder / "t.json")
    return load_tokenizer(TokenizerSpec("tokenizers", "t.json", 1, 2, 3, 2), folder)


def words(folder: Path) -> Tokenizer:
    write_word_level(folder / "t.json", SENTENCES)
    return load_tokenizer(TokenizerSpec("tokenizers", "t.json", 1, 3, 0, 2), folder)


def native(folder: Path) -> Tokenizer:
    (folder / "m.spm").write_bytes(train_sentencepiece(SENTENCES, "bpe", 80))
    return load_tokenizer(TokenizerSpec("sentencepiece", "m.spm", 1, 2, 0, 1), folder)


KINDS: dict[str, Callable[[Path], Tokenizer]] = {
    "native": native,
    "marian": lambda folder: pieces("marian", folder),
    "m2m100": lambda folder: pieces("m2m100", folder),
    "nllb": nllb,
    "words": words,
}


@pytest.mark.parametrize("build", KINDS.values(), ids=KINDS)
def test_what_is_spelled_like_a_token_is_text(build: Callable[[Path], Tokenizer], tmp_path: Path) -> None:
    tokenizer = build(tmp_path)
    control = {*range(3 if build is native else 5), 900} if build is not words else {1, 2, 3}
    unknown = {tokenizer.unk_id}
    for token in TOKENS:
        for text in (token, f"Where {token} is", f"{token}de", f"de{token} {token}"):
            ids = tokenizer.encode(text)
            assert not set(ids) & (control - unknown), (text, ids)
            if build is not words:
                assert len(ids) > len(tokenizer.encode(text.replace(token, ""))) + (len(token) > 6), text
            assert len(tokenizer.source_spans(text)) == len(ids)


@pytest.mark.parametrize("kind", ["marian", "m2m100"])
def test_a_token_of_letters_that_the_model_lacks_is_unknown(kind: str, tmp_path: Path) -> None:
    """SentencePiece returns a run of them as one piece, which is spelled like the token."""
    tokenizer = pieces(kind, tmp_path, ("где вокзал",) * 3)
    for token in ("</s>", "<pad>", "__de__"):
        assert set(tokenizer.encode(token)) <= {3, *range(5, 899)}, token
