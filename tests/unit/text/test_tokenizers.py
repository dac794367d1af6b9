"""Tokenizers of every kind."""

import json
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.bundle.errors import BundleError
from service.bundle.manifest_parts import TokenizerSpec
from service.text.tokenizers import Tokenizer, clean_up_spaces, load_tokenizer, of_prose, settled
from service.text.unknown import UnknownCharacters
from tests.nasty_texts import NASTY_TEXTS, nasty_text
from tests.programs import output_of
from tests.tokenizer_folders import (
    GERMAN,
    train_sentencepiece,
    write_bpe,
    write_indictrans2,
    write_m2m100,
    write_marian,
    write_word_level,
)

TEXT = "Where is the train station?"
SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}


def vocabulary(folder: Path, name: str = "vocab.json") -> dict[str, int]:
    return dict(json.loads((folder / name).read_text(encoding="utf-8")))


def spec_of(kind: str, file: str, **fields: Any) -> TokenizerSpec:
    """Return the specification of a tokenizer with the special ids of most of them."""
    return TokenizerSpec(kind, file, **{"pad_id": 1, "eos_id": 2, "unk_id": 3, "decoder_start_id": 2, **fields})


def marian_spec(folder: Path) -> TokenizerSpec:
    last = max(vocabulary(folder).values())
    special = {"</s>": 0, "<unk>": 1, "<pad>": last}
    ids = {"pad_id": last, "eos_id": 0, "unk_id": 1, "decoder_start_id": last}
    return spec_of("marian", "source.spm", vocabulary_file="vocab.json", special_tokens=special, **ids)


def sentencepiece_folder(root: Path) -> tuple[TokenizerSpec, Path]:
    (root / "source.model").write_bytes(train_sentencepiece((TEXT,), size=40))
    return spec_of("sentencepiece", "source.model", pad_id=0, unk_id=0, decoder_start_id=0), root


def marian_folder(root: Path) -> tuple[TokenizerSpec, Path]:
    folder = write_marian(root / "marian")
    return marian_spec(folder), folder


def m2m100_folder(root: Path) -> tuple[TokenizerSpec, Path]:
    folder = write_m2m100(root / "m2m100")
    special = SPECIAL | {"__de__": len(vocabulary(folder))}
    return spec_of("m2m100", "sentencepiece.bpe.model", vocabulary_file="vocab.json", special_tokens=special), folder


def bpe_folder(root: Path) -> tuple[TokenizerSpec, Path]:
    write_bpe(root / "tokenizer.json")
    return spec_of("tokenizers", "tokenizer.json"), root


def word_level_folder(root: Path) -> tuple[TokenizerSpec, Path]:
    write_word_level(root / "words.json")
    return spec_of("tokenizers", "words.json", eos_id=3, unk_id=0), root


def indictrans2_folder(root: Path) -> tuple[TokenizerSpec, Path]:
    """Write one that is English on both sides, so that it reads what the others read."""
    folder = root / "indictrans2"
    write_indictrans2(folder, "en-en")
    vocabularies = {"vocabulary_file": "dict.SRC.json", "target_vocabulary_file": "dict.TGT.json"}
    return spec_of("indictrans2", "model.SRC", target_file="model.TGT", special_tokens=SPECIAL, **vocabularies), folder


