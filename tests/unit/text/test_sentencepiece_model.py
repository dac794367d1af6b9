"""A model that lacks the letters of a token; vocabularies of pieces (`vocab.json`)."""

from pathlib import Path

import pytest

from service.bundle.manifest_parts import TokenizerSpec
from service.text.tokenizers import load_tokenizer
from service.text.vocabulary import marian_language, parse_vocabulary
from tests.tokenizer_folders import pieces_of, train_sentencepiece, write_vocabulary


@pytest.mark.parametrize("kind", ["marian", "m2m100"])
def test_a_token_of_letters_that_the_model_lacks_is_unknown(kind: str, tmp_path: Path) -> None:
    """SentencePiece returns a run of them as one piece, which is spelled like the token."""
    model = train_sentencepiece(("где вокзал",) * 3, "bpe", 80)
    (tmp_path / "m.spm").write_bytes(model)
    write_vocabulary(tmp_path / "vocab.json", ["<s>", "<pad>", "</s>", "<unk>", ">>de<<", *pieces_of(model)])
    special = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "__de__": 900}
    spec = TokenizerSpec(kind, "m.spm", 1, 2, 3, 2, vocabulary_file="vocab.json", special_tokens=special)
    tokenizer = load_tokenizer(spec, tmp_path)
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
        (b'{"a": 0, "b": 1, "a": 2}', "'a' is in it twice"),
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
