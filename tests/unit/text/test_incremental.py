"""Text in parts: together the whole text, each cut at the end of a word, for every kind of tokenizer."""

import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, trainers

from service.bundle.manifest_parts import TokenizerSpec
from service.text.incremental import IncrementalDecoder, PieceDecoder
from service.text.tokenizers import Tokenizer, load_tokenizer
from tests.nasty_texts import nasty_text
from tests.tokenizer_folders import ENGLISH, FRENCH, GERMAN, write_marian
from tests.unit.text.test_tokenizers import FOLDERS, marian_spec

Kind = tuple[TokenizerSpec, Path]


def byte_pieces_folder(root: Path) -> Kind:
    """Write a SentencePiece model that spells in bytes what it has no piece for."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(ENGLISH + GERMAN),
        model_writer=model,
        vocab_size=420,
        byte_fallback=True,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    (root / "bytes.model").write_bytes(model.getvalue())
    return TokenizerSpec("sentencepiece", "bytes.model", pad_id=0, eos_id=2, unk_id=0, decoder_start_id=0), root


def separate_folder(root: Path) -> Kind:
    folder = write_marian(root / "separate", is_separate=True)
    spec = replace(marian_spec(folder), target_file="target.spm", target_vocabulary_file="target_vocab.json")
    return spec, folder


SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def _trained(
    root: Path,
    model: Any,
    pre_tokenizer: Any,
    decoder: Any,
    trainer: Any,
    added_tokens: Sequence[str] = (),
    **options: Any,
) -> Kind:
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoder
    tokenizer.add_tokens(list(added_tokens))
    trained_by = trainer(vocab_size=450, special_tokens=SPECIAL, show_progress=False, **options)
    tokenizer.train_from_iterator(ENGLISH + GERMAN + FRENCH, trained_by)
    tokenizer.save(str(root / "tokenizer.json"))
    return TokenizerSpec("tokenizers", "tokenizer.json", pad_id=1, eos_id=2, unk_id=3, decoder_start_id=2), root


def json_bytes_folder(root: Path) -> Kind:
    """Write bytes as Llama's files have them: a run of them is text only as a whole."""
    model = models.BPE(unk_token="<unk>", byte_fallback=True)
    decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    names = [f"<0x{byte:02X}>" for byte in range(256)]
    return _trained(root, model, pre_tokenizers.Metaspace(), decoder, trainers.BpeTrainer, names)


def byte_level_folder(root: Path) -> Kind:
    reader, decoder = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return _trained(root, models.BPE(), reader, decoder, trainers.BpeTrainer, initial_alphabet=alphabet)


def word_piece_folder(root: Path) -> Kind:
    model, decoder = models.WordPiece(unk_token="<unk>"), decoders.WordPiece(cleanup=True)
    return _trained(root, model, pre_tokenizers.BertPreTokenizer(), decoder, trainers.WordPieceTrainer)


def suffix_folder(root: Path) -> Kind:
    suffix = {"end_of_word_suffix": "</w>"}
    model, decoder = models.BPE(unk_token="<unk>", **suffix), decoders.BPEDecoder(suffix="</w>")
    return _trained(root, model, pre_tokenizers.Whitespace(), decoder, trainers.BpeTrainer, **suffix)


KINDS: tuple[Callable[[Path], Kind], ...] = (
    *FOLDERS,
    byte_pieces_folder,
    separate_folder,
    json_bytes_folder,
    byte_level_folder,
    word_piece_folder,
    suffix_folder,
)


# What cleans up spaces is around the others, which write them with words, pieces or bytes.
CLEANED = (FOLDERS[1], byte_level_folder, word_piece_folder)


@pytest.fixture(
    scope="module",
    params=[*((write, False) for write in KINDS), *((write, True) for write in CLEANED)],
    ids=lambda kind: kind[0].__name__.removesuffix("_folder") + "-cleaned" * kind[1],
)
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    write, cleans_up_spaces = request.param
    spec, folder = write(tmp_path_factory.mktemp("tokenizer"))
    return load_tokenizer(replace(spec, cleans_up_spaces=cleans_up_spaces), folder)


def parts(tokenizer: PieceDecoder, ids: list[int], cuts: Iterable[int]) -> Iterator[str]:
    decoder, emitted = IncrementalDecoder(tokenizer), 0
    for cut in sorted(cuts):
        part = decoder.feed(tuple(ids[:cut]))
        emitted += len(part)
        yield part
    yield tokenizer.decode(ids)[emitted:]


TRICKY = " . ? ! , ' n't 'm 's 've 're n ' t does n' t it ' s o ' ' clock 中文字符，日本語 é🙂 สวัสดีครับ e\u0301\u0301"


@pytest.fixture(scope="module")
def any_ids(tokenizer: Tokenizer) -> st.SearchStrategy[list[int]]:
    """Generate ids of texts mixed with any ids."""
    tricky = [tokenizer.encode(word) for word in TRICKY.split()]
    known = [
        *tokenizer.encode(TRICKY),
        *tokenizer.encode(" ".join(ENGLISH[:3])),
        *itertools.chain.from_iterable(tricky),
    ]
    pieces = st.one_of(
        st.sampled_from(known).map(lambda token_id: [token_id]),
        st.integers(0, 700).map(lambda token_id: [token_id]),
        st.sampled_from(tricky),
        st.text("abc .'n\u4e2d\u00e9 \u0301🙂", max_size=8).map(tokenizer.encode),
        nasty_text().map(lambda text: tokenizer.encode(text)[:100]),
    )
    return st.lists(pieces, max_size=60).map(lambda drawn: list(itertools.chain.from_iterable(drawn)))


