"""IndicTrans2's tokenizer between languages of several scripts."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor

from service.bundle.manifest_parts import LanguagePair, TokenizerSpec
from service.text.incremental import IncrementalDecoder
from service.text.indic.rewriting import rewritten
from service.text.indic.writing import reading, written
from service.text.tokenizers import Tokenizer, load_tokenizer, of_pair
from tests.nasty_texts import NASTY_TEXTS
from tests.tokenizer_folders import INDIC, write_indictrans2
from tests.unit.text.test_tokenizers import check_target_spans

PAIRS = [("hin_Deva", "ben_Beng"), ("ben_Beng", "tam_Taml"), ("tam_Taml", "urd_Arab"), ("urd_Arab", "hin_Deva")]
SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}


Between = Callable[[str, str], Tokenizer]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indictrans2") / "folder"
    write_indictrans2(folder, "indic-indic")
    return folder


@pytest.fixture(scope="module")
def between(folder: Path) -> Between:
    files = {"target_file": "model.TGT", "vocabulary_file": "dict.SRC.json", "target_vocabulary_file": "dict.TGT.json"}
    spec = TokenizerSpec("indictrans2", "model.SRC", 1, 2, 3, 2, special_tokens=SPECIAL, **files)  # type: ignore[arg-type]
    every = load_tokenizer(spec, folder)
    return lambda source, target: of_pair(every, LanguagePair(source, target))


def test_languages_share_their_pieces_in_devanagari(between: Between) -> None:
    hindi, bengali = between("hin_Deva", "hin_Deva"), between("ben_Beng", "ben_Beng")
    assert hindi.encode("आमि गान") == bengali.encode("আমি গান")
    ids = bengali.encode_target("আমি বাংলায় গান গাই।")
    assert bengali.decode(ids) == "আমি বাংলায় গান গাই।"
    assert hindi.decode(ids) == "आमि बांलाय़ गान गाइ।"


def test_the_token_of_a_language_is_never_encoded(folder: Path, between: Between) -> None:
    """A run of letters that the model does not know may spell one."""
    vocabulary = json.loads((folder / "dict.SRC.json").read_text("utf-8"))
    ids = between("hin_Deva", "ben_Beng").encode("hin_Deva ben_Beng </s> <pad>")
    assert not set(ids) & {vocabulary[piece] for piece in ("hin_Deva", "ben_Beng", "</s>", "<pad>")}


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_spans_are_where_the_pieces_come_from(between: Between, source: str, target: str) -> None:
    tokenizer = between(source, target)
    for text in (*(text for _, text in INDIC), *(text[:100] for text in NASTY_TEXTS)):
        spans = tokenizer.source_spans(text)
        assert len(spans) == len(tokenizer.encode(text))
        assert [place for span in spans for place in span] == sorted(place for span in spans for place in span)
        covered = {place for span in spans for place in range(*span)}
        assert {place for place, character in enumerate(text) if character.isalnum()} <= covered <= {*range(len(text))}
        check_target_spans(tokenizer, tokenizer.encode_target(text))


def test_the_span_of_a_word_is_the_word(between: Between) -> None:
    text = "ঢাকা, বাংলা!"
    tokenizer = between("ben_Beng", "hin_Deva")
    spans = tokenizer.source_spans(text)
    words = {text.index(word): word for word in ("ঢাকা", ",", "বাংলা", "!")}
    starts = {start for start, end in spans if start < end}
    assert words.keys() <= starts
    assert "".join(text[start:end] for start, end in spans) == text.replace(" ", "")


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_words_are_told_as_they_come(between: Between, source: str, target: str) -> None:
    """Quotation marks open and close by turns, from the first of a text, however long that is."""
    tokenizer, rng = between(source, target), random.Random(4)
    words = [word for _, text in INDIC for word in text.split()]
    for _ in range(5):
        quoted = [f'"{word}' if rng.random() < 0.3 else word for word in rng.choices(words, k=60)]
        ids = tokenizer.encode_target(" ".join(quoted))
        decoder = IncrementalDecoder(tokenizer)
        told = "".join(decoder.feed(ids[:end]) for end in range(1, len(ids) + 1))
        assert tokenizer.decode(ids).startswith(told)
        assert len(told) > len(tokenizer.decode(ids)) / 2


def test_ids_are_those_of_the_pieces_in_the_vocabulary(folder: Path, between: Between) -> None:
    """As `tokenization_indictrans.py` has it: `EncodeAsPieces`, then the vocabulary; backwards, pieces side by side."""
    sides = {}
    for side in ("SRC", "TGT"):
        processor = SentencePieceProcessor(model_file=str(folder / f"model.{side}"))
        sides[side] = processor, json.loads((folder / f"dict.{side}.json").read_text("utf-8"))
    model, vocabulary = sides["SRC"]
    pieces = {index: piece for piece, index in sides["TGT"][1].items()}
    rng = random.Random(7)
    for code, text in [*INDIC, *((code, text[::-1]) for code, text in INDIC)]:
        read = rewritten(text, reading(code))
        expected = [vocabulary.get(piece, 3) for piece in model.encode_as_pieces(read)]
        assert between(code, "hin_Deva").encode(text) == expected
        ids = [rng.randrange(4, len(pieces)) for _ in range(20)]
        output = "".join(pieces[index] for index in ids).replace("▁", " ").strip()
        assert between("hin_Deva", code).decode([2, *ids, 2]) == written(output, code)