FOLDERS = (sentencepiece_folder, marian_folder, m2m100_folder, bpe_folder, word_level_folder, indictrans2_folder)


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda write: write.__name__.removesuffix("_folder"))
def kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    write: Callable[[Path], tuple[TokenizerSpec, Path]] = request.param
    return write(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def any_tokenizer(kind: tuple[TokenizerSpec, Path]) -> Tokenizer:
    return load_tokenizer(*kind)


def test_known_text_comes_back(any_tokenizer: Tokenizer, kind: tuple[TokenizerSpec, Path]) -> None:
    ids = any_tokenizer.encode(TEXT)
    assert any_tokenizer.decode(ids).replace(" ?", "?") == TEXT  # words are joined by spaces
    assert not {kind[0].eos_id, kind[0].pad_id, kind[0].unk_id} & set(ids)


def test_a_prefix_is_what_can_be_written(any_tokenizer: Tokenizer, kind: tuple[TokenizerSpec, Path]) -> None:
    ids = any_tokenizer.encode_target(TEXT)
    assert any_tokenizer.decode(ids).replace(" ?", "?") == TEXT
    spec = kind[0]
    strange = any_tokenizer.encode_target("</s> <unk>\U000f0000 [EOS] __de__ deu_Latn >>de<< Where")
    assert not {spec.eos_id, spec.pad_id, spec.unk_id, *spec.special_tokens.values()} & set(strange)
    assert any_tokenizer.decode(strange).endswith("Where")
    assert any_tokenizer.encode_target("") == []


def test_what_is_spelled_like_a_token_is_text(any_tokenizer: Tokenizer, kind: tuple[TokenizerSpec, Path]) -> None:
    spec, folder = kind
    control = {1, spec.eos_id, spec.pad_id, *spec.special_tokens.values()}
    if spec.kind == "tokenizers":
        control.update(token["id"] for token in json.loads((folder / spec.file).read_text("utf-8"))["added_tokens"])
    for token in ("</s>", "<s>", "<unk>", "<pad>", "__de__", "deu_Latn", ">>de<<", "[SOS]", "<mask>"):
        for text in (token, f"Where {token} is", f"{token}de", f"de{token} {token}"):
            ids = any_tokenizer.encode(text)
            assert not set(ids) & (control - {any_tokenizer.unk_id}), text
            is_spelled = spec.file not in ("words.json", "source.model")  # else what is unknown is one piece
            assert len(ids) > len(any_tokenizer.encode(text.replace(token, ""))) or not is_spelled
            assert len(any_tokenizer.source_spans(text)) == len(ids)


def test_special_and_unknown_ids_have_no_text_and_empty_spans(
    any_tokenizer: Tokenizer, kind: tuple[TokenizerSpec, Path]
) -> None:
    ids = any_tokenizer.encode(TEXT)
    text = any_tokenizer.decode(ids)
    spec = kind[0]
    special = [spec.eos_id, spec.decoder_start_id, *spec.special_tokens.values()] * (spec.kind != "sentencepiece")
    special.append(10**6)
    assert any_tokenizer.decode([*special, *ids, *special]) == text
    spans = any_tokenizer.target_spans([*special, *ids, *special])
    assert spans[len(special) : -len(special)] == any_tokenizer.target_spans(ids)
    assert all(start == end for start, end in (*spans[: len(special)], *spans[-len(special) :]))
    assert any_tokenizer.decode(tuple(ids)) == text
    assert any_tokenizer.decode([]) == ""
    assert any_tokenizer.encode("") == []


def check_source_spans(tokenizer: Tokenizer, text: str) -> None:
    spans = tokenizer.source_spans(text)
    ids = tokenizer.encode(text)
    assert all(0 <= token_id < 1000 for token_id in ids)
    assert len(spans) == len(ids)
    last = 0
    for start, end in spans:
        assert last <= start <= end <= len(text)
        last = end
    covered = {place for span in spans for place in range(*span)}
    lost = {character for place, character in enumerate(text) if place not in covered and not character.isspace()}
    assert not {character for character in lost if is_visible(character)}


def is_visible(character: str) -> bool:
    """Return false for what normalization drops, controls and direction marks, and for SentencePiece's space sign."""
    return character not in "▁\ufffd" and unicodedata.category(character) not in ("Cc", "Cf")


def check_target_spans(tokenizer: Tokenizer, ids: list[int]) -> None:
    text, spans = tokenizer.decode(ids), tokenizer.target_spans(ids)
    assert len(spans) == len(ids)
    assert [start for start, _ in spans] == [0, *(end for _, end in spans[:-1])][: len(ids)]
    assert "".join(text[start:end] for start, end in spans) == text


@given(text=nasty_text())
def test_source_spans_of_any_text(any_tokenizer: Tokenizer, text: str) -> None:
    check_source_spans(any_tokenizer, text)


def test_spans_of_nasty_texts(any_tokenizer: Tokenizer) -> None:
    for text in NASTY_TEXTS:
        short = text[:300]  # spans do not change in long texts
        check_source_spans(any_tokenizer, short)
        check_target_spans(any_tokenizer, any_tokenizer.encode(short))


@given(ids=st.lists(st.integers(0, 2000), max_size=30))
def test_target_spans_of_any_ids(any_tokenizer: Tokenizer, ids: list[int]) -> None:
    check_target_spans(any_tokenizer, ids)


def test_spans_of_words(any_tokenizer: Tokenizer) -> None:
    """Every token's source span is the text it was made of, and its target span the text that it becomes."""
    ids, spans = any_tokenizer.encode(TEXT), any_tokenizer.source_spans(TEXT)
    said, written = any_tokenizer.decode(ids), any_tokenizer.target_spans(ids)
    assert len([span for span in spans if span[0] < span[1]]) > 4
    for source, target in zip(spans, written, strict=True):
        assert TEXT[slice(*source)].strip() == said[slice(*target)].strip()


def test_every_kind_tells_what_it_does_not_know(any_tokenizer: Tokenizer) -> None:
    unknown = UnknownCharacters(any_tokenizer)
    text = "Where is \u6f22\u5b57 Where is \U00012000?"
    found = [text[start:end] for start, end in unknown.find(text)]
    assert {"\u6f22\u5b57", "\U00012000"} <= set(found)
    known = "Where is"
    assert not unknown.are_in(known, any_tokenizer.encode(known))
    assert not unknown.find(known)


def test_threads_do_not_disturb_each_other(any_tokenizer: Tokenizer) -> None:
    texts = [f"Save the </s>file {'window ' * (number % 7)}" for number in range(400)]
    expected = [any_tokenizer.encode(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(any_tokenizer.encode, texts)) == expected
        assert list(pool.map(any_tokenizer.decode, expected)) == [any_tokenizer.decode(ids) for ids in expected]


def refused_by(spec: TokenizerSpec, folder: Path) -> str | None:
    try:
        load_tokenizer(spec, folder).encode(TEXT)
    except BundleError as error:
        return str(error)
    return None


def test_files_cut_short_do_not_crash(kind: tuple[TokenizerSpec, Path], tmp_path: Path) -> None:
    spec, folder = kind
    for name in spec.files:
        data = (folder / name).read_bytes()
        for other in spec.files:
            (tmp_path / other).write_bytes((folder / other).read_bytes())
        refused = 0
        for length in range(0, len(data), max(len(data) // 60, 1)):
            (tmp_path / name).write_bytes(data[:length])
            refusal = refused_by(spec, tmp_path)
            if refusal is not None:
                assert "\n" not in refusal
                assert str(tmp_path / name) in refusal
                refused += 1
        assert refused > 50  # a SentencePiece model cut between two pieces is valid
        (tmp_path / name).unlink()
        with pytest.raises(BundleError, match="can't be read"):
            load_tokenizer(spec, tmp_path)


def test_what_is_missing_for_a_kind_is_said(tmp_path: Path) -> None:
    spec, folder = sentencepiece_folder(tmp_path)
    with pytest.raises(BundleError, match="'wordpiece'; this service knows 'sentencepiece', 'marian', 'm2m100', 'ind"):
        load_tokenizer(replace(spec, kind="wordpiece"), folder)
    (folder / spec.file).write_bytes(b"no model")
    with pytest.raises(BundleError, match="SentencePiece"):
        load_tokenizer(spec, folder)
    marian, folder = marian_folder(tmp_path)
    with pytest.raises(BundleError, match="vocabulary_file is empty; kind 'marian' needs"):
        load_tokenizer(replace(marian, vocabulary_file=""), folder)
    with pytest.raises(BundleError, match="special_tokens has no text for id 1; kind 'm2m100'"):
        load_tokenizer(replace(marian, kind="m2m100", special_tokens={"</s>": 0, "<pad>": marian.pad_id}), folder)
    words, folder = word_level_folder(tmp_path)
    document = json.loads((folder / words.file).read_text(encoding="utf-8"))
    del document["model"]["vocab"]["[UNK]"]
    (folder / words.file).write_text(json.dumps(document | {"added_tokens": []}), encoding="utf-8")
    with pytest.raises(BundleError, match="Missing"):
        load_tokenizer(words, folder)


def test_a_template_cutting_and_padding_are_left_to_the_manifest(tmp_path: Path) -> None:
    spec, folder = bpe_folder(tmp_path)
    plain = load_tokenizer(spec, folder).encode(TEXT)
    document = json.loads((folder / spec.file).read_text(encoding="utf-8"))
    token = {"SpecialToken": {"id": "</s>", "type_id": 0}}
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}, token],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}},
    }
    document["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    padding = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 1, "pad_type_id": 0, "pad_token": "<pad>"}
    document["padding"] = padding | {"strategy": {"Fixed": 99}}
    (folder / spec.file).write_text(json.dumps(document), encoding="utf-8")
    assert load_tokenizer(spec, folder).encode(TEXT) == plain


def test_two_models_read_with_one_and_write_with_the_other(tmp_path: Path) -> None:
    spec, folder = sentencepiece_folder(tmp_path)
    source = load_tokenizer(spec, folder)
    (folder / "target.model").write_bytes(train_sentencepiece(GERMAN, size=80))
    target = load_tokenizer(replace(spec, file="target.model"), folder)
    both = load_tokenizer(replace(spec, target_file="target.model"), folder)
    assert both.encode(TEXT) == source.encode(TEXT)
    assert both.encode_target(TEXT) == target.encode_target(TEXT) != source.encode_target(TEXT)
    ids = target.encode("Wo ist der Bahnhof?")
    assert both.decode(ids) == "Wo ist der Bahnhof?" != source.decode(ids)
    assert both.source_spans(TEXT) == source.source_spans(TEXT)
    assert both.target_spans(ids) == target.target_spans(ids) != source.target_spans(ids)


def test_marians_ids_are_the_vocabularys(tmp_path: Path) -> None:
    spec, folder = marian_folder(tmp_path)
    tokenizer, ids = load_tokenizer(spec, folder), vocabulary(folder)
    assert all(token_id in ids.values() for token_id in tokenizer.encode(TEXT))
    assert tokenizer.encode("Hello 🙂")[-1] == 1  # no piece has it
    # source.spm has no piece for it, but the common vocabulary has one: target.spm's
    assert tokenizer.encode("ß")[-1] == ids["ß"]
    separate = write_marian(tmp_path / "separate", is_separate=True)
    german = replace(marian_spec(separate), target_file="target.spm", target_vocabulary_file="target_vocab.json")
    tokenizer, ids = load_tokenizer(german, separate), vocabulary(separate, "target_vocab.json")
    assert tokenizer.encode(TEXT) == load_tokenizer(marian_spec(separate), separate).encode(TEXT)
    assert tokenizer.decode([ids["▁"], ids["ß"], 0]) == "ß"


def test_a_text_can_not_replace_the_prefix_that_chooses_the_language(tmp_path: Path) -> None:
    folder = write_marian(tmp_path / "several", languages=("de", "fr"))
    tokenizer, ids = load_tokenizer(marian_spec(folder), folder), vocabulary(folder)
    assert ids[">>fr<<"] not in tokenizer.encode(">>fr<< Hello")
    assert tokenizer.decode(tokenizer.encode(">>fr<< Hello")).endswith("Hello")


def test_translations_are_cleaned_up_where_the_manifest_says_so(tmp_path: Path) -> None:
    spec, folder = marian_folder(tmp_path)
    ids = load_tokenizer(spec, folder).encode("Hello , keys")
    assert load_tokenizer(spec, folder).decode(ids) == "Hello , keys"
    cleaning = load_tokenizer(replace(spec, cleans_up_spaces=True), folder)
    assert cleaning.decode(ids) == "Hello, keys"
    check_target_spans(cleaning, ids)
    assert (5, 6) in cleaning.target_spans(ids)  # the comma, without its space
    assert cleaning.encode("Hello , keys") == ids


def test_an_empty_piece_adds_no_space_to_prose(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(*sentencepiece_folder(tmp_path))
    first, last = tokenizer.encode("the"), tokenizer.encode("train")
    doubled = next(ids for piece in range(40) if tokenizer.decode(ids := [*first, piece, *last]) == "the  train")
    assert of_prose(tokenizer).decode(doubled) == of_prose(tokenizer).decode_settled(doubled) == "the train"
    check_target_spans(of_prose(tokenizer), doubled)


def test_added_tokens_are_no_part_of_a_translation(tmp_path: Path) -> None:
    bpe = load_tokenizer(*bpe_folder(tmp_path))
    document = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    (german,) = (token["id"] for token in document["added_tokens"] if token["content"] == "deu_Latn")
    assert bpe.decode([german, *bpe.encode("Hello"), 2]) == "Hello"


def test_no_heavy_library_is_imported(tmp_path: Path) -> None:
    """`tokenizers` depends on huggingface_hub, but nothing here imports it."""
    write_marian(tmp_path / "marian")
    write_bpe(tmp_path / "tokenizer.json")
    program = f"""
import sys
from pathlib import Path
from service.bundle.manifest import TokenizerSpec
from service.text.tokenizers import load_tokenizer
root = Path({str(tmp_path)!r})
ids = dict(pad_id=0, eos_id=0, unk_id=0, decoder_start_id=0, special_tokens={{"</s>": 0}})
for spec in (
    TokenizerSpec("sentencepiece", "marian/source.spm", **ids),
    TokenizerSpec("m2m100", "marian/source.spm", **ids, vocabulary_file="marian/vocab.json"),
    TokenizerSpec("tokenizers", "tokenizer.json", **ids),
):
    tokenizer = load_tokenizer(spec, root)
    assert tokenizer.decode(tokenizer.encode("Hello")) == "Hello"
heavy = {{"torch", "transformers", "huggingface_hub", "onnx", "onnxruntime", "sacremoses", "requests", "httpx"}}
print(sorted(heavy & {{name.partition(".")[0] for name in sys.modules}}), "tokenizers" in sys.modules)
"""
    assert output_of(program) == "[] True\n"


def test_spaces_before_punctuation_and_contractions_go() -> None:
    assert clean_up_spaces("He is n't here , I 'm sure . Who 's ' it ?") == "He isn't here, I'm sure. Who's'it?"
    assert clean_up_spaces("nothing to do") == "nothing to do"
    # What may lose its space is held back.
    held_back = {"It is": "It is", "does n'": "does", "does n '": "does", "it ": "it"}
    assert {text: settled(text) for text in held_back} == held_back


@given(
    st.lists(st.sampled_from([" ", " ", "'", ".", "n", "t", "n't", "'s", "'ve", "m", "r", "e", "x", ",", " ' "])),
    st.data(),
)
def test_what_is_settled_stays_whatever_follows(symbols: list[str], data: st.DataObject) -> None:
    text, cut = "".join(symbols), data.draw(st.integers(0, len(symbols)))
    begun = settled("".join(symbols[:cut]))
    assert clean_up_spaces(text).startswith(clean_up_spaces(begun))
