"""Our tokenizers produce the same ids and texts as transformers for any input."""

import contextlib
import dataclasses
import json
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tokenizers
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models

from export.importers.huggingface.json_tokenizer import TOKENIZER_NAME
from export.importers.huggingface.m2m100 import read_m2m100
from export.importers.huggingface.marian import read_marian
from export.importers.huggingface.mbart import read_tokenizer
from export.importers.huggingface.nllb_tokenizer import read_nllb
from export.importers.huggingface.t5_tokenizer import read_t5
from export.importers.huggingface.tokenizer_files import TokenizerFiles
from service.bundle.manifest_parts import LanguagePair, TokenizerSpec
from service.text.tokenizers import Tokenizer, load_tokenizer
from tests.export.folders import edit
from tests.nasty_texts import NASTY_TEXTS, nasty_text
from tests.tokenizer_folders import (
    ENGLISH,
    FRENCH,
    GERMAN,
    HINDI,
    RUSSIAN,
    train_sentencepiece,
    write_bart,
    write_fairseq_sentencepiece,
    write_m2m100,
    write_madlad,
    write_marian,
    write_t5,
    write_word_level,
)

LANGUAGES = ["deu_Latn", "eng_Latn", "fra_Latn", "hin_Deva", "rus_Cyrl"]
CLEANED = {"clean_up_tokenization_spaces": True}  # the default of transformers 4


