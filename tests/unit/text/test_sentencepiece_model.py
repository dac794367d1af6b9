"""What is spelled like a token of control in a caller's text is text; vocabularies of pieces (`vocab.json`)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from service.bundle.manifest_parts import TokenizerSpec
from service.text.tokenizers import Tokenizer, load_tokenizer
from service.text.vocabulary import marian_language, parse_vocabulary
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


def test_pieces_and_ids_are_read() -> None:
    assert parse_vocabulary(b'{"</s>": 0, "\\u2581a": 7, "\xe2\x96\x81b": 3}') == {"</s>": 0, "▁a": 7, "▁b": 3}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "Expecting value"),
        (b'{"a": 0, "b"', "Expecting ':'"),
        (b"\xff\xfe\xfa", "codec can't decode"),
        (b"[]", "expected one object"),
        (b"{}", "expected one object"),
        (b'["a", "b"]', "expected one object"),
        (b'{"a": "0"}', "the id of 'a' is '0'"),
        (b'{"a": -1}', "the id of 'a' is -1"),
        (b'{"a": true}', "the id of 'a' is True"),
        (b'{"a": 1.0}', "the id of 'a' is 1.0"),
        (b'{"a": {"b": 1}}', "the id of 'a' is"),
        (b'{"a": 0, "b": 1, "a": 2}', "'a' stands in it twice"),
        (b'{"a": 0, "b": 1, "c": 1}', "two pieces have the id 1"),
        (b'{"a": ' * 100_000, "nested too deeply"),
        (b'{"a": ' * 900 + b"1" + b"}" * 900, "the id of 'a' is an object"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "integer string conversion"),
    ],
)
def test_what_is_no_vocabulary_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as refusal:
        parse_vocabulary(data)
    assert "\n" not in str(refusal.value)


def test_language_tokens_of_marian_are_told_from_pieces() -> None:
    assert marian_language(">>de<<") == "de"
    assert marian_language(">>cmn_Hans<<") == "cmn_Hans"
    assert marian_language(">>pt_BR<<") == "pt_BR"
    for piece in (">>", "<<", ">><<", ">>12<<", ">>de<< ", "▁>>de<<", "de", "__de__"):
        assert marian_language(piece) is None