@pytest.mark.parametrize("max_examples", [20, pytest.param(3_000, marks=pytest.mark.full)])
def test_parts_together_are_the_text_and_what_is_settled_stays(
    tokenizer: Tokenizer, any_ids: st.SearchStrategy[list[int]], max_examples: int
) -> None:
    @given(st.data())
    @settings(max_examples=max_examples)
    def check(data: st.DataObject) -> None:
        ids = data.draw(any_ids)
        is_stepwise = data.draw(st.booleans())
        cuts = range(1, len(ids)) if is_stepwise else data.draw(st.lists(st.integers(0, len(ids)), max_size=20))
        text = tokenizer.decode(ids)
        assert "".join(parts(tokenizer, ids, cuts)) == text
        for cut in cuts:
            assert text.startswith(tokenizer.decode_settled(ids[:cut]))

    assert tokenizer.decode_settled([]) == ""
    check()


@pytest.mark.parametrize("text", ENGLISH[:4])
def test_parts_end_where_words_do(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode_target(text)
    given_out = list(parts(tokenizer, ids, range(1, len(ids))))
    whole = "".join(given_out)
    ends = list(itertools.accumulate(map(len, given_out)))
    assert all(whole[end].isspace() for end in ends if 0 < end < len(whole))
    assert len([part for part in given_out if part]) > 3


def test_a_word_goes_out_with_the_first_piece_of_the_next() -> None:
    class Words:
        """Each id is a piece; a capital letter begins a word."""

        def encode(self, text: str) -> list[int]:
            return list(map(ord, text))

        def decode(self, token_ids: Any) -> str:
            return "".join(f" {chr(index)}" if chr(index).isupper() else chr(index) for index in token_ids).strip()

        decode_settled = decode

    decoder, ids = IncrementalDecoder(Words()), Words().encode("WoIstEr.")
    assert [decoder.feed(ids[:end]) for end in range(1, 8)] == ["", "", "Wo", "", "", " Ist", ""]


def test_bytes_that_stand_together_are_held_back_until_they_are_known_to_be_text(tmp_path: Path) -> None:
    spec, folder = json_bytes_folder(tmp_path)
    tokenizer = load_tokenizer(spec, folder)
    vocabulary = tokenizers.Tokenizer.from_file(str(folder / spec.file)).get_vocab()
    ids = [vocabulary[f"<0x{byte:02X}>"] for byte in (0x61, 0x20, 0x62, 0x20, 0xFF)]
    assert tokenizer.decode(ids[:3]) == "a b", "a positive control: this would have gone out"
    assert list(parts(tokenizer, ids, [1, 2, 3, 4])) == ["", "", "", "", "\ufffd" * 5]
    hello = tokenizer.encode_target("Hello")
    assert list(parts(tokenizer, [*ids[:3], spec.eos_id, *hello], [3, 4, 5]))[:2] == ["", ""]


def byte_level(tmp_path: Path) -> Tokenizer:
    return load_tokenizer(*byte_level_folder(tmp_path))


def test_without_spaces_a_word_is_a_character_with_its_marks(tmp_path: Path) -> None:
    tokenizer = byte_level(tmp_path)
    ids = tokenizer.encode("中文字 は\u3099 กี่ x\u0301y")
    given_out = [part for part in parts(tokenizer, ids, range(1, len(ids))) if part]
    assert [part.lstrip() for part in given_out] == ["中", "文", "字", "は\u3099", "กี่", "x\u0301y"]


def test_a_word_without_end_goes_out_in_parts(tmp_path: Path) -> None:
    tokenizer = byte_level(tmp_path)
    ids = tokenizer.encode("x" + "é" * 2000)
    sizes = [len(part) for part in parts(tokenizer, ids, range(1, len(ids))) if part]
    assert sum(sizes) == 2002 - (tokenizer.decode(ids)[0] != " ")
    assert max(sizes) <= 130


def test_long_outputs_cost_no_more_per_token(tmp_path: Path) -> None:
    """Decoding all of 6,000 tokens anew each time would take fifty times as long as the window."""
    decoded = 0

    class Counting:
        def __init__(self, tokenizer: Tokenizer) -> None:
            self.decode, self._tokenizer = tokenizer.decode, tokenizer

        def decode_settled(self, token_ids: Any) -> str:
            nonlocal decoded
            decoded += len(token_ids)
            return self._tokenizer.decode_settled(token_ids)

    tokenizer = byte_level(tmp_path)
    ids = tokenizer.encode(" ".join((*GERMAN, *ENGLISH)) * 10)
    assert "".join(parts(Counting(tokenizer), ids, range(1, len(ids)))) == tokenizer.decode(ids)
    assert len(ids) > 2000
    assert decoded < 100 * len(ids)