@dataclass(frozen=True)
class Case:
    """One of our tokenizers and its reference; `prefix` is what transformers expects before a text, in text and ids.

    `encode` gives the expected ids instead, if that is not for `reference` to say.
    """

    ours: Tokenizer
    reference: Any
    size: int
    prefix: str = ""
    prefix_ids: tuple[int, ...] = ()
    encode: Callable[[str], list[int]] | None = None

    def expected_ids(self, text: str) -> list[int]:
        if self.encode is not None:
            return self.encode(text)
        ids = self.reference(self.prefix + text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        assert tuple(ids[: len(self.prefix_ids)]) == self.prefix_ids
        return list(ids[len(self.prefix_ids) :])

    def expected_text(self, ids: Sequence[int]) -> str:
        return str(self.reference.decode(list(ids), skip_special_tokens=True))


def _reference(kind: Any, folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind.from_pretrained(folder, local_files_only=True)


def _resaved(kind: Any, folder: Path) -> Path:
    """Return the folder as transformers itself saves it."""
    saved = folder.parent / f"{folder.name}-saved"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _reference(kind, folder).save_pretrained(saved)
    return saved


def _placed(tokens: dict[str, int]) -> dict[str, Any]:
    """Return the `added_tokens_decoder` for these special tokens."""
    settings = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    return {str(index): {"content": text, **settings} for text, index in tokens.items()}


def _written(files: TokenizerFiles, folder: Path) -> Tokenizer:
    """Return the tokenizer of a bundle that has these files of a checkpoint's folder."""
    bundle = folder.parent / f"{folder.name}-bundle"
    bundle.mkdir()
    for name, written in files.written.items():
        shutil.copyfile(written, bundle / name) if isinstance(written, Path) else written(bundle / name)
    return load_tokenizer(files.spec, bundle)


def _assert_special_ids(files: TokenizerFiles, reference: Any) -> None:
    expected = (reference.pad_token_id, reference.eos_token_id, reference.unk_token_id)
    assert (files.spec.pad_id, files.spec.eos_id, files.spec.unk_id) == expected


def _language_ids(files: TokenizerFiles) -> dict[str, int]:
    return {code: index for code, (index,) in files.languages.items()}


def _marian(folder: Path, prefix: str = "") -> Case:
    files = read_marian(folder)
    return Case(
        ours=_written(files, folder),
        reference=_reference(transformers.MarianTokenizer, folder),
        size=files.sizes[1],
        prefix=f">>{prefix}<< " if prefix else " ",  # after a space, a language token of the text's own is text
        prefix_ids=files.languages[prefix] if prefix else (),
    )


def _m2m100(folder: Path, size: int | None = None) -> Case:
    files = read_m2m100(folder)
    reference = _reference(transformers.M2M100Tokenizer, folder)
    assert reference.lang_code_to_id == _language_ids(files)
    return Case(_written(files, folder), reference, size or files.sizes[0])


def _nllb(folder: Path) -> Case:
    files = read_nllb(folder)
    reference = _reference(transformers.NllbTokenizer, folder)
    assert _language_ids(files) == {code: reference.convert_tokens_to_ids(code) for code in LANGUAGES}
    _assert_special_ids(files, reference)
    assert files.sizes == (len(reference), len(reference))
    return Case(_written(files, folder), reference, len(reference))


def _bart(kind: Any, folder: Path) -> Case:
    """Return a case of mBART's, mBART-50's, PLBart's or BART's class."""
    edit(folder / "tokenizer_config.json", tokenizer_class=kind.__name__)
    files = read_tokenizer(folder, default=kind.__name__)
    with _older_protobuf():
        reference = _reference(kind, folder)
    known = getattr(reference, "lang_code_to_id", {})
    codes = {token.strip("_").split("_")[0]: index for token, index in known.items()}
    assert _language_ids(files).items() >= codes.items()
    assert files.sizes[0] == len(reference) - (not files.languages)  # BART's last token is "<mask>"
    _assert_special_ids(files, reference)
    ours = _written(files, folder)
    if files.languages:  # the source's: English is the default of most
        reference.src_lang = next(token for token in known if "en_XX" in token)
    language = files.languages.get("en", (0,))
    before = {"both sides": language, "after source": (), "nowhere": files.begin_ids}[files.place]
    after = language if files.place == "after source" else ()
    pair = LanguagePair("en", "de", source_prefix_ids=before, source_suffix_ids=after)
    given = reference("Save it.")["input_ids"]
    assert files.spec.source_ids(ours.encode("Save it."), pair) == tuple(given)
    return Case(ours, reference, len(reference))


def _unspelled(case: Case) -> Case:
    """Return a case in which no text spells a special token: Unigram takes "</s>" for one even if asked to split it."""
    document = json.loads(case.reference.backend_tokenizer.to_str())
    special = {token["content"] for token in document.pop("added_tokens")}
    pieces = document["model"]["vocab"]
    document["model"]["vocab"] = [[f"{piece} " if piece in special else piece, score] for piece, score in pieces]
    splitting = tokenizers.Tokenizer.from_str(json.dumps({**document, "added_tokens": []}))

    def encode(text: str) -> list[int]:
        if any(token in text for token in special):
            return list(splitting.encode(text, add_special_tokens=False).ids)
        return list(case.reference(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])

    return dataclasses.replace(case, encode=encode)


def mbart(root: Path) -> Case:
    """Return a published one: SentencePiece is the reference, as transformers 5 forgets its character map."""
    case = _bart(transformers.MBartTokenizer, write_fairseq_sentencepiece(root / "mbart"))
    processor = sentencepiece.SentencePieceProcessor(model_file=str(root / "mbart" / "sentencepiece.bpe.model"))

    def encode(text: str) -> list[int]:
        if re.search("[\u0300-\u036f]{4}", text):  # the tokenizers library maps no longer clusters of characters
            return case.ours.encode(text)
        return [index + 1 if index else 3 for index in processor.encode(text)]

    assert not differences(case, ["Hello, can you help me find my keys?", "Wo ist der Bahnhof?"])
    return dataclasses.replace(case, encode=encode)


def _mbart_saved(kind: Any, root: Path) -> Case:
    """Return one as saved by transformers 5: without SentencePiece's model, and mBART's without a character map."""
    folder = write_fairseq_sentencepiece(root / "mbart")
    if kind is transformers.MBart50Tokenizer:  # the other class then forgets its own languages
        edit(folder / "tokenizer_config.json", additional_special_tokens=["lug_UG", "<eop>"])
    with _older_protobuf():
        saved = _resaved(kind, folder)
    assert not (saved / "sentencepiece.bpe.model").exists()
    return _unspelled(_bart(kind, saved))


def marian_older(root: Path) -> Case:
    """Return a fine-tuned one saved by transformers 4, which by default cleaned up spaces and placed its tokens."""
    folder = write_marian(root / "marian")
    tokens = {"</s>": 0, "<unk>": 1, "<pad>": read_marian(folder).spec.pad_id}
    named = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "sp_model_kwargs": {}}
    edit(folder / "tokenizer_config.json", added_tokens_decoder=_placed(tokens), **CLEANED, **named)
    return _marian(folder)


def marian_extra(root: Path) -> Case:
    """Return a checkpoint with special tokens beyond the vocabulary, one of which is a prefix of another."""
    folder = write_marian(root / "marian")
    edit(folder / "tokenizer_config.json", additional_special_tokens=["<eop>", "<eod>", "<eop> Hello", "▁Save"])
    return _marian(folder)


def m2m100(root: Path) -> Case:
    """Return the published layout: `special_tokens_map.json` makes the language tokens special."""
    folder = write_m2m100(root / "m2m100")
    codes = list(read_m2m100(folder).languages)
    tokens = [f"__{code}__" for code in codes]
    edit(folder / "special_tokens_map.json", eos_token="</s>", additional_special_tokens=tokens)
    edit(folder / "tokenizer_config.json", src_lang=None, tgt_lang=None, language_codes="m2m100")
    return _m2m100(folder)


def m2m100_saved(root: Path) -> Case:
    """Return a new one as made by transformers 5: its language tokens are not special and do not occur in texts."""
    folder = _resaved(transformers.M2M100Tokenizer, write_m2m100(root / "m2m100"))
    return _m2m100(folder, size=len(json.loads((folder / "vocab.json").read_text(encoding="utf-8"))))


def m2m100_older(root: Path) -> Case:
    """Return one saved by transformers 4, with the other list of languages."""
    folder = write_m2m100(root / "m2m100")
    edit(folder / "tokenizer_config.json", language_codes="wmt21")
    files = read_m2m100(folder)
    languages = {f"__{code}__": index for code, index in _language_ids(files).items()}
    edit(
        folder / "tokenizer_config.json",
        added_tokens_decoder=_placed(files.spec.special_tokens | languages),
        additional_special_tokens=list(languages),
        **CLEANED,
    )
    return _m2m100(folder)


def mbart_50_older(root: Path) -> Case:
    """Return one written by transformers 4: other steps, which version 5 replaces, and its tokens placed."""
    with _older_protobuf():
        folder = _resaved(transformers.MBart50Tokenizer, write_fairseq_sentencepiece(root / "mbart_50"))
    file = folder / TOKENIZER_NAME
    document = json.loads(file.read_text(encoding="utf-8"))
    document["normalizer"]["normalizers"].append({"type": "Strip", "strip_left": False, "strip_right": True})
    document["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}]}
    tokens = {str(token["id"]): {**token, "normalized": False} for token in document["added_tokens"]}
    document["added_tokens"] = document["added_tokens"][:2]
    file.write_text(json.dumps(document), encoding="utf-8")
    edit(folder / "tokenizer_config.json", added_tokens_decoder=tokens, language_codes="ML50", **CLEANED)
    return _unspelled(_bart(transformers.MBart50Tokenizer, folder))


@contextlib.contextmanager
def _older_protobuf() -> Iterator[None]:
    """Let SentencePiece's generated code load, which requires a newer protobuf than gRPC's packages allow."""
    from transformers.utils import sentencepiece_model_pb2_new

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "sentencepiece.sentencepiece_model_pb2", sentencepiece_model_pb2_new)
        yield


def _nllb_sentencepiece(root: Path) -> Path:
    folder = root / "nllb"
    folder.mkdir(parents=True)
    model = train_sentencepiece(ENGLISH + GERMAN + FRENCH + RUSSIAN + HINDI, "bpe", 500)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    edit(folder / "tokenizer_config.json", additional_special_tokens=LANGUAGES)
    return folder


def _nllb_folder(root: Path) -> Path:
    """Return SentencePiece's BPE as converted and saved by transformers."""
    with _older_protobuf():
        return _resaved(transformers.NllbTokenizer, _nllb_sentencepiece(root))


def nllb_sentencepiece(root: Path) -> Case:
    """Return a checkpoint with only a SentencePiece model."""
    with _older_protobuf():
        return _nllb(_nllb_sentencepiece(root))


def nllb_older(root: Path) -> Case:
    """Return one written by transformers 4: other pre-tokenization, which version 5 replaces, and merges as strings."""
    folder = _nllb_folder(root)
    file = folder / TOKENIZER_NAME
    document = json.loads(file.read_text(encoding="utf-8"))
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    document["normalizer"]["normalizers"].append(strip)
    document["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}]}
    document["model"]["merges"] = [" ".join(merge) for merge in document["model"]["merges"]]
    document["truncation"] = {"direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0}
    file.write_text(json.dumps(document), encoding="utf-8")
    tokens = {str(token.pop("id")): token for token in document["added_tokens"]}
    edit(folder / "tokenizer_config.json", added_tokens_decoder=tokens, **CLEANED)  # BPE output is not cleaned up
    return _nllb(folder)


def _t5(folder: Path) -> Case:
    files = read_t5(folder)
    with _older_protobuf():
        reference = _reference(transformers.T5Tokenizer, folder)
    if files.languages:  # transformers 5.23 has neither bytes nor this model's unknown token
        backend = reference.backend_tokenizer
        pieces = list(map(tuple, json.loads(backend.to_str())["model"]["vocab"]))
        backend.model = models.Unigram(pieces, unk_id=files.spec.unk_id, byte_fallback=True)
        backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
        reference.add_tokens([f"<2{code}>" for code in files.languages], special_tokens=True)
    return _unspelled(Case(_written(files, folder), reference, files.sizes[0]))


def t5_saved(root: Path) -> Case:
    """Return a fine-tuned one as saved by transformers 5, without a SentencePiece model, that cleans up spaces."""
    with _older_protobuf():
        folder = _resaved(transformers.T5Tokenizer, write_t5(root / "t5"))
    edit(folder / "tokenizer_config.json", **CLEANED)
    return _t5(folder)


def word_level(root: Path) -> Case:
    root.mkdir(parents=True)
    file = write_word_level(root / TOKENIZER_NAME)
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "bos_token": "[SOS]", "eos_token": "[EOS]"}
    reference = transformers.PreTrainedTokenizerFast(tokenizer_file=str(file), **special)
    spec = TokenizerSpec("tokenizers", file.name, pad_id=1, eos_id=3, unk_id=0, decoder_start_id=2)
    return Case(load_tokenizer(spec, root), reference, len(reference))


KINDS: dict[str, Callable[[Path], Case]] = {
    # the published layout: of the settings, `tokenizer_config.json` holds only the languages
    "marian": lambda root: _marian(write_marian(root / "marian")),
    # a fine-tuned checkpoint as saved by transformers 5
    "marian saved": lambda root: _marian(_resaved(transformers.MarianTokenizer, write_marian(root / "marian"))),
    "marian older": marian_older,
    "marian extra": marian_extra,
    "marian several targets": lambda root: _marian(
        write_marian(root / "marian", languages=("de", "fr", "pt_BR")), prefix="de"
    ),
    "marian separate": lambda root: _marian(write_marian(root / "marian", is_separate=True)),
    "m2m100": m2m100,
    "m2m100 saved": m2m100_saved,
    "m2m100 older": m2m100_older,
    "nllb": lambda root: _nllb(_nllb_folder(root)),
    "nllb sentencepiece": nllb_sentencepiece,
    "nllb older": nllb_older,
    "mbart": mbart,
    "mbart saved": lambda root: _mbart_saved(transformers.MBartTokenizer, root),
    "mbart_50": lambda root: _unspelled(
        _bart(transformers.MBart50Tokenizer, write_fairseq_sentencepiece(root / "mbart_50"))
    ),
    "mbart_50 older": mbart_50_older,
    "mbart_50 saved": lambda root: _mbart_saved(transformers.MBart50Tokenizer, root),
    "plbart": lambda root: _bart(transformers.PLBartTokenizer, write_fairseq_sentencepiece(root / "plbart")),
    "bart": lambda root: _bart(transformers.BartTokenizer, write_bart(root / "bart")),
    "bart saved": lambda root: _bart(
        transformers.BartTokenizer, _resaved(transformers.BartTokenizer, write_bart(root / "bart"))
    ),
    "t5": lambda root: _t5(write_t5(root / "t5")),
    "t5 saved": t5_saved,
    "madlad": lambda root: _t5(write_madlad(root / "madlad")),
    "word level": word_level,
}


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return KINDS[request.param](tmp_path_factory.mktemp("tokenizers") / "folders")


def differences(case: Case, texts: Sequence[str]) -> list[str]:
    """Return the texts whose ids, or whose ids decoded to text, differ from the reference."""
    different = []
    for text in texts:
        ids = case.expected_ids(text)
        if case.ours.encode(text) != ids or case.ours.decode(ids) != case.expected_text(ids):
            different.append(text)
    return different


def test_nasty_texts(case: Case) -> None:
    assert differences(case, NASTY_TEXTS) == []


@given(text=nasty_text(), numbers=st.lists(st.integers(0, 10**6), max_size=20))
def test_any_text_and_any_ids(case: Case, text: str, numbers: list[int]) -> None:
    assert case.ours.encode(text) == case.expected_ids(text)
    ids = [number % case.size for number in numbers]
    assert case.ours.decode(ids) == case.ours.decode(tuple(ids)) == case.expected_text(ids)


def test_threads_do_not_disturb_each_other(case: Case) -> None:
    texts = NASTY_TEXTS[:40] * 5
    expected = [case.expected_ids(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(case.ours.encode, texts)) == expected
        assert list(pool.map(case.ours.decode, expected)) == [case.expected_text(ids) for ids in expected]


def test_a_tokenizer_without_its_vocabulary_is_noticed(tmp_path: Path) -> None:
    case = KINDS["marian"](tmp_path)
    spec = TokenizerSpec("sentencepiece", "source.spm", pad_id=0, eos_id=2, unk_id=0, decoder_start_id=0)
    wrong = Case(load_tokenizer(spec, tmp_path / "marian"), case.reference, case.size)
    assert len(differences(wrong, NASTY_TEXTS)) > len(NASTY_TEXTS) / 2


@pytest.mark.parametrize("write", [write_t5, write_madlad])
def test_t5_and_sentencepiece(write: Callable[[Path], Path], tmp_path: Path) -> None:
    """With which it was trained: only how combining characters are composed, and NEL, differ in transformers."""
    folder = write(tmp_path / "folder")
    files = read_t5(folder)
    processor = sentencepiece.SentencePieceProcessor(str(folder / "spiece.model"))
    differing = [text for text in NASTY_TEXTS if [*files.ids(text)] != processor.encode(text)]
    assert {text[:2] for text in differing} <= {"NE", "z\u0337", "中文"}
    for code, ids in files.languages.items():
        assert [*ids, *files.ids("Hello")] == processor.encode(f"<2{code}> Hello")


def test_what_is_spelled_like_languages_and_bytes_is_text(tmp_path: Path) -> None:
    case = _t5(write_madlad(tmp_path / "folder"))
    ids = case.ours.encode("<2de> a <0x41>b</s> <2fr_Latn>")
    assert case.ours.decode(ids) == "<2de> a <0x41>b</s> <2fr_Latn>"
    assert not {1, 2, *(each[-1] for each in read_t5(tmp_path / "folder").languages.values())}.intersection(ids)
    processor = sentencepiece.SentencePieceProcessor(str(tmp_path / "folder" / "spiece.model"))
    assert case.ours.encode("<0x41>b</s>") == processor.encode("<0x41>b</s>")


@pytest.mark.parametrize("write", [write_t5, write_madlad])
def test_a_prefix_and_a_text_are_those_of_both_together(write: Callable[[Path], Path], tmp_path: Path) -> None:
    files, prefix = read_t5(write(tmp_path / "folder")), "translate English to German: "
    for text in NASTY_TEXTS:
        assert files.ids(prefix) + files.ids(text) == files.ids(prefix + text)


def test_special_tokens_that_are_looked_for_are_noticed(case: Case) -> None:
    """The control of the reference's option: without it, texts that spell special tokens have other ids."""
    tokens = case.reference.all_special_tokens
    assert any(case.reference(each, add_special_tokens=False)["input_ids"] != case.ours.encode(each) for each in tokens)


def test_marian_normalizes_no_punctuation(tmp_path: Path) -> None:
    """If a version of transformers starts to apply its normalizer (sacremoses), ours must as well."""
    reference = KINDS["marian"](tmp_path).reference
    called: list[str] = []
    reference.punc_normalizer = called.append
    for text in NASTY_TEXTS:
        reference(text)
    assert not called
    reference.normalize("“a”")
    assert called == ["“a”"]  # the control
