"""The tokenizer files of Marian, M2M100 and NLLB checkpoints."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from export.importers.huggingface.json_tokenizer import TOKENIZER_NAME
from export.importers.huggingface.m2m100 import read_m2m100
from export.importers.huggingface.marian import read_marian
from export.importers.huggingface.nllb_tokenizer import MODEL_NAME, read_nllb
from export.importers.huggingface.t5_tokenizer import read_t5
from tests.export.folders import edit
from tests.tokenizer_folders import (
    ENGLISH,
    train_sentencepiece,
    write_bpe,
    write_m2m100,
    write_marian,
    write_t5,
    write_vocabulary,
)

LANGUAGES = ("eng_Latn", "deu_Latn", "fra_Latn")


def write_nllb(folder: Path) -> Path:
    folder.mkdir()
    write_bpe(folder / TOKENIZER_NAME, LANGUAGES)
    return folder


def write_nllb_model(folder: Path) -> Path:
    """Write a folder without `tokenizer.json`: transformers converts the SentencePiece model."""
    folder.mkdir()
    (folder / MODEL_NAME).write_bytes(train_sentencepiece(ENGLISH, "bpe", 200))
    set_config(folder, additional_special_tokens=LANGUAGES)
    return folder


def change(file: Path, edit: Callable[[Any], None]) -> None:
    document = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    edit(document)
    file.write_text(json.dumps(document), encoding="utf-8")


def set_config(folder: Path, **settings: Any) -> None:
    edit(folder / "tokenizer_config.json", **settings)


def test_languages_that_somebody_added(tmp_path: Path) -> None:
    """Special tokens of NLLB that look like codes, Marian's and M2M100's beyond their own; words are no languages."""
    folder = tmp_path / "nllb"
    folder.mkdir()
    write_bpe(folder / TOKENIZER_NAME, (*LANGUAGES, "lug", "nyn_Latn_v2"))
    set_config(folder, additional_special_tokens=["ach", "<term>"])
    tokens = json.loads((folder / TOKENIZER_NAME).read_text(encoding="utf-8"))
    last = tokens["added_tokens"][-1]
    tokens["added_tokens"].append({**last, "id": last["id"] + 1, "content": "kitabu", "special": False})
    (folder / TOKENIZER_NAME).write_text(json.dumps(tokens), encoding="utf-8")
    files = read_nllb(folder)
    assert [*files.languages] == [*LANGUAGES, "lug", "nyn_Latn_v2", "ach"]
    assert "unless they are special: kitabu; if" in files.notes[0]
    folder = write_marian(tmp_path / "marian", languages=("de", "fr"))
    size, _ = read_marian(folder).sizes
    set_config(folder, additional_special_tokens=[">>lug<<"])
    assert read_marian(folder).languages == {"de": (size - 3,), "fr": (size - 2,), "lug": (size,)}
    folder = write_m2m100(tmp_path / "m2m100")
    size, _ = read_m2m100(folder).sizes
    ids = {**dict(enumerate(["<s>", "<pad>", "</s>", "<unk>"])), size: "__lug__", size + 1: "<term>"}
    placed = {str(index): {"content": text, "special": True} for index, text in ids.items()}
    set_config(folder, added_tokens_decoder=placed, additional_special_tokens=["__lug__", "<term>"])
    added = read_m2m100(folder)
    assert (added.languages["lug"], added.sizes[0], len(added.languages)) == ((size,), size + 2, 101)


@pytest.mark.parametrize(
    ("write", "read"),
    [
        (write_marian, read_marian),
        (write_m2m100, read_m2m100),
        (write_nllb, read_nllb),
        (write_nllb_model, read_nllb),
        (write_t5, read_t5),
    ],
)
def test_files_that_are_missing_or_cut_short_are_refused(
    write: Callable[[Path], Path], read: Callable[[Path], object], tmp_path: Path
) -> None:
    folder = write(tmp_path / "folder")
    optional = ("tokenizer_config.json", "target_vocab.json")
    required = [file for file in sorted(folder.iterdir()) if file.name not in optional]
    assert required
    for file in required:
        data = file.read_bytes()
        for length in (0, 1, len(data) // 3, len(data) // 2, len(data) - 300):
            file.write_bytes(data[:length])
            with pytest.raises(ValueError, match=f"^{file.name}: it ") as refusal:
                read(folder)
            assert "\n" not in str(refusal.value)
        file.unlink()
        with pytest.raises(ValueError, match="it is missing"):
            read(folder)
        file.write_bytes(data)
    read(folder)


def test_all_damaged_files_are_listed(tmp_path: Path) -> None:
    folder = write_marian(tmp_path / "folder", is_separate=True)
    for name in ("source.spm", "target_vocab.json"):
        (folder / name).write_bytes(b"{")
    (folder / "target.spm").unlink()
    set_config(folder, split_special_tokens=True)
    with pytest.raises(ValueError, match="source") as refusal:
        read_marian(folder)
    for problem in (
        "source.spm: it is not a S",
        "target.spm: it is missing",
        "target_vocab.json: ",
        "split_special_tokens",
    ):
        assert problem in str(refusal.value)


def test_special_tokens_that_differ_between_separate_vocabularies_are_refused(tmp_path: Path) -> None:
    folder = write_marian(tmp_path / "folder", is_separate=True)
    pieces = list(json.loads((folder / "target_vocab.json").read_text(encoding="utf-8")))
    write_vocabulary(folder / "target_vocab.json", [pieces[1], pieces[0], *pieces[2:]])
    with pytest.raises(ValueError, match=r"target_vocab.json: the id of '</s>' is 1, in vocab.json it is 0; .*<unk>"):
        read_marian(folder)


def test_an_m2m100_vocabulary_with_gaps_or_other_languages_is_refused(tmp_path: Path) -> None:
    folder = write_m2m100(tmp_path / "folder")
    set_config(folder, additional_special_tokens=["__de__"])
    with pytest.raises(ValueError, match="the special token __de__ has the id"):
        read_m2m100(folder)
    set_config(folder, additional_special_tokens=[], language_codes="mine")
    edit(folder / "vocab.json", **{"▁new": 100_000})
    with pytest.raises(ValueError, match=r"ids up to 100000 instead of .*; language_codes is 'mine'; known: m2m100"):
        read_m2m100(folder)


def test_what_is_no_nllb_tokenizer_is_refused(tmp_path: Path) -> None:
    folder = write_nllb(tmp_path / "folder")
    whole = (folder / TOKENIZER_NAME).read_bytes()
    damages: list[tuple[Callable[[Any], None], str]] = [
        (lambda document: document["model"].update(type="Unigram"), "'Unigram', expected 'BPE'"),
        (lambda document: document["model"].update(merges=[["a"]]), "it is not a tokenizer like NLLB's"),
        (lambda document: document["model"].pop("vocab"), "it is not a tokenizer like NLLB's"),
        (lambda document: document["added_tokens"].pop(-2), "'<mask>' has the id"),
        (lambda document: document["added_tokens"][0].update(content=7), "it is not a tokenizer like NLLB's"),
        (lambda document: document.update(added_tokens=[]), "has 0 language tokens"),
        (
            lambda document: document.update(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
            "it is not a tokenizer like NLLB's",
        ),
    ]
    for damage, problem in damages:
        (folder / TOKENIZER_NAME).write_bytes(whole)
        change(folder / TOKENIZER_NAME, damage)
        with pytest.raises(ValueError, match=problem) as refusal:
            read_nllb(folder)
        assert "\n" not in str(refusal.value)
    set_config(folder, legacy_behaviour=True)
    with pytest.raises(ValueError, match="legacy_behaviour"):
        read_nllb(folder)
